"""What Spark's SQL says of a condition and one row, written down from the language and not from the planning code.

A condition is a tuple whose first item says what it is::

    ("const", True | False | None)
    ("and", left, right)    ("or", left, right)    ("not", condition)
    ("same", condition, True | False | None)       condition <=> literal, so IS [NOT] TRUE, FALSE, UNKNOWN
    ("coalesce", condition, True | False)
    ("opaque", number)                             a function of the row that nobody knows
    ("compare", operator, operand, literal)        = <=> < <= > >= starts_with
    ("in", operand, [literal, ...])
    ("is_null", operand)    ("is_not_null", operand)

An operand is ``Operand``: a column, perhaps cast, or a hash. Values are Python's: dates are days and timestamps are
microseconds since 1970, decimals are ``Decimal``, and None is null.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

WHOLE_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
DAY_MICROS = 86_400_000_000


class Fails(Exception):  # noqa: N818 - not an error of the test
    """The query fails at this row, so that there is no right answer."""


@dataclass(frozen=True)
class Zone:
    """A session's time zone that changes its clocks once."""

    before: int = 0
    after: int = 0
    change: int = 0

    def local(self, instant: int) -> int:
        return instant + (self.before if instant < self.change else self.after)

    def instant(self, local: int) -> int:
        """The earlier one where clocks show a time twice; what they skip is as if they had not been changed."""
        early, late = local - self.before, local - self.after
        return early if early < self.change or late < self.change else late


@dataclass(frozen=True)
class Operand:
    """A column, or the hash of some columns; ``cast`` is the type it is cast to."""

    column: str = ""
    sql_type: str = "int"
    cast: str | None = None
    hash_of: tuple[str, ...] = ()

    @property
    def compared_as(self) -> str:
        return self.cast or self.sql_type


@dataclass(frozen=True)
class Row:
    values: dict[str, Any]
    hashes: dict[tuple[str, ...], int] = field(default_factory=dict)
    opaque: dict[int, bool | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Session:
    """``mode`` is ansi, legacy (wraps around, null for what is malformed) or try (null for all that fails)."""

    mode: str = "legacy"
    zone: Zone = Zone()


def truth(node: tuple, row: Row, session: Session) -> bool | None:
    """True, False or None (unknown). Operands are evaluated from the left, and only as far as they matter.

    Raises:
        Fails: a cast fails.
    """
    kind = node[0]
    if kind == "const":
        return node[1]
    if kind == "opaque":
        return row.opaque[node[1]]
    if kind == "not":
        inner = truth(node[1], row, session)
        return None if inner is None else not inner
    if kind in ("and", "or"):
        decisive = kind == "or"
        left = truth(node[1], row, session)
        if left is decisive:
            return decisive
        right = truth(node[2], row, session)
        if right is decisive:
            return decisive
        return None if left is None or right is None else not decisive
    if kind == "same":
        return truth(node[1], row, session) is node[2]
    if kind == "coalesce":
        inner = truth(node[1], row, session)
        return node[2] if inner is None else inner
    return _of_values(node, row, session)


def _of_values(node: tuple, row: Row, session: Session) -> bool | None:
    kind = node[0]
    if kind in ("is_null", "is_not_null"):
        return (value_of(node[1], row, session) is None) == (kind == "is_null")
    if kind == "in":
        value = value_of(node[1], row, session)
        if not node[2]:
            return False
        if value is None:
            return None
        hits = [None if literal is None else order(value, literal) == 0 for literal in node[2]]
        return True if True in hits else None if None in hits else False
    _, operator, operand, literal = node
    value = value_of(operand, row, session)
    if operator == "<=>":
        if value is None or literal is None:
            return value is None and literal is None
        return order(value, literal) == 0
    if value is None or literal is None:
        return None
    if operator == "starts_with":
        return value.startswith(literal)
    sign = order(value, literal)
    return {"=": sign == 0, "<": sign < 0, "<=": sign <= 0, ">": sign > 0, ">=": sign >= 0}[operator]


def value_of(operand: Operand, row: Row, session: Session) -> Any:
    if operand.hash_of:
        return row.hashes[operand.hash_of]
    value = row.values[operand.column]
    return value if operand.cast is None else cast(value, operand.sql_type, operand.cast, session)


def order(left: Any, right: Any) -> int:
    """-1, 0 or 1 in Spark's order: NaN equals itself and is the largest, -0.0 equals 0.0, texts go by their bytes."""
    if isinstance(left, str):
        left, right = left.encode(), right.encode()
    if isinstance(left, float) and (math.isnan(left) or math.isnan(right)):
        return math.isnan(left) - math.isnan(right)
    return (left > right) - (left < right)


# ------------------------------------------------------------------------------------------------------------- casts


def cast(value: Any, source: str, target: str, session: Session) -> Any:
    """The value in another type.

    Raises:
        Fails: it has no place there, and the session does not give null instead.
    """
    if value is None or source == target:
        return value
    try:
        return _cast(value, source, target, session)
    except Fails:
        if session.mode == "try":
            return None
        raise


def _cast(value: Any, source: str, target: str, session: Session) -> Any:
    if source == "date" or source.startswith("timestamp"):
        return _of_time(value, source, target, session)
    if target in WHOLE_BITS:
        return _to_whole(value, source, target, session)
    if target == "boolean":
        return value != 0
    if target == "string":
        return str(value)
    if target == "float":
        return single(value)
    if target == "double":
        return nearest(value, 53)
    return _to_decimal(value, target, session)


def _to_whole(value: Any, source: str, target: str, session: Session) -> int | None:
    limit = 1 << WHOLE_BITS[target] - 1
    if source == "string":
        if re.fullmatch(r" *[+-]?[0-9]{1,18} *", value) is None:
            return _failed(session)
        value = int(value)
    elif source in ("float", "double"):
        if session.mode == "legacy":
            return 0 if math.isnan(value) else int(min(max(value, -limit), limit - 1))
        if not -limit <= value < limit:
            raise Fails
        return math.trunc(value)
    whole = math.trunc(value)
    if -limit <= whole < limit:
        return whole
    if session.mode != "legacy":
        raise Fails
    return (whole + limit) % (2 * limit) - limit


def _to_decimal(value: Any, target: str, session: Session) -> Decimal | None:
    precision, scale = digits(target)
    if isinstance(value, float) and not math.isfinite(value):
        return _failed(session)
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    rounded = exact.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, Context(prec=500))
    return rounded if abs(rounded) < Decimal(10) ** (precision - scale) else _failed(session)


def _of_time(value: int, source: str, target: str, session: Session) -> int | None:
    zone = session.zone
    if target == "bigint":
        return value // 1_000_000
    local = value * DAY_MICROS if source == "date" else zone.local(value) if source == "timestamp" else value
    if target == "date":
        return local // DAY_MICROS
    found = zone.instant(local) if target == "timestamp" else local
    if not -(2**63) <= found < 2**63:
        raise Fails
    return found


def _failed(session: Session) -> None:
    if session.mode == "ansi":
        raise Fails


def digits(decimal_type: str) -> tuple[int, int]:
    """Precision and scale."""
    precision, scale = decimal_type.removeprefix("decimal(").removesuffix(")").split(",")
    return int(precision), int(scale)


def single(value: Any) -> float:
    """The nearest single, as a double."""
    exact = value if isinstance(value, float) else nearest(value, 24)
    try:
        return struct.unpack(">f", struct.pack(">f", exact))[0]
    except OverflowError:
        return math.copysign(math.inf, exact)


def nearest(value: Any, bits: int) -> float:
    """A number rounded once, half to even, to so many bits."""
    if not isinstance(value, int):
        return float(value)
    excess = max(abs(value).bit_length() - bits, 0)
    kept, rest = abs(value) >> excess, abs(value) & (1 << excess) - 1
    half = 1 << excess >> 1
    kept += excess > 0 and (rest > half or (rest == half and kept & 1))
    return math.copysign(float(kept << excess), value)
