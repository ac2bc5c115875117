"""Which rows a condition is true for, in Arrow: three-valued logic, NaN equal to itself and above all numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from catalog.predicates.conditions import Comparison, Unknown, visit
from catalog.predicates.operators import IS_NULL, NOT_EQUAL, NULL_SAFE_EQUAL, ORDERED, STARTS_WITH
from sql_ext.readers.literals import FLOATING
from sql_ext.readers.row_conditions import RowCondition
from sql_ext.readers.table_columns import Column


def mask_of(condition: RowCondition, column_of: Callable[[Column], pa.Array], rows: int) -> pa.Array:
    """Returns for each row whether the condition is true, false, or NULL.

    Args:
        condition: the condition.
        column_of: returns the values of a column.
        rows: number of rows.
    """

    def leaf(of: Comparison[Column] | Unknown, _: bool) -> pa.Array:
        return pa.nulls(rows, pa.bool_()) if isinstance(of, Unknown) else _compared(of, column_of(of.column))

    def both(masks: Sequence[pa.Array]) -> pa.Array:
        return reduce(pc.and_kleene, masks)

    def either(masks: Sequence[pa.Array]) -> pa.Array:
        return reduce(pc.or_kleene, masks)

    return visit(condition, leaf, both, either, pc.invert)


def _compared(comparison: Comparison[Column], values: pa.Array) -> pa.Array:
    operator = comparison.operator
    if operator == IS_NULL:
        return values.is_null()
    if operator == STARTS_WITH:
        return pc.starts_with(values, pattern=comparison.values[0])
    if all(value is None for value in comparison.values):
        return values.is_null() if operator == NULL_SAFE_EQUAL else pa.nulls(len(values), pa.bool_())
    if comparison.column.sql_type in FLOATING:
        values = values.cast(pa.float64())
    literals = [pa.scalar(value, type=values.type) for value in comparison.values]
    if operator in ORDERED:
        return _ordered(values, operator, literals[0])
    equal = reduce(pc.or_kleene, (_equal(values, literal) for literal in literals))
    if operator == NULL_SAFE_EQUAL:
        return pc.fill_null(equal, fill_value=False)
    return pc.invert(equal) if operator == NOT_EQUAL else equal


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
