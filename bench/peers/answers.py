"""Whether two engines gave the same answer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal


def texts_of(rows: Iterable[Sequence[object]]) -> list[list[str]]:
    """Rows as texts that JSON holds."""
    return [[_text(value) for value in row] for row in rows]


def is_same(found: Iterable[Sequence[object]], expected: Sequence[Sequence[str]]) -> bool:
    """Whether rows are those of :func:`texts_of`, but for their order and the rounding of numbers."""
    ordered, others = sorted(texts_of(found), key=_comparable), sorted(expected, key=_comparable)
    return len(ordered) == len(others) and all(
        len(row) == len(other) and all(map(_is_close, row, other)) for row, other in zip(ordered, others, strict=True)
    )


def _text(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int | float | Decimal):
        return repr(float(value))
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ")
    return str(value).rstrip()


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _comparable(row: Sequence[str]) -> list[str]:
    numbers = map(_number, row)
    return [text if number is None else f"{number:.4g}" for text, number in zip(row, numbers, strict=True)]


def _is_close(value: str, other: str) -> bool:
    number, second = _number(value), _number(other)
    if number is None or second is None:
        return value == other
    return math.isclose(number, second, rel_tol=1e-5, abs_tol=1e-4)
