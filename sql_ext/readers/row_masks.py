"""Which rows a condition is true for, in Arrow: three-valued logic, NaN equal to itself and above all numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from sql_ext.readers.row_conditions import Combination, Comparison, Condition
from sql_ext.readers.table_columns import Column


def mask_of(condition: Condition, column_of: Callable[[Column], pa.Array], rows: int) -> pa.Array:
    """Returns for each row whether the condition is true, false, or NULL.

    Args:
        condition: the condition.
        column_of: returns the values of a column.
        rows: number of rows.
    """
    if isinstance(condition, Combination):
        masks = [mask_of(part, column_of, rows) for part in condition.of]
        if condition.operator == "not":
            return pc.invert(masks[0])
        combine = pc.and_kleene if condition.operator == "and" else pc.or_kleene
        result = masks[0]
        for mask in masks[1:]:
            result = combine(result, mask)
        return result
    return _compared(condition, column_of(condition.column))


def _compared(comparison: Comparison, values: pa.Array) -> pa.Array:
    operator, kind = comparison.operator, comparison.column.sql_type
    if operator == "is_null":
        return values.is_null()
    if operator == "starts_with":
        return pc.starts_with(values, pattern=comparison.values[0])
    if all(value is None for value in comparison.values):
        return values.is_null() if operator == "<=>" else pa.nulls(len(values), pa.bool_())
    if kind in ("float", "double"):
        values = values.cast(pa.float64())
    literals = [pa.scalar(value, type=values.type) for value in comparison.values]
    if operator == "in":
        masks = [_equal(values, literal) for literal in literals]
        result = masks[0]
        for mask in masks[1:]:
            result = pc.or_kleene(result, mask)
        return result
    (literal,) = literals
    if operator == "<=>":
        return pc.fill_null(_equal(values, literal), fill_value=False)
    if operator in ("=", "<>"):
        equal = _equal(values, literal)
        return equal if operator == "=" else pc.invert(equal)
    return _ordered(values, operator, literal)


def _is_nan(literal: pa.Scalar) -> bool:
    return literal.is_valid and pa.types.is_floating(literal.type) and math.isnan(literal.as_py())


def _equal(values: pa.Array, literal: pa.Scalar) -> pa.Array:
    return pc.is_nan(values) if _is_nan(literal) else pc.equal(values, literal)


def _ordered(values: pa.Array, operator: str, literal: pa.Scalar) -> pa.Array:
    """An order comparison in which NaN is equal to itself and above all numbers."""
    functions = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}
    if not pa.types.is_floating(values.type):
        return functions[operator](values, literal)
    nan = pc.is_nan(values)
    if _is_nan(literal):
        constant = {
            "<": pc.invert(nan),
            "<=": pc.or_(nan, pc.invert(nan)),
            ">": pc.and_(nan, pc.invert(nan)),
            ">=": nan,
        }
        return constant[operator]
    compared = functions[operator](values, literal)
    return pc.or_(compared, nan) if operator in (">", ">=") else compared
