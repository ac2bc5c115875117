"""Points in time as callers write them, with the time zone in which they are read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import SparkSession

from catalog.errors import InvalidArgumentError
from catalog.jvm.java_time import epoch_millis
from catalog.jvm.session import TIME_ZONE_KEY

ACCEPTED = (
    "epoch milliseconds or 'yyyy-MM-dd HH:mm:ss', in the session's time zone unless one follows, such as +02:00 or "
    "Europe/Madrid"
)
_MILLIS = re.compile(r"\d{1,18}", re.ASCII)
_LOCAL = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)(?:[ T](?P<time>\d\d:\d\d(?::\d\d)?)(?:\.(?P<fraction>\d{1,6}))?)?"
    r"(?:\s*(?P<zone>Z|[+-]\d[\d:]*|[A-Za-z][\w/+:-]*))?",
    re.ASCII,
)


@dataclass(frozen=True)
class WrittenTime:
    """A point in time before its zone is known.

    Attributes:
        millis: epoch milliseconds, where they were written.
        local: date and time of day otherwise.
        zone: id of the time zone that was written; None = the session's.
    """

    millis: int | None = None
    local: datetime | None = None
    zone: str | None = None

    @classmethod
    def of(cls, name: str, text: str) -> WrittenTime:
        """Parses ``ACCEPTED``.

        Args:
            name: of the option, for the error.
            text: what was written.

        Raises:
            InvalidArgumentError: not a point in time.
        """
        written = text.strip()
        if _MILLIS.fullmatch(written):
            return cls(millis=int(written))
        match = _LOCAL.fullmatch(written)
        if match is None:
            raise InvalidArgumentError.of(name, text, ACCEPTED)
        fraction = (match["fraction"] or "").ljust(6, "0")
        try:
            local = datetime.fromisoformat(f"{match['day']} {match['time'] or '00:00'}")
        except ValueError as error:
            raise InvalidArgumentError.of(name, text, ACCEPTED) from error
        return cls(local=local.replace(microsecond=int(fraction)), zone=match["zone"])


@dataclass(frozen=True)
class Instant:
    """A point in time.

    Attributes:
        millis: since the epoch.
        text: as it was written, with the time zone in which it was read.
    """

    millis: int
    text: str


def instant(spark: SparkSession, name: str, text: str) -> Instant:
    """Reads a point in time as Spark does: in the session's time zone where the text names none.

    Args:
        spark: the session.
        name: of the option, for the error.
        text: see ``ACCEPTED``.

    Raises:
        InvalidArgumentError: not a point in time, or an unknown time zone.
    """
    written = WrittenTime.of(name, text)
    if written.millis is not None:
        return Instant(written.millis, f"epoch millisecond {written.millis}")
    if written.local is None:
        raise InvalidArgumentError.of(name, text, ACCEPTED)
    zone = written.zone or spark.conf.get(TIME_ZONE_KEY) or "UTC"
    try:
        millis = epoch_millis(spark, written.local, zone)
    except ValueError as error:
        raise InvalidArgumentError.of(name, text, f"{error}; {ACCEPTED}") from error
    return Instant(millis, f"{written.local} {zone}")
