"""A look at rows before they are indexed: one pass where they are expected to join the newest revision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from catalog.properties.index_properties import IndexConfiguration
from catalog.table.snapshot import TableSnapshot
from otree.cardinality import WeightCardinality
from otree.revision import Revision
from otree.transformation import ColumnStats, DeclaredStats
from otree.transformer import Transformer, needs_quantiles
from procedures.layout.index_columns import columns_of
from procedures.layout.index_values import finite_value
from procedures.layout.quantile_estimates import numeric_quantiles, string_quantiles
from procedures.layout.revision_choice import has_other_hash_types
from procedures.layout.row_sample import RowSample, sample_of

# So many that neighbours differ by little, and the borders of cubes fall on quantiles; strings are not interpolated.
_NUMERIC_QUANTILES = 65
_STRING_QUANTILES = 257
_RELATIVE_ERROR = 0.005


@dataclass(frozen=True)
class Observation:
    """What one look at the data tells before it is indexed.

    Attributes:
        stats: per indexed column.
        weights: number of rows, and about how many different weights they have.
        sample: a sample of the rows in the newest revision, where the same look has taken one.
    """

    stats: tuple[ColumnStats, ...]
    weights: WeightCardinality
    sample: RowSample | None = None


def observation_of(
    rows: DataFrame,
    transformers: Sequence[Transformer],
    columns: Sequence[str],
    declared: Sequence[DeclaredStats] = (),
    latest: Revision | None = None,
) -> Observation:
    """Looks at the indexed columns in one pass; in a second one where string quantiles must be estimated.

    Args:
        rows: the data.
        transformers: what is indexed.
        columns: their logical names as ``F.col`` reads them, aligned.
        declared: what the owner declares, aligned; nothing when left out.
        latest: the newest revision; columns for which it has quantiles need no new ones.
    """
    spark = rows.sparkSession
    declared = declared or (DeclaredStats(),) * len(columns)
    spaces = dict(zip(latest.transformers, latest.transformations, strict=False)) if latest is not None else {}
    estimated = [
        needs_quantiles(t, spaces.get(t)) and d.quantiles is None for t, d in zip(transformers, declared, strict=True)
    ]
    aggregates = [
        F.count(F.lit(1)).alias("rows"),
        F.approx_count_distinct(F.hash(*[F.col(name) for name in columns])).alias("weights"),
    ]
    for i, (transformer, name) in enumerate(zip(transformers, columns, strict=True)):
        if not transformer.data_facts.span:
            continue
        value = finite_value(spark, transformer, F.col(name))
        aggregates += [F.min(value).alias(f"min{i}"), F.max(value).alias(f"max{i}")]
        if estimated[i]:
            aggregates.append(numeric_quantiles(value, _NUMERIC_QUANTILES, _RELATIVE_ERROR).alias(f"quantiles{i}"))
    measures = rows.agg(*aggregates).collect()[0].asDict()
    texts = [i for i, t in enumerate(transformers) if estimated[i] and not t.data_facts.span]
    strings: dict[int, tuple[str, ...]] = {}
    if texts:
        wanted = [F.col(columns[i]) for i in texts]
        of_each = string_quantiles(rows, wanted, measures["rows"], _STRING_QUANTILES, _RELATIVE_ERROR)
        strings = dict(zip(texts, of_each, strict=True))
    stats = tuple(
        ColumnStats(
            measures.get(f"min{i}"),
            measures.get(f"max{i}"),
            strings.get(i) or tuple(measures.get(f"quantiles{i}") or ()),
            said,
        )
        for i, said in enumerate(declared)
    )
    return Observation(stats, WeightCardinality(measures["rows"], measures["weights"]))


def observed(
    rows: DataFrame,
    snapshot: TableSnapshot,
    configuration: IndexConfiguration,
    expected: int | None = None,
    file_share: float = 1.0,
) -> Observation:
    """Looks at the indexed columns of rows.

    If the number of rows is known and the table's newest revision may hold them, one Spark job tells the ranges and
    takes the sample by which they are laid out. The ranges are those of all rows.

    Args:
        rows: the rows.
        snapshot: the table that they join.
        configuration: what is to be indexed.
        expected: how many rows there are, as the log tells; None when it does not.
        file_share: rows of one file, as a share of all.
    """
    latest, names, declared = snapshot.latest_revision, configuration.logical_columns, configuration.declared
    if latest is None or not expected or not _may_join(snapshot, configuration, latest):
        return observation_of(rows, configuration.transformers, names, declared, latest)
    spark = rows.sparkSession
    facts: dict[str, Column] = {}
    for i, (transformer, name) in enumerate(zip(configuration.transformers, names, strict=True)):
        if transformer.data_facts.span:
            value = finite_value(spark, transformer, F.col(name))
            facts |= {f"min{i}": F.min(value), f"max{i}": F.max(value)}
    sample, known = sample_of(rows, expected, columns_of(spark, snapshot, latest), file_share, facts)
    # No quantiles are estimated, as none are needed; an empty tuple says so.
    stats = tuple(ColumnStats(known.get(f"min{i}"), known.get(f"max{i}"), (), said) for i, said in enumerate(declared))
    return Observation(stats, WeightCardinality(sample.rows, sample.distinct_weights), sample)


def _may_join(snapshot: TableSnapshot, configuration: IndexConfiguration, latest: Revision) -> bool:
    return (
        latest.transformers == configuration.transformers
        and configuration.cube_size in (None, latest.desired_cube_size)
        and not has_other_hash_types(snapshot, configuration)
        and not any(map(needs_quantiles, latest.transformers, latest.transformations))
    )
