"""Literals of a condition, as values of the column's type.

Dates are days and timestamps microseconds since 1970, so that no value is outside of a type of Python.
"""

from __future__ import annotations

import math
import re
from datetime import date
from decimal import Context, Decimal
from typing import Any

import numpy as np
from sqlglot import exp

WHOLE_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
FLOATING = ("float", "double")
_DAY_MICROS = 86_400_000_000
_EPOCH = date(1970, 1, 1).toordinal()
# Above, a DOUBLE stands for several whole numbers.
_EXACT_IN_DOUBLE = 2**53
_MOST_DIGITS = 38
_EXACT = Context(prec=100)
_TARGETS = {
    exp.DType.TINYINT: "tinyint",
    exp.DType.SMALLINT: "smallint",
    exp.DType.INT: "int",
    exp.DType.BIGINT: "bigint",
    exp.DType.FLOAT: "float",
    exp.DType.DOUBLE: "double",
    exp.DType.DECIMAL: "decimal",
    exp.DType.DATE: "date",
    exp.DType.TIMESTAMPTZ: "timestamp",
    exp.DType.TIMESTAMPLTZ: "timestamp",
    exp.DType.TIMESTAMPNTZ: "timestamp_ntz",
}
_WORDS = re.compile(r"\s*([+-]?)(nan|inf|infinity)\s*", re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_DATE = r"(\d{4})-(\d{1,2})-(\d{1,2})"
_TIME = r"[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?"
_ZONE = r"(?:(Z)|([+-])(\d{2}):(\d{2}))"
_DATE_TEXT = re.compile(_DATE, re.ASCII)
_MOMENT_TEXT = re.compile(f"{_DATE}(?:{_TIME}{_ZONE}?)?", re.ASCII)


def literal(node: exp.Expr, sql_type: str, *, is_listed: bool = False) -> Any:
    """Returns the value of a literal in a column's type; None for NULL.

    Args:
        node: the literal; it may have a sign, brackets, and a type.
        sql_type: the type of the column as Spark writes it in lower case.
        is_listed: whether it is one of the list of IN. Spark compares the whole list in one type.

    Raises:
        ValueError: Spark compares the two in another type, or cannot compare them.
    """
    negative, target = False, ""
    while isinstance(node, (exp.Paren, exp.Neg, exp.Cast)):
        negative ^= isinstance(node, exp.Neg)
        if isinstance(node, exp.Cast):
            if target not in ("", _target(node)):
                raise ValueError(node)
            target = _target(node)
        node = node.this
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Literal) and not node.is_string:
        return _of_number(str(node.this), negative, target, sql_type, is_listed)
    if target.startswith("decimal") and isinstance(node, exp.Literal):
        return _of_number(str(node.this), negative, target, sql_type, is_listed)
    if negative and not (target in FLOATING and sql_type in FLOATING):
        raise ValueError(node)
    value = _of_other(node, target, sql_type)
    return -value if negative else value


def _target(cast: exp.Cast) -> str:
    """The type of a literal that has one, such as ``1L`` and ``DATE'2020-01-01'``."""
    found = _TARGETS.get(cast.to.this)
    if found is None or cast.args.get("safe") or cast.args.get("format"):
        raise ValueError(cast)
    if found == "decimal":
        digits = [part.name for part in cast.to.expressions] + ["10", "0"][len(cast.to.expressions) :]
        return f"decimal({','.join(digits)})"
    return found


def _of_other(node: exp.Expr, target: str, sql_type: str) -> Any:
    if isinstance(node, exp.Boolean) and not target and sql_type == "boolean":
        return bool(node.this)
    if isinstance(node, exp.HexString) and not target and sql_type == "binary":
        return bytes.fromhex("0" * (len(str(node.this)) % 2) + str(node.this))
    is_text = isinstance(node, exp.RawString) or (isinstance(node, exp.Literal) and node.is_string)
    both_floating = target in FLOATING and sql_type in FLOATING
    if not is_text or (target not in ("", sql_type) and not both_floating):
        raise ValueError(node)
    return _of_text(str(node.this), sql_type)


def _of_text(text: str, sql_type: str) -> Any:
    match sql_type:
        case "string":
            return text
        case "date":
            return _days(*_matched(_DATE_TEXT, text).groups())
        case "timestamp" | "timestamp_ntz":
            return _micros(_matched(_MOMENT_TEXT, text), has_zone=sql_type == "timestamp")
        case "float" | "double":
            sign, word = _matched(_WORDS, text).groups()
            if word.lower() == "nan" and sign:
                raise ValueError(text)
            return float(sign + word)
    raise ValueError(text)


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return found


def _days(year: str, month: str, day: str) -> int:
    return date(int(year), int(month), int(day)).toordinal() - _EPOCH


def _micros(found: re.Match[str], *, has_zone: bool) -> int:
    year, month, day, hour, minute, second, fraction, utc, sign, ahead, ahead_minutes = found.groups()
    if (utc or sign) and not has_zone:
        raise ValueError(found[0])
    hours, minutes, seconds = (int(part or 0) for part in (hour, minute, second))
    offset_hours, offset_minutes = int(ahead or 0), int(ahead_minutes or 0)
    if (
        hours > 23
        or minutes > 59
        or seconds > 59
        or offset_minutes > 59
        or offset_hours * 60 + offset_minutes > 18 * 60
    ):
        raise ValueError(found[0])
    offset = (offset_hours * 3600 + offset_minutes * 60) * (-1 if sign == "-" else 1)
    of_day = (hours * 3600 + minutes * 60 + seconds - offset) * 1_000_000 + int((fraction or "0").ljust(6, "0")[:6])
    return _days(year, month, day) * _DAY_MICROS + of_day


# ---------------------------------------------------------------------------------------------------------- numbers


def _of_number(text: str, negative: bool, target: str, sql_type: str, is_listed: bool) -> Any:
    """A number in a column's type, if Spark compares the two without rounding the column."""
    exponent = _matched(_NUMBER, text)[2]
    number = Decimal(text).copy_negate() if negative else Decimal(text)
    kind = target or ("double" if exponent else "decimal" if "." in text else "bigint")
    _check(number, kind, bool(exponent))
    if kind not in FLOATING and sql_type not in FLOATING:
        _check_digits(number, kind, sql_type)
    if sql_type in WHOLE_BITS:
        is_few = number.copy_abs() < _EXACT_IN_DOUBLE and not (is_listed and sql_type == "bigint")
        is_exact = kind not in FLOATING or (kind == "double" and is_few)
        if not is_exact or not _fits(number, sql_type):
            raise ValueError(text)
        return int(number)
    if sql_type in FLOATING:
        value = _single(number) if kind == "float" else float(number)
        if math.isinf(value):
            raise ValueError(text)
        return value
    if sql_type.startswith("decimal") and kind not in FLOATING:
        return _of_decimal(number, sql_type)
    raise ValueError(text)


def _check(number: Decimal, kind: str, has_exponent: bool) -> None:
    """Rejects what is no literal of its type."""
    if kind not in FLOATING:
        digits = number.as_tuple()
        if has_exponent or max(len(digits.digits), -int(digits.exponent)) > _MOST_DIGITS:
            raise ValueError(number)
    if kind.startswith("decimal("):
        _of_decimal(number, kind)
    elif kind in WHOLE_BITS and kind != "bigint" and not _fits(number, kind):
        raise ValueError(number)


def _check_digits(number: Decimal, kind: str, sql_type: str) -> None:
    """Rejects a number which has so many digits that Spark rounds the column to compare the two."""
    before, after = 20, 0
    if sql_type.startswith("decimal"):
        precision, after = _digits(sql_type)
        before = precision - after
    if kind in WHOLE_BITS:
        before = max(before, 10 if _fits(number, "int") else 20)
    elif kind == "decimal":
        after = max(after, -int(number.as_tuple().exponent))
    else:
        precision, scale = _digits(kind)
        before, after = max(before, precision - scale), max(after, scale)
    if before + after > _MOST_DIGITS:
        raise ValueError(number)


def _digits(sql_type: str) -> tuple[int, int]:
    precision, scale = sql_type[8:-1].split(",")
    return int(precision), int(scale)


def _fits(number: Decimal, sql_type: str) -> bool:
    end = 2 ** (WHOLE_BITS[sql_type] - 1)
    return -end <= number < end and number == int(number)


def _of_decimal(number: Decimal, sql_type: str) -> Decimal:
    precision, scale = _digits(sql_type)
    found = number.quantize(Decimal(1).scaleb(-scale), context=_EXACT)
    if found != number or (number and number.adjusted() >= precision - scale):
        raise ValueError(number)
    return found


def _single(number: Decimal) -> float:
    """The nearest FLOAT, unless rounding by way of DOUBLE may give another one."""
    double = float(number)
    near = [float(np.float32(value)) for value in (np.nextafter(double, -np.inf), double, np.nextafter(double, np.inf))]
    if near[0] != near[2]:
        raise ValueError(number)
    return near[1]
