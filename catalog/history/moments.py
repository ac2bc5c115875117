"""Epoch milliseconds as moments, whoever wrote them."""

from __future__ import annotations

from datetime import datetime, timezone

# The end of the year 9998: later moments are none in Python, nor a day before in some time zone.
LAST_MILLIS = 253_370_764_799_999


def moment(millis: object) -> datetime | None:
    """The moment in UTC; None for what is none, such as a text, a negative number or a year after 9998; total."""
    if isinstance(millis, bool) or not isinstance(millis, int) or not 0 <= millis <= LAST_MILLIS:
        return None
    return datetime.fromtimestamp(millis / 1000, tz=timezone.utc)
