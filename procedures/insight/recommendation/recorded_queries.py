"""Conditions of recorded consumption as columns of Spark, since consumption has no SQL text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_, or_
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, StringType, TimestampNTZType, TimestampType

from catalog.columns.column_names import FoundColumn
from catalog.predicates.conditions import Comparison, Unknown, visit
from catalog.predicates.operators import FUNCTIONS, IS_NOT_NULL, IS_NULL
from procedures.insight.recommendation.conditions import QueryCondition


def column_of(condition: QueryCondition, columns: Mapping[str, FoundColumn]) -> Column:
    """Returns a condition as a column; an unknown condition is true.

    Args:
        condition: with values in the order of their columns.
        columns: the table's columns, by name.
    """

    def leaf(node: Comparison[str] | Unknown, _: bool) -> Column:
        return F.lit(True) if isinstance(node, Unknown) else _compared(node, columns[node.column])

    def all_of(parts: Sequence[Column]) -> Column:
        return reduce(and_, parts, F.lit(True))

    def any_of(parts: Sequence[Column]) -> Column:
        return reduce(or_, parts, F.lit(False))

    return visit(condition, leaf, all_of, any_of)


def _compared(comparison: Comparison[str], found: FoundColumn) -> Column:
    column, operator = F.col(found.name), comparison.operator
    if operator == IS_NULL:
        return column.isNull()
    if operator == IS_NOT_NULL:
        return column.isNotNull()
    literals = [_literal(value, found.data_type) for value in comparison.values]
    if operator in FUNCTIONS:
        compared: Column = FUNCTIONS[operator](column, literals[0])
        return compared
    return column.isin(*literals)


def _literal(value: Any, data_type: DataType) -> Column:
    """Returns a double or bytes, as values are ordered, as a literal of the column's type."""
    match data_type:
        case StringType():
            return F.lit(value.decode("utf-8", "replace"))
        case DateType():
            return F.date_from_unix_date(F.lit(int(value)))
        case TimestampType() | TimestampNTZType():
            return F.timestamp_micros(F.lit(int(value)).cast("bigint")).cast(data_type)
    return F.lit(value).cast(data_type)
