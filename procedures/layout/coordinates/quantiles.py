"""Coordinates of rows among quantiles."""

from __future__ import annotations

from pyspark.sql import Column

from otree.transformation import NumericQuantilesTransformation, StringQuantilesTransformation
from procedures.layout.coordinates.indexed_column import IndexedColumn


def numeric_quantile_coordinate(indexed: IndexedColumn, space: NumericQuantilesTransformation) -> Column:
    """The share of quantiles below a number, linear between neighbours."""
    numbers = indexed.value.cast("double")
    return indexed.or_null(indexed.expressions.numeric_quantile_coordinate(numbers, space.quantiles))


def string_quantile_coordinate(indexed: IndexedColumn, space: StringQuantilesTransformation) -> Column:
    """The share of quantiles up to a string."""
    return indexed.or_null(indexed.expressions.string_quantile_coordinate(indexed.column, space.quantiles))
