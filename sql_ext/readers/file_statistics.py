"""Whether a file may have rows for which a condition is true, by its partition values and statistics."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from catalog.predicates.conditions import Comparison, Unknown, visit
from catalog.predicates.operators import (
    BOUND_TESTS,
    EQUAL,
    FUNCTIONS,
    IN,
    IS_NULL,
    NEGATED,
    NULL_SAFE_EQUAL,
    ORDERED,
    STARTS_WITH,
)
from sql_ext.readers.delta_files import DeltaFile
from sql_ext.readers.literals import FLOATING
from sql_ext.readers.row_conditions import RowCondition
from sql_ext.readers.table_columns import Column

# Statistics cut times to milliseconds.
_CUT_MICROS = 1_000
# Readers of the log differ in the last digits of numbers. A FLOAT has fewer digits in the log than as a DOUBLE.
_ERRORS = {"double": (2.0**-49, 1e-320), "float": (2.0**-22, 1e-44)}


FileTest: TypeAlias = Callable[[DeltaFile], bool]


def file_test(condition: RowCondition) -> FileTest:
    """Returns a test of files that is false only if the condition is true for no row of the file.

    Args:
        condition: the condition.
    """

    def all_of(tests: Sequence[FileTest]) -> FileTest:
        return lambda file: all(test(file) for test in tests)

    def any_of(tests: Sequence[FileTest]) -> FileTest:
        return lambda file: any(test(file) for test in tests)

    return visit(condition, _test_of, all_of, any_of)


def _test_of(leaf: Comparison[Column] | Unknown, negated: bool) -> FileTest:
    if isinstance(leaf, Unknown) or (negated and leaf.operator not in ORDERED):
        return lambda _: True
    comparison = replace(leaf, operator=NEGATED[leaf.operator]) if negated else leaf
    return lambda file: _may_hold(file, comparison)


def _may_hold(file: DeltaFile, condition: Comparison[Column]) -> bool:
    name = condition.column.path[0]
    if name in file.partition:
        value = file.partition[name]
        if condition.column.width is not None and isinstance(value, str):
            value = value.ljust(condition.column.width)  # as the rows are read
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


def _may_be_true(
    condition: Comparison[Column], low: Any, high: Any, *, file_has_null: bool, file_has_value: bool
) -> bool:
    operator = condition.operator
    if operator == IS_NULL or (operator == NULL_SAFE_EQUAL and condition.values[0] is None):
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
    if operator == STARTS_WITH:
        return bool(high >= literal and low[: len(literal)] <= literal)
    ends = {"low": low, "high": high}
    tests = BOUND_TESTS.get(EQUAL if operator in (IN, NULL_SAFE_EQUAL) else operator, ())
    return all(FUNCTIONS[test](ends[end], literal) for end, test in tests)
