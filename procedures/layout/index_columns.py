"""Columns over rows: indexed values, and the coordinates, weight, cell and cube that a revision gives them."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from catalog.columns.column_names import find_stored
from catalog.jvm.row_expressions import RowExpressions
from catalog.properties.index_properties import logical_name
from catalog.table.snapshot import TableSnapshot
from otree.revision import Revision
from otree.transformer import Transformer
from otree.tree import OrdinalTable
from procedures.layout.coordinates import coordinate_column


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


def columns_of(session: SparkSession, snapshot: TableSnapshot, revision: Revision) -> IndexColumns:
    """The columns of a revision under the names that they have in the snapshot."""
    return IndexColumns(session, revision, tuple(logical_name(snapshot.schema, c) for c in revision.columns))


def stored_columns_of(session: SparkSession, snapshot: TableSnapshot, revision: Revision) -> IndexColumns:
    """The columns of a revision under the names that they have in data files."""
    columns = [find_stored(snapshot.schema, c) for c in revision.columns]
    return IndexColumns(session, revision, tuple(column.stored_name for column in columns if column is not None))


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
