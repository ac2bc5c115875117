"""Whether a file may have rows for which a condition is true, by its partition values and statistics."""

from __future__ import annotations

import math
from typing import Any

from sql_ext.readers.delta_files import DeltaFile
from sql_ext.readers.literals import FLOATING
from sql_ext.readers.row_conditions import Comparison, Condition
from sql_ext.readers.table_columns import Column

# Statistics cut times to milliseconds.
_CUT_MICROS = 1_000
# Readers of the log differ in the last digits of numbers. A FLOAT has fewer digits in the log than as a DOUBLE.
_ERRORS = {"double": (2.0**-49, 1e-320), "float": (2.0**-22, 1e-44)}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_UNKNOWN = "unknown"


def may_have_rows(file: DeltaFile, condition: Condition) -> bool:
    """Returns False only if the condition is true for no row of the file.

    Args:
        file: the file.
        condition: the condition.
    """
    return _may_be(file, condition, is_negated=False)


def _may_be(file: DeltaFile, condition: Condition, *, is_negated: bool) -> bool:
    """Whether the condition, or its negation, may be true for a row. NULL is neither."""
    if isinstance(condition, Comparison):
        return _may_hold(file, _opposite(condition) if is_negated else condition)
    if condition.operator == "not":
        return _may_be(file, condition.of[0], is_negated=not is_negated)
    combine = all if (condition.operator == "and") != is_negated else any
    return combine(_may_be(file, part, is_negated=is_negated) for part in condition.of)


def _opposite(comparison: Comparison) -> Comparison:
    return Comparison(comparison.column, _OPPOSITE.get(comparison.operator, _UNKNOWN), comparison.values)


def _may_hold(file: DeltaFile, condition: Comparison) -> bool:
    if condition.operator == _UNKNOWN:
        return True
    name = condition.column.path[0]
    if name in file.partition or condition.column.stored_path[0] in file.partition:
        value = file.partition.get(name, file.partition.get(condition.column.stored_path[0]))
        return _may_be_true(condition, value, value, file_has_null=value is None, file_has_value=value is not None)
    low, high, nulls = (_statistic(values, condition.column) for values in (file.minima, file.maxima, file.nulls))
    # A column with fields has a number of nulls for each of them.
    nulls = nulls if isinstance(nulls, int) else None
    has_null = nulls is None or nulls > 0
    has_value = nulls is None or file.rows is None or nulls < file.rows
    low, high = _bounds(low, high, condition.column) if _is_known(file, condition.column) else (None, None)
    return _may_be_true(condition, low, high, file_has_null=has_null, file_has_value=has_value)


def _statistic(values: Any, column: Column) -> Any:
    for name in column.stored_path:
        values = values.get(name) if isinstance(values, dict) else None
    return values


def _is_known(file: DeltaFile, column: Column) -> bool:
    return file.times_are_known or column.sql_type != "timestamp"


def _bounds(low: Any, high: Any, column: Column) -> tuple[Any, Any]:
    """Bounds that all values but NaN are within, from the statistics; None where unknown."""
    # Spark pads the values of CHAR when it reads them.
    if low is None or high is None or column.width is not None:
        return None, None
    if column.sql_type.startswith("timestamp"):
        return low, high + _CUT_MICROS
    if column.sql_type not in FLOATING:
        return low, high
    kind = "float" if column.was_float else column.sql_type
    error, smallest = _ERRORS[kind]
    # NaN is the largest value, so that it says nothing of the others.
    low = low - abs(low) * error - smallest if math.isfinite(low) else -math.inf
    high = high + abs(high) * error + smallest if math.isfinite(high) else math.inf
    return low, high


def _may_be_true(condition: Comparison, low: Any, high: Any, *, file_has_null: bool, file_has_value: bool) -> bool:
    operator = condition.operator
    if operator == "is_null" or (operator == "<=>" and condition.values[0] is None):
        return file_has_null
    if not file_has_value:
        return False
    literals = [value for value in condition.values if value is not None]
    if not literals:
        return False  # A comparison with NULL is never true.
    if low is None or high is None:
        return True
    # NaN is above every number, and not every writer has it in the statistics.
    if condition.column.sql_type in FLOATING and (operator in (">", ">=") or any(map(math.isnan, literals))):
        return True
    try:
        return any(_holds(operator, low, high, literal) for literal in literals)
    except TypeError:
        return True


def _holds(operator: str, low: Any, high: Any, literal: Any) -> bool:
    match operator:
        case "=" | "<=>" | "in":
            return bool(low <= literal <= high)
        case "<":
            return bool(low < literal)
        case "<=":
            return bool(low <= literal)
        case ">":
            return bool(high > literal)
        case ">=":
            return bool(high >= literal)
        case "starts_with":
            return bool(high >= literal and low[: len(literal)] <= literal)
    return True
