"""An indexed column of a DataFrame, as its coordinates are computed from it."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from catalog.jvm.row_expressions import RowExpressions
from otree.transformer import Transformer


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
        return F.col(self.name)

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
