"""Settings of the service from the application's configuration."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from catalog.errors import InvalidArgumentError

ENABLED = "spark.qbeast.use.service.enabled"
OPTIMIZATION_INTERVAL = "spark.qbeast.use.optimization-interval"
LISTENER_INTERVAL = "spark.qbeast.use.listener-interval"
MAX_TABLES = "spark.qbeast.use.service.max-tables"
POOL = "spark.qbeast.use.service.pool"

_UNITS = {
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
    **dict.fromkeys(("w", "week", "weeks"), 604_800_000),
}


@dataclass(frozen=True)
class ServiceSettings:
    """Settings of the service; times in milliseconds.

    Attributes:
        enabled: whether the service optimizes tables.
        optimization_interval: time between two runs of a table.
        listener_interval: time between two checks of the tables.
        max_tables: tables optimized at the same time.
        pool: scheduler pool of its Spark jobs.
    """

    enabled: bool = True
    optimization_interval: int = 600_000
    listener_interval: int = 30_000
    max_tables: int = 2
    pool: str = "use"

    @classmethod
    def of(cls, conf: Callable[[str, str], str | None]) -> ServiceSettings:
        """Reads the settings.

        Args:
            conf: returns the value of a setting, or the default that it is given.

        Raises:
            InvalidArgumentError: a value is invalid.
        """

        def text(key: str, default: str) -> str:
            return (conf(key, default) or default).strip()

        enabled = text(ENABLED, "true").lower()
        if enabled not in ("true", "false"):
            raise InvalidArgumentError.of(ENABLED, enabled, "true or false")
        tables = text(MAX_TABLES, "2")
        if not re.fullmatch(r"\d{1,4}", tables) or int(tables) < 1:
            raise InvalidArgumentError.of(MAX_TABLES, tables, "a whole number of at least 1")
        return cls(
            enabled == "true",
            time_millis(OPTIMIZATION_INTERVAL, text(OPTIMIZATION_INTERVAL, "10 minutes")),
            time_millis(LISTENER_INTERVAL, text(LISTENER_INTERVAL, "30000 ms")),
            int(tables),
            text(POOL, "use"),
        )


def time_millis(name: str, text: str) -> int:
    """Parses a duration: ``10 minutes``, ``90s``, ``1 hour 30 minutes``; a number without a unit is milliseconds.

    Raises:
        InvalidArgumentError: the text is not a positive duration.
    """
    rest = text.strip().lower().removeprefix("interval ")
    parts = re.findall(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", rest)
    whole = re.fullmatch(r"(\s*\d+(?:\.\d+)?\s*[a-z]*\s*)+", rest) is not None
    total = 0.0
    for number, unit in parts:
        if unit not in _UNITS and not (unit == "" and len(parts) == 1):
            whole = False
        total += float(number) * _UNITS.get(unit, 1)
    if not whole or total < 1:
        raise InvalidArgumentError.of(name, text, "a positive time such as '10 minutes', '90s' or '30000 ms'")
    return int(total)
