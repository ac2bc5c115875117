"""The row-level columns of a revision over a DataFrame: coordinates, weight, cell, cube and file."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from catalog.columns.column_names import find_stored
from catalog.jvm.row_expressions import RowExpressions
from catalog.properties.index_properties import logical_name
from catalog.table.snapshot import TableSnapshot
from otree.revision import Revision
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
