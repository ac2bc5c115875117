"""The row-level columns of a revision over a DataFrame: coordinates, weight, cell, cube and file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog.jvm.row_expressions import RowExpressions
from otree.cardinality import WeightCardinality
from otree.revision import Revision
from otree.transformation import ColumnStats, DeclaredStats
from otree.transformer import Transformer, needs_quantiles
from otree.tree import OrdinalTable
from procedures.layout.coordinates import coordinate_column
from procedures.layout.quantile_estimates import numeric_quantiles, string_quantiles

if TYPE_CHECKING:
    from procedures.layout.row_sample import RowSample

# So many that neighbours differ by little, and the borders of cubes fall on quantiles; strings are not interpolated.
_NUMERIC_QUANTILES = 65
_STRING_QUANTILES = 257
_RELATIVE_ERROR = 0.005


def index_value(spark: SparkSession, column: Column) -> Column:
    """The column in the unit that its transformation counts in, by its own type and never by a time zone.

    Booleans become 0 and 1, dates and timestamps (with or without zone) epoch milliseconds, decimals doubles; other
    values stay as they are.
    """
    return RowExpressions(spark).index_value(column)


def finite_value(spark: SparkSession, transformer: Transformer, column: Column) -> Column:
    """The same, with null for what has no place in a range: NaN and the infinities."""
    value = index_value(spark, column)
    if transformer.data_type not in ("FloatDataType", "DoubleDataType"):
        return value
    return F.when(~F.isnan(value) & (F.abs(value) != float("inf")), value.cast("double"))


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
    found = rows.agg(*aggregates).collect()[0].asDict()
    texts = [i for i, t in enumerate(transformers) if estimated[i] and not t.data_facts.span]
    strings: dict[int, tuple[str, ...]] = {}
    if texts:
        wanted = [F.col(columns[i]) for i in texts]
        of_each = string_quantiles(rows, wanted, found["rows"], _STRING_QUANTILES, _RELATIVE_ERROR)
        strings = dict(zip(texts, of_each, strict=True))
    stats = tuple(
        ColumnStats(
            found.get(f"min{i}"), found.get(f"max{i}"), strings.get(i) or tuple(found.get(f"quantiles{i}") or ()), said
        )
        for i, said in enumerate(declared)
    )
    return Observation(stats, WeightCardinality(found["rows"], found["weights"]))


@dataclass(frozen=True)
class IndexColumns:
    """Columns that place a row in a revision's index.

    Attributes:
        revision: the revision.
        columns: logical names of its columns as ``F.col`` reads them, in its order.
    """

    spark: SparkSession
    revision: Revision
    columns: tuple[str, ...]

    @property
    def weight(self) -> Column:
        """The row's weight: Spark's hash of the indexed columns."""
        return F.hash(*self.values)

    @property
    def values(self) -> list[Column]:
        """The indexed columns themselves."""
        return [F.col(name) for name in self.columns]

    @property
    def coordinates(self) -> list[Column]:
        """The row's coordinates, never null, each in [0, 1]."""
        parts = zip(self.revision.transformers, self.revision.transformations, self.columns, strict=True)
        return [coordinate_column(self.spark, transformer, space, name) for transformer, space, name in parts]

    def cell(self, depth: int) -> Column:
        """The cell of ``depth`` levels that the row lies in, as a long that sorts along the curve."""
        return RowExpressions(self.spark).cell(self.coordinates, depth)

    def cube(self, ordinals: OrdinalTable) -> Column:
        """The ordinal of the row's cube."""
        return RowExpressions(self.spark).cube(self.coordinates, self.weight, ordinals)
