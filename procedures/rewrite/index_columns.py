"""The row-level columns of a revision over a DataFrame: coordinates, weight, cell, cube and file."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog.session import jvm
from otree.revision import Revision
from otree.transformation import ColumnStats, Transformation
from otree.transformation.hashing import HashTransformation
from otree.transformation.linear import LinearTransformation
from otree.transformer import Transformer
from otree.tree import OrdinalTable

_MILLIS_PER_DAY = 86_400_000


def index_value(transformer: Transformer, column: Column) -> Column:
    """The column in the unit that its transformation counts in: numbers as they are, times in epoch milliseconds."""
    match transformer.data_type:
        case "TimestampDataType":
            return F.unix_millis(column)
        case "DateDataType":
            return F.unix_date(column).cast("bigint") * F.lit(_MILLIS_PER_DAY)
        case "DecimalDataType":
            return column.cast("double")
        case _:
            return column


def column_stats(
    rows: DataFrame, transformers: Sequence[Transformer], columns: Sequence[str]
) -> tuple[int, list[ColumnStats]]:
    """Number of rows, and finite minimum and maximum of each linear column, in one pass.

    Args:
        rows: the data.
        transformers: what is indexed.
        columns: their logical names, aligned.
    """
    aggregates = [F.count(F.lit(1)).alias("rows")]
    for i, (transformer, name) in enumerate(zip(transformers, columns, strict=True)):
        if transformer.kind != "linear":
            continue
        value = index_value(transformer, F.col(_quoted(name)))
        if transformer.data_type in ("FloatDataType", "DoubleDataType"):
            finite = ~F.isnan(value) & (F.abs(value) != float("inf"))
            value = F.when(finite, value.cast("double"))
        aggregates += [F.min(value).alias(f"min{i}"), F.max(value).alias(f"max{i}")]
    found = rows.agg(*aggregates).collect()[0]
    stats = []
    for i, transformer in enumerate(transformers):
        if transformer.kind == "linear":
            stats.append(ColumnStats(found[f"min{i}"], found[f"max{i}"]))
        else:
            stats.append(ColumnStats(None, None))
    return found["rows"], stats


@dataclass(frozen=True)
class IndexColumns:
    """Columns that place a row in a revision's index.

    Attributes:
        revision: the revision.
        columns: logical names of its columns, in its order.
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
        return [F.col(_quoted(name)) for name in self.columns]

    @property
    def coordinates(self) -> list[Column]:
        """The row's coordinates, never null, each in [0, 1]."""
        parts = zip(self.revision.transformers, self.revision.transformations, self.columns, strict=True)
        return [self._coordinate(transformer, transformation, name) for transformer, transformation, name in parts]

    def cell(self, depth: int) -> Column:
        """The cell of ``depth`` levels that the row lies in, as a long that sorts along the curve."""
        return Column(self._expressions.cell(self._java(self.coordinates), depth))

    def cube(self, ordinals: OrdinalTable) -> Column:
        """The ordinal of the row's cube."""
        inner, children = ordinals.thresholds, ordinals.child_keys
        packed = struct.pack(
            f">i{len(inner)}ii{len(children)}q{len(children)}i",
            len(inner), *inner, len(children), *children, *ordinals.child_nodes,
        )  # fmt: skip
        return Column(self._expressions.cube(self._java(self.coordinates), self.weight._jc, packed))

    @property
    def _expressions(self) -> Any:
        return jvm(self.spark).org.apache.spark.sql.usespark.IndexExpressions

    def _java(self, columns: Sequence[Column]) -> Any:
        array = jvm(self.spark).java.util.ArrayList()
        for column in columns:
            array.add(column._jc)
        return array

    def _coordinate(self, transformer: Transformer, transformation: Transformation, name: str) -> Column:
        column = F.col(_quoted(name))
        null = F.lit(float(transformation.null_coordinate))
        if isinstance(transformation, LinearTransformation):
            low, high = float(transformation.minimum), float(transformation.maximum)
            # The same double arithmetic as LinearTransformation.coordinate; NaN sorts above 1 and becomes 1.
            scaled = (index_value(transformer, column).cast("double") - F.lit(low)) * F.lit(1.0 / (high - low))
            return F.greatest(F.least(F.coalesce(scaled, null), F.lit(1.0)), F.lit(0.0))
        if isinstance(transformation, HashTransformation):
            return F.coalesce(Column(self._expressions.hashCoordinate(column.cast("string")._jc)), null)
        return F.lit(0.0)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
