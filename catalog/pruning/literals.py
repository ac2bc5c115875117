"""Conversion of literals in comparisons to the units of the index."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from otree.data_types import format_data_type
from otree.transformation import Value

_MILLIS_PER_DAY = 86_400_000
# Other writers may store dates as local midnight in any zone: widen by more than the largest offset.
_DATE_SLACK = _MILLIS_PER_DAY + 1

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_REAL = ("float", "double")
_INSTANTS = ("timestamp", "timestamp_ntz")
# Bits of precision: whole numbers with fewer bits are exact in the type of the comparison.
_PRECISION = {"float": 24, "double": 53}
# Types to which a column may have been widened after a revision of this data type was created.
_WIDENED: Mapping[str, tuple[str, ...]] = {
    "IntegerDataType": (*_WHOLE, *_REAL, "decimal"),
    "LongDataType": (*_WHOLE, "decimal"),
    "FloatDataType": _REAL,
    "DateDataType": ("timestamp_ntz",),
}

Bounds = tuple[Value, Value]
"""(low, high): a value of at least the literal is not below low; a value of at most the literal is not above high."""


def is_comparable(column_type: str, data_type: str) -> bool:
    """Whether a revision of a data type of the format applies to a column of the current SQL type."""
    plain = "decimal" if column_type.startswith("decimal") else column_type
    return format_data_type(column_type) == data_type or plain in _WIDENED.get(data_type, ())


def bounds(value: Any, column_type: str, compared_as: str, data_type: str) -> Bounds | None:
    """Returns a bracket around a literal, such that comparing indexed values with it loses no row.

    Args:
        value: the literal, not null.
        column_type: SQL type of the column.
        compared_as: SQL type that the column is cast to for the comparison; its own type without a cast.
        data_type: the format's data type of the revision.

    Returns:
        The bracket in the unit of the index; None if this pair of types is not supported.
    """
    bracket = _bracket(value, column_type, compared_as)
    if bracket is not None and data_type == "DateDataType" and column_type != "date":
        return bracket[0] - _DATE_SLACK, bracket[1] + _DATE_SLACK
    return bracket


def _bracket(value: Any, column_type: str, compared_as: str) -> tuple[Any, Any] | None:
    if column_type in _WHOLE and compared_as in _PRECISION:
        return _rounded(value, _PRECISION[compared_as])
    if column_type in _WHOLE:
        exact = _whole(value, column_type, compared_as)
    elif column_type in _REAL:
        exact = value if compared_as in (column_type, "double") else None
    elif column_type.startswith("decimal"):
        exact = _decimal(value, column_type, compared_as)
    elif column_type in (*_INSTANTS, "date"):
        return _time(value, column_type, compared_as)
    elif column_type != compared_as:
        exact = None
    elif column_type in ("string", "binary"):
        exact = value
    elif column_type == "boolean":
        exact = int(value)
    else:
        exact = None
    return None if exact is None else (exact, exact)


def _whole(value: Any, column_type: str, compared_as: str) -> Value:
    if compared_as in _WHOLE:
        return int(value) if _WHOLE.index(compared_as) >= _WHOLE.index(column_type) else None
    digits = _digits(compared_as)
    widest = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}[column_type]
    return Decimal(value) if digits is not None and digits[0] >= widest else None


def _rounded(number: float, precision: int) -> tuple[float, float] | None:
    """Returns a bracket around the whole numbers that may round to a number."""
    if not math.isfinite(number):
        return None
    # Below the power of two, whole numbers are exact. Its upper neighbour rounds to the power itself.
    if abs(number) < 2**precision:
        return number, number
    step = math.ldexp(1.0, math.frexp(number)[1] - precision)
    return number - step, number + step


def _decimal(value: Any, column_type: str, compared_as: str) -> Value:
    # The index places decimals by their double values, in the same order as a comparison of doubles.
    if compared_as == "double":
        return value if math.isfinite(value) else None
    own, other = _digits(column_type), _digits(compared_as)
    if own is None or other is None:
        return None
    return Decimal(value) if other[0] >= own[0] and other[1] >= own[1] else None


def _digits(sql_type: str) -> tuple[int, int] | None:
    """Returns the digits before and after the point of a decimal type."""
    match = re.fullmatch(r"decimal\((\d+),(-?\d+)\)", sql_type)
    return None if match is None else (int(match[1]) - int(match[2]), int(match[2]))


def _time(value: Any, column_type: str, compared_as: str) -> tuple[int, int] | None:
    """Returns a bracket in epoch milliseconds, widened by the possible shift of a conversion between zones."""
    if compared_as not in (*_INSTANTS, "date"):
        return None
    if compared_as == "date":
        low, high = value * _MILLIS_PER_DAY, value * _MILLIS_PER_DAY
        if column_type != "date":  # any time of that day in any zone
            low, high = low - _MILLIS_PER_DAY, high + 2 * _MILLIS_PER_DAY
    else:
        low = high = value // 1000
        if column_type != compared_as:
            low, high = low - _MILLIS_PER_DAY, high + _MILLIS_PER_DAY
    slack = _DATE_SLACK if column_type == "date" else 0
    return low - slack, high + slack
