"""Local times in time zones, as Java and so Spark reads them."""

from __future__ import annotations

from datetime import datetime

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
