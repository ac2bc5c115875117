"""Hours of the day in which runs may start: ``01:00-05:00 Europe/Madrid``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from catalog.settings.setting import ValueType

_FORM = re.compile(r"\s*(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})(?:\s+(\S+))?\s*", re.ASCII)
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Hours:
    """A part of each day, by the clock of a time zone. If it ends before it begins, it ends on the next day.

    Attributes:
        begin: local time at which it begins.
        end: local time at which it ends.
        zone: the time zone.
    """

    begin: time
    end: time
    zone: ZoneInfo

    @classmethod
    def of(cls, text: str) -> Hours:
        """Reads a text such as ``22:30-05:00``; UTC counts if it names no time zone.

        Raises:
            ValueError: it is no range of hours, it is empty, or there is no such time zone.
        """
        match = _FORM.fullmatch(text)
        if match is None:
            raise ValueError(text)
        *numbers, zone = match.groups()
        hour, minute, end_hour, end_minute = map(int, numbers)
        # 24:00 is how people write the end of a day.
        begin, end = time(hour, minute), time(0 if (end_hour, end_minute) == (24, 0) else end_hour, end_minute)
        if begin == end:
            raise ValueError(text)
        try:
            return cls(begin, end, ZoneInfo(zone or "UTC"))
        except (ZoneInfoNotFoundError, OSError) as error:
            raise ValueError(text) from error

    def __str__(self) -> str:
        """As it is written."""
        return f"{self.begin:%H:%M}-{self.end:%H:%M} {self.zone.key}"

    def contains(self, millis: int) -> bool:
        """Whether a time lies within it.

        Args:
            millis: epoch milliseconds.
        """
        now = self._local(millis).time()
        if self.begin < self.end:
            return self.begin <= now < self.end
        return now >= self.begin or now < self.end

    def next_begin(self, millis: int) -> int:
        """When it begins next, in epoch milliseconds; later than a time.

        Where clocks are set forward over the begin, it is the same time later.

        Args:
            millis: the time, epoch milliseconds.
        """
        day = self._local(millis).date()
        while True:
            begin = int(datetime.combine(day, self.begin, self.zone).timestamp() * 1000)
            if begin > millis:
                return begin
            day += _DAY

    def _local(self, millis: int) -> datetime:
        return datetime.fromtimestamp(millis / 1000, timezone.utc).astimezone(self.zone)


HOURS = ValueType("hours", "hours of the day, such as '01:00-05:00' or '22:30-05:00 Europe/Madrid'", Hours.of)
