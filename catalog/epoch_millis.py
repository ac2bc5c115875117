"""Conversion of epoch milliseconds, which may be invalid, to timestamps."""

from __future__ import annotations

from datetime import datetime, timezone

# The end of the year 9998: Python does not support later timestamps in every time zone.
LAST_MILLIS = 253_370_764_799_999


def moment(millis: object) -> datetime | None:
    """Returns the timestamp in UTC; None for an invalid value: a string, a negative number or a year after 9998."""
    if isinstance(millis, bool) or not isinstance(millis, int) or not 0 <= millis <= LAST_MILLIS:
        return None
    return datetime.fromtimestamp(millis / 1000, tz=timezone.utc)
