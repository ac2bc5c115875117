"""Columns over rows: indexed values, and the coordinates, weight, cell and cube that a revision gives them.

A transformation has one function here and one line in ``COORDINATES``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from catalog.columns.column_names import column_stored_as, logical_name
from catalog.errors import IndexUnreadableError
from catalog.jvm.row_expressions import RowExpressions
from catalog.table.snapshot import TableSnapshot
from otree.data_types import STRING
from otree.revision import Revision
from otree.transformation import (
    EmptyTransformation,
    HashTransformation,
    IdentityTransformation,
    LegacyZeroTransformation,
    LinearTransformation,
    NumericQuantilesTransformation,
    StringQuantilesTransformation,
    Transformation,
)
from otree.transformer import Transformer
from otree.tree import OrdinalTable


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

    @cached_property
    def weight(self) -> Column:
        """The row's weight: Spark's hash of the indexed columns."""
        return F.hash(*self.values)

    @cached_property
    def values(self) -> list[Column]:
        """The indexed columns themselves."""
        return [RowExpressions(self.spark).column(name) for name in self.columns]

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


def columns_of(session: SparkSession, snapshot: TableSnapshot, revision: Revision) -> IndexColumns:
    """The columns of a revision under the names that they have in the snapshot."""
    return IndexColumns(session, revision, tuple(logical_name(snapshot.schema, c) for c in revision.columns))


def stored_columns_of(session: SparkSession, snapshot: TableSnapshot, revision: Revision) -> IndexColumns:
    """The columns of a revision under the names that they have in data files.

    Raises:
        UnknownNameError: the table has no longer all of them; see ``TableSnapshot.has_columns_of``.
    """
    columns = [column_stored_as(snapshot.schema, c) for c in revision.columns]
    return IndexColumns(session, revision, tuple(column.stored_name for column in columns))


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
class IndexedColumn:
    """A column and how it is indexed.

    Attributes:
        spark: session of the rows.
        transformer: how the column is indexed.
        name: logical name as ``F.col`` reads it.
        null_coordinate: where nulls are placed.
    """

    spark: SparkSession
    transformer: Transformer
    name: str
    null_coordinate: float

    @property
    def column(self) -> Column:
        """The column itself."""
        return self.expressions.column(self.name)

    @property
    def value(self) -> Column:
        """The column in the unit that its transformation counts in."""
        return self.expressions.index_value(self.column)

    @property
    def expressions(self) -> RowExpressions:
        """The shim's expressions for rows."""
        return RowExpressions(self.spark)

    def or_null(self, coordinate: Column) -> Column:
        """The coordinate, or that of nulls where it is null."""
        return F.coalesce(coordinate, F.lit(float(self.null_coordinate)))


def zero_coordinate(_indexed: IndexedColumn, _space: Transformation) -> Column:
    """Coordinate 0."""
    return F.lit(0.0)


def hash_coordinate(indexed: IndexedColumn, _: HashTransformation) -> Column:
    """The hash of text and bytes as they are, of a decimal by its own digits, of other values by Java's text."""
    if indexed.transformer.data_type == STRING:
        text = indexed.column.cast("string")
    elif indexed.transformer.data_type == "DecimalDataType":
        text = indexed.expressions.java_text(indexed.column)
    else:
        text = indexed.expressions.java_text(indexed.value)
    return indexed.or_null(indexed.expressions.hash_coordinate(text))


def linear_coordinate(indexed: IndexedColumn, space: LinearTransformation) -> Column:
    """The double arithmetic of ``LinearTransformation.coordinate``; NaN sorts above 1 and becomes 1."""
    low, high = float(space.minimum), float(space.maximum)
    return indexed.expressions.linear_coordinate(indexed.value, low, 1.0 / (high - low), float(indexed.null_coordinate))


def numeric_quantile_coordinate(indexed: IndexedColumn, space: NumericQuantilesTransformation) -> Column:
    """The share of quantiles below a number, linear between neighbours."""
    numbers = indexed.value.cast("double")
    return indexed.or_null(indexed.expressions.numeric_quantile_coordinate(numbers, space.quantiles))


def string_quantile_coordinate(indexed: IndexedColumn, space: StringQuantilesTransformation) -> Column:
    """The share of quantiles up to a string."""
    return indexed.or_null(indexed.expressions.string_quantile_coordinate(indexed.column, space.quantiles))


# Each function takes a transformation of the class that it is listed for.
COORDINATES: dict[type[Transformation], Callable[[IndexedColumn, Any], Column]] = {
    LinearTransformation: linear_coordinate,
    HashTransformation: hash_coordinate,
    NumericQuantilesTransformation: numeric_quantile_coordinate,
    StringQuantilesTransformation: string_quantile_coordinate,
    EmptyTransformation: zero_coordinate,
    IdentityTransformation: zero_coordinate,
    LegacyZeroTransformation: zero_coordinate,
}


def coordinate_column(spark: SparkSession, transformer: Transformer, space: Transformation, name: str) -> Column:
    """The coordinate of a row in one dimension: never null, in [0, 1], equal to ``Transformation.coordinate``.

    Args:
        spark: session of the rows.
        transformer: how the column is indexed.
        space: its transformation.
        name: logical name of the column as ``F.col`` reads it.

    Raises:
        IndexUnreadableError: rows cannot be placed by a transformation of this class.
    """
    coordinate = COORDINATES.get(type(space))
    if coordinate is None:
        # Any other coordinate would place rows where no reader looks for them, and the blocks would agree with it.
        raise IndexUnreadableError.transformation(type(space).__name__, name)
    return coordinate(IndexedColumn(spark, transformer, name, space.null_coordinate), space)
