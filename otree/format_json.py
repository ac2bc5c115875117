"""Typed reading and exact writing of the JSON texts of the index format."""

import json
import math
from collections.abc import Mapping

from otree.errors import IndexFormatError

INT_BOUNDS = (-(2**31), 2**31 - 1)
LONG_BOUNDS = (-(2**63), 2**63 - 1)


def _refuse_constant(name: str) -> float:
    raise IndexFormatError.of_field("number", name, "a finite number")


def parse(text: str, what: str) -> object:
    """Parse JSON text.

    Args:
        text: The JSON text.
        what: Name of the tag or property, for the error message.

    Returns:
        The parsed node.

    Raises:
        IndexFormatError: If the text is not JSON (NaN and Infinity are not JSON).
    """
    try:
        node: object = json.loads(text, parse_constant=_refuse_constant)
    except IndexFormatError:
        raise
    except (ValueError, TypeError, RecursionError) as error:
        raise IndexFormatError.of_field(what, text, f"JSON text ({error})") from error
    return node


def write(node: object) -> str:
    """Write a node compactly, with keys in the order given.

    Args:
        node: Dicts, lists, strings and finite numbers; a float is always spelled with a fraction or an exponent.

    Returns:
        The JSON text.
    """
    return json.dumps(node, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def as_object(node: object, field: str) -> Mapping[str, object]:
    """Return the node as a JSON object.

    Raises:
        IndexFormatError: If it is not one.
    """
    if not isinstance(node, Mapping):
        raise IndexFormatError.of_field(field, node, "a JSON object")
    return node


def as_array(node: object, field: str) -> list[object]:
    """Return the node as a JSON array.

    Raises:
        IndexFormatError: If it is not one.
    """
    if not isinstance(node, list):
        raise IndexFormatError.of_field(field, node, "a JSON array")
    return node


def text_field(node: Mapping[str, object], field: str) -> str:
    """Return a required string field.

    Raises:
        IndexFormatError: If it is absent or no string.
    """
    value = node.get(field)
    if not isinstance(value, str):
        raise IndexFormatError.of_field(field, value, "a string")
    return value


def whole_field(node: Mapping[str, object], field: str, bounds: tuple[int, int] = LONG_BOUNDS) -> int:
    """Return a required whole-number field.

    Args:
        node: The JSON object.
        field: Name of the field.
        bounds: Smallest and largest value allowed, both inclusive.

    Returns:
        The number.

    Raises:
        IndexFormatError: If it is absent, no whole number, or out of bounds.
    """
    value = node.get(field)
    if not isinstance(value, int) or isinstance(value, bool) or not bounds[0] <= value <= bounds[1]:
        raise IndexFormatError.of_field(field, value, f"a whole number from {bounds[0]} to {bounds[1]}")
    return value


def number_field(node: Mapping[str, object], field: str) -> int | float:
    """Return a required finite number field of either spelling.

    Raises:
        IndexFormatError: If it is absent, no number, or not finite.
    """
    value = node.get(field)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not _is_finite(value):
        raise IndexFormatError.of_field(field, value, "a finite number")
    return value


def _is_finite(value: int | float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all doubles
        return False
