"""Conditions of recorded consumption as columns of Spark, since consumption has no SQL text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_, or_
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, StringType, TimestampNTZType, TimestampType

from catalog.columns.column_names import FoundColumn
from procedures.insight.recommendation.conditions import IS_NOT_NULL, IS_NULL, AllOf, AnyOf, Comparison, Condition


def column_of(condition: Condition, columns: Mapping[str, FoundColumn]) -> Column:
    """Returns a condition as a column; an unusable condition is true.

    Args:
        condition: with values in the order of their columns.
        columns: the table's columns, by name.
    """
    match condition:
        case AllOf(parts):
            return reduce(and_, (column_of(part, columns) for part in parts), F.lit(True))
        case AnyOf(parts):
            return reduce(or_, (column_of(part, columns) for part in parts), F.lit(False))
        case Comparison(name, operator, values):
            column = F.col(columns[name].name)
            if operator == IS_NULL:
                return column.isNull()
            if operator == IS_NOT_NULL:
                return column.isNotNull()
            literals = [_literal(value, columns[name].data_type) for value in values]
            match operator:
                case "<":
                    return column < literals[0]
                case "<=":
                    return column <= literals[0]
                case ">":
                    return column > literals[0]
                case ">=":
                    return column >= literals[0]
            return column.isin(*literals)
    return F.lit(True)


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
