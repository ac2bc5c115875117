"""What a literal in a comparison says about the values of a column, in the units of the index."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from otree.data_types import format_data_type
from otree.transformation import Value

_MILLIS_PER_DAY = 86_400_000
# Dates of tables by other writers may be stored as local midnight of any zone: widen by the largest offset and a bit.
_DATE_SLACK = _MILLIS_PER_DAY + 1

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_REAL = ("float", "double")
_INSTANTS = ("timestamp", "timestamp_ntz")
# Bits of precision: whole numbers of less than this many are exact in the type that they are compared in.
_PRECISION = {"float": 24, "double": 53}
# Types that a column may have been widened to since a revision of this data type was made.
_WIDENED: Mapping[str, tuple[str, ...]] = {
    "IntegerDataType": (*_WHOLE, *_REAL, "decimal"),
    "LongDataType": (*_WHOLE, "decimal"),
    "FloatDataType": _REAL,
    "DateDataType": ("timestamp_ntz",),
}

Bounds = tuple[Value, Value]
"""(low, high): a row whose value is at least the literal is not below low, one at most the literal not above high."""


def is_comparable(column_type: str, data_type: str) -> bool:
    """Whether a column of today's SQL type may still be judged by a revision made for the format's data type."""
    plain = "decimal" if column_type.startswith("decimal") else column_type
    return format_data_type(column_type) == data_type or plain in _WIDENED.get(data_type, ())


def bounds(value: Any, column_type: str, compared_as: str, data_type: str) -> Bounds | None:
    """Brackets a literal so that comparing a row's indexed value with the bracket never loses the row.

    Args:
        value: the literal as the shim spells it, not null.
        column_type: SQL type of the column.
        compared_as: SQL type that the column is cast to for the comparison; its own type without a cast.
        data_type: the format's data type of the revision.

    Returns:
        The bracket in the unit of the index, or None when nothing is known about this pair of types.
    """
    found = _bracket(value, column_type, compared_as)
    if found is not None and data_type == "DateDataType" and column_type != "date":
        return found[0] - _DATE_SLACK, found[1] + _DATE_SLACK
    return found


def _bracket(value: Any, column_type: str, compared_as: str) -> tuple[Any, Any] | None:
    if column_type in _WHOLE and compared_as in _PRECISION:
        return _rounded(_real(value), _PRECISION[compared_as])
    if column_type in _WHOLE:
        exact = _whole(value, column_type, compared_as)
    elif column_type in _REAL:
        exact = _real(value) if compared_as in (column_type, "double") else None
    elif column_type.startswith("decimal"):
        exact = _decimal(value, column_type, compared_as)
    elif column_type in (*_INSTANTS, "date"):
        return _time(value, column_type, compared_as)
    elif column_type != compared_as:
        exact = None
    elif column_type == "string":
        exact = value
    elif column_type == "boolean":
        exact = int(value)
    elif column_type == "binary":
        exact = base64.b64decode(value)
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
    """Brackets the whole numbers that may round to a number, which neighbours in its type enclose."""
    if not math.isfinite(number):
        return None
    # Up to the power of two itself, which is also where its upper neighbour rounds to.
    if abs(number) < 2**precision:
        return number, number
    step = math.ldexp(1.0, math.frexp(number)[1] - precision)
    return number - step, number + step


def _real(value: str) -> float:
    return float(value.replace("Infinity", "inf"))


def _decimal(value: Any, column_type: str, compared_as: str) -> Value:
    # The index places decimals by their doubles, in the same order as a comparison of doubles sees them.
    if compared_as == "double":
        number = _real(value)
        return number if math.isfinite(number) else None
    own, other = _digits(column_type), _digits(compared_as)
    if own is None or other is None:
        return None
    return Decimal(value) if other[0] >= own[0] and other[1] >= own[1] else None


def _digits(sql_type: str) -> tuple[int, int] | None:
    """Digits before and after the point of a decimal type."""
    found = re.fullmatch(r"decimal\((\d+),(-?\d+)\)", sql_type)
    return None if found is None else (int(found[1]) - int(found[2]), int(found[2]))


def _time(value: Any, column_type: str, compared_as: str) -> tuple[int, int] | None:
    """Times in epoch milliseconds, widened by what a conversion between zones can shift."""
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
