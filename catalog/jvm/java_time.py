"""Times of the JVM: local times in time zones, as Java and so Spark reads them, and values of SQL as Python ones."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.errors import DateTimeException
from pyspark.sql import SparkSession

from catalog.jvm.java_values import jvm


def epoch_millis(spark: SparkSession, local: datetime, zone: str) -> int:
    """Milliseconds since the epoch of a local time.

    Of the two instants where clocks are turned back it is the first; in the hour that is left out, an hour later.

    Args:
        spark: a session.
        local: without a zone.
        zone: as Spark accepts it, such as ``Europe/Madrid``, ``+02:00`` or ``PST``.

    Raises:
        ValueError: the zone does not exist.
    """
    time = jvm(spark).java.time
    try:
        place = time.ZoneId.of(zone, time.ZoneId.SHORT_IDS)
    except DateTimeException as error:
        raise ValueError(f"{zone} is not a time zone") from error
    moment = time.LocalDateTime.parse(local.isoformat())
    return int(time.ZonedDateTime.ofLocal(moment, place, None).toInstant().toEpochMilli())


def python_time(value: Any) -> Any:
    """Returns an interval, timestamp or date of SQL as a value of Python; any other value stays as it is.

    A timestamp becomes a time in UTC, one without a time zone a time without one. Intervals of months stay as they are.

    Args:
        value: an argument as the JVM has it.
    """
    # Only the type tells: a Java object claims to have any attribute that it is asked for.
    if not isinstance(value, JavaObject):
        return value
    match str(value.getClass().getName()):
        case "java.time.Duration":
            return timedelta(milliseconds=value.toMillis())
        case "java.sql.Timestamp":
            return datetime.fromtimestamp(value.getTime() / 1000, tz=timezone.utc)
        case "java.time.Instant":
            return datetime.fromtimestamp(value.toEpochMilli() / 1000, tz=timezone.utc)
        case "java.time.LocalDateTime":
            return datetime.fromisoformat(str(value.withNano(0).toString()))
        case "java.sql.Date" | "java.time.LocalDate":
            return date.fromisoformat(str(value.toString()))
        case _:
            return value
