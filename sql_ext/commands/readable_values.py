"""Values of results as people read them: bytes, durations and times with units, large numbers in groups of digits."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from catalog.quantities import duration_text, size_text

# Smaller numbers are no epoch milliseconds of a table, such as the 0 of the first revision.
_FIRST_MOMENT = 1_000_000_000_000


def readable(column: str, value: Any) -> Any:
    """Returns a value of a column of ours as text with its unit; other values are unchanged.

    Args:
        column: name of the column, which tells the unit.
        value: the value.
    """
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    if _is_size(column):
        return size_text(value)
    if column.endswith("_ms"):
        return duration_text(value)
    if _is_moment(column) and value >= _FIRST_MOMENT:
        # As Spark's timestamps are shown: in the time zone of this process.
        return datetime.fromtimestamp(value / 1000).isoformat(" ", "seconds")  # noqa: DTZ006
    return str(value) if _is_number_of(column) else f"{value:,}"


def readable_name(column: str) -> str:
    """Returns the name of a column whose values have units."""
    return column.removesuffix("_ms")


def _is_size(column: str) -> bool:
    return column in ("bytes", "size", "cost_per_read") or column.endswith("_bytes")


def _is_moment(column: str) -> bool:
    """Whether the values are epoch milliseconds."""
    return column in ("timestamp", "modification_time") or column.endswith("_at")


def _is_number_of(column: str) -> bool:
    """Whether the values are identifiers."""
    return column in ("version", "iteration", "score") or column.endswith(("_id", "version"))
