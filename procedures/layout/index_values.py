"""Values of indexed columns in the unit that their transformation counts in."""

from __future__ import annotations

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from catalog.jvm.row_expressions import RowExpressions
from otree.transformer import Transformer


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
