"""A look at rows before they are indexed: one pass where they are expected to join the newest revision."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from catalog.properties.index_properties import IndexConfiguration
from catalog.table.snapshot import TableSnapshot
from otree.cardinality import WeightCardinality
from otree.revision import Revision
from otree.transformation import ColumnStats
from otree.transformer import needs_quantiles
from procedures.layout.index_columns import Observation, finite_value, observation_of
from procedures.layout.revision_choice import hashed_otherwise
from procedures.layout.row_sample import sample_of
from procedures.layout.target import columns_of


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
        and not hashed_otherwise(snapshot, configuration)
        and not any(map(needs_quantiles, latest.transformers, latest.transformations))
    )
