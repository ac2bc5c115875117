"""Conditions that are equivalent to a comparison of a function of a column, but compare the column itself. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from catalog.jvm.skipping_report import PlannedCondition

_OPPOSITE_SIGN = {"+": "-", "-": "+"}
_TRUNCATED = {
    "YEAR": "1 YEAR", "YYYY": "1 YEAR", "YY": "1 YEAR", "QUARTER": "3 MONTHS", "MONTH": "1 MONTH", "MM": "1 MONTH",
    "MON": "1 MONTH", "WEEK": "7 DAYS", "DAY": "1 DAY", "DD": "1 DAY", "HOUR": "1 HOUR", "MINUTE": "1 MINUTE",
    "SECOND": "1 SECOND",
}  # fmt: skip
_WHOLE = re.compile(r"\d+[LSY]?")
_EXACT_TYPES = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DATE")


def equivalent(condition: PlannedCondition) -> str | None:
    """Returns an equivalent condition on the column itself; None if no simple one is known.

    Args:
        condition: a condition whose subject is a function.
    """
    make = _EQUIVALENTS.get(condition.function)
    return make(condition) if make is not None and len(condition.constants) == 1 else None


def _range(column: str, comparison: str, start: str, end: str) -> str | None:
    """Returns the condition for a period ``[start, end)`` that the function maps to one value."""
    return {
        "=": f"{column} >= {start} AND {column} < {end}",
        ">=": f"{column} >= {start}",
        ">": f"{column} >= {end}",
        "<": f"{column} < {start}",
        "<=": f"{column} < {end}",
    }.get(comparison)


def _year(condition: PlannedCondition) -> str | None:
    year, column = condition.constants[0], _column(condition)
    if column is None or not _WHOLE.fullmatch(year) or not 1 <= int(year) < 9999:
        return None
    if condition.type not in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        return None
    start, end = (f"{condition.type} '{number:04d}-01-01'" for number in (int(year), int(year) + 1))
    return _range(column, condition.comparison, start, end)


def _truncated(condition: PlannedCondition) -> str | None:
    # A column can have the name of a unit.
    texts = [argument for argument in condition.arguments if argument.startswith("'")]
    units = [_TRUNCATED.get(text.strip("'").upper()) for text in texts]
    unit, column = next((unit for unit in units if unit), None), _column(condition)
    # Only the start of a period is compared without a difference; what it is, Spark knows better.
    if unit is None or column is None or condition.comparison != "=":
        return None
    start = condition.constants[0]
    return f"{column} >= {start} AND {column} < {start} + INTERVAL {unit}, if {start} is the start of a period"


def _prefix(condition: PlannedCondition) -> str | None:
    column, value = _column(condition), condition.constants[0]
    starts = condition.arguments[1:2] in (("1",), ("0",)) and len(condition.arguments) == 3
    if condition.comparison != "=" or column is None or not starts or "%" in value or "_" in value or "\\" in value:
        return None
    if condition.arguments[2] != str(len(value) - 2) or not value.startswith("'") or "''" in value:
        return None
    return f"{column} LIKE {value[:-1]}%'"


def _shifted(sign: str) -> Callable[[PlannedCondition], str | None]:
    def make(condition: PlannedCondition) -> str | None:
        left, *rest = condition.arguments
        if left not in condition.columns or len(rest) != 1 or condition.comparison not in ("=", "<", "<=", ">", ">="):
            return None
        # Floating-point numbers are rounded, so the two conditions would differ.
        if condition.type not in _EXACT_TYPES or not _WHOLE.fullmatch(rest[0]):
            return None
        return f"{left} {condition.comparison} {condition.constants[0]} {_OPPOSITE_SIGN[sign]} {rest[0]}"

    return make


def _column(condition: PlannedCondition) -> str | None:
    """Returns the argument that is the column itself; None if the function is applied to something else."""
    return next((argument for argument in condition.arguments if argument in condition.columns), None)


_EQUIVALENTS: Mapping[str, Callable[[PlannedCondition], str | None]] = {
    "year": _year,
    "trunc": _truncated,
    "date_trunc": _truncated,
    "substring": _prefix,
    "substr": _prefix,
    "left": _prefix,
    "add": _shifted("+"),
    "subtract": _shifted("-"),
    "date_add": _shifted("+"),
    "date_sub": _shifted("-"),
}
