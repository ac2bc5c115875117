"""Numbers of the format's ordered data types: their bounds, their rounding and their JSON spelling."""

import math
import struct
import sys
from collections.abc import Mapping
from decimal import Decimal

from otree import format_json
from otree.errors import IndexFormatError

# A range of doubles may not be wider than the largest double, or its reciprocal would be zero.
_WIDEST = sys.float_info.max / 2
_WIDEST_FLOAT = float(struct.unpack(">f", bytes.fromhex("7f7fffff"))[0])

_BOUNDS: dict[str, tuple[int | float, int | float]] = {
    "IntegerDataType": format_json.INT_BOUNDS,
    "LongDataType": format_json.LONG_BOUNDS,
    "TimestampDataType": format_json.LONG_BOUNDS,
    "DateDataType": format_json.LONG_BOUNDS,
    "FloatDataType": (-_WIDEST_FLOAT, _WIDEST_FLOAT),
    "DoubleDataType": (-_WIDEST, _WIDEST),
    "DecimalDataType": (-_WIDEST, _WIDEST),
}
ORDERED_DATA_TYPES = frozenset(_BOUNDS)


def is_whole(data_type: str) -> bool:
    """Say whether the numbers of a data type are spelled as whole numbers.

    Raises:
        IndexFormatError: If the data type has no order among numbers.
    """
    return isinstance(bounds(data_type)[0], int)


def bounds(data_type: str) -> tuple[int | float, int | float]:
    """Return the smallest and largest number a range of a data type may reach.

    Raises:
        IndexFormatError: If the data type has no order among numbers.
    """
    if data_type not in _BOUNDS:
        raise IndexFormatError.of_field("orderedDataType", data_type, "one of " + ", ".join(sorted(_BOUNDS)))
    return _BOUNDS[data_type]


def clamp(number: int | float, data_type: str) -> int | float:
    """Return the number, or the bound of the data type that it exceeds."""
    least, greatest = bounds(data_type)
    return min(max(number, least), greatest)


def typed(number: int | float, data_type: str) -> int | float:
    """Return the number as the data type holds it: a whole number, a single or a double."""
    if is_whole(data_type):
        return math.floor(number)
    if data_type == "FloatDataType":
        return _single(float(clamp(number, data_type)))
    return as_double(number)


def as_double(number: int | float | Decimal) -> float:
    """Return the nearest double; a whole number beyond all doubles becomes infinite."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def spelled(number: int | float, data_type: str) -> int | float:
    """Return the number whose JSON spelling is the data type's: singles get their shortest decimals."""
    if data_type != "FloatDataType":
        return number
    shortest = next(text for digits in range(1, 18) if _single(float(text := f"{number:.{digits}g}")) == number)
    return float(shortest)


def read(node: Mapping[str, object], field: str, data_type: str) -> int | float:
    """Read a number field of a data type.

    Raises:
        IndexFormatError: If it is absent, no number, or not allowed in the data type.
    """
    if data_type == "IntegerDataType":
        return format_json.whole_field(node, field, format_json.INT_BOUNDS)
    number = format_json.number_field(node, field)
    if not is_whole(data_type):
        return typed(number, data_type)
    # The format cuts a fraction toward zero.
    whole = math.trunc(number)
    if clamp(whole, data_type) != whole:
        raise IndexFormatError.of_field(field, number, "a 64-bit whole number")
    return whole


def is_usable_range(low: int | float, high: int | float) -> bool:
    """Say whether values between the two numbers can be scaled to [0, 1] in doubles."""
    span = float(high) - float(low)
    return span > 0.0 and 0.0 < 1.0 / span < math.inf


def separated(low: int | float, high: int | float, data_type: str) -> tuple[int | float, int | float]:
    """Widen a range just enough to be usable: neighbouring large whole numbers are one and the same double.

    Args:
        low: Lower end, within the bounds of the data type.
        high: Upper end, likewise, not below the lower.
        data_type: The format's name of the data type.

    Returns:
        A usable range that holds the given one.
    """
    if is_usable_range(low, high):
        return low, high
    precision = math.ulp(max(abs(float(low)), abs(float(high))))
    step = max(1, int(precision)) * 2 if is_whole(data_type) else max(precision, sys.float_info.min) * 4
    wider = clamp(high + step, data_type)
    return (low, wider) if is_usable_range(low, wider) else (clamp(low - step, data_type), high)


def _single(number: float) -> float:
    try:
        return float(struct.unpack(">f", struct.pack(">f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)
