"""The properties that say how long the history of a table stays, and how often the service reclaims the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from catalog.errors import InvalidArgumentError, RetentionError
from catalog.settings.setting import Setting, ValueType, duration

RETENTION_PREFIX = "use.retention."
VACUUM_PREFIX = "use.vacuum."

# With use.retention.hours alone.
_DEFAULT_INTERVAL = "1 day"
# More than a century; larger numbers do not fit the arithmetic of Delta.
MOST_HOURS = 1_000_000


def _hours(text: str) -> float:
    hours = float(text)
    if not (math.isfinite(hours) and 0 < hours <= MOST_HOURS):
        raise ValueError(text)
    return hours


RETENTION_HOURS: Setting[float] = Setting(
    f"{RETENTION_PREFIX}hours",
    ValueType("number", "a number of hours above 0, at most 1000000", _hours),
    "How long history stays. The service deletes what is older: deleted rows, files, log entries and events.",
    unset="nothing is deleted automatically",
)
VACUUM_INTERVAL: Setting[float] = Setting(
    f"{VACUUM_PREFIX}interval",
    duration("a positive duration such as '1 day' or '12 hours'", spark_syntax=False),
    "Time between two reclamations in the background, at least; without use.retention.hours, the service only deletes "
    "files that the table's own retention lets go.",
    unset=f"{_DEFAULT_INTERVAL} with use.retention.hours",
)
# Of Delta, whose default it is.
DELTA_RETENTION: Setting[float] = Setting(
    "delta.deletedFileRetentionDuration",
    duration("a duration such as 'interval 7 days'"),
    "How long Delta keeps removed files.",
    "interval 1 week",
)
# Delta has to be able to read the commits of the versions, too.
DELTA_LOG_RETENTION: Setting[float] = Setting(
    "delta.logRetentionDuration",
    duration("a duration such as 'interval 30 days'"),
    "How long Delta keeps the log of older versions.",
    "interval 30 days",
)
RETENTION_SETTINGS: tuple[Setting[object], ...] = (RETENTION_HOURS, VACUUM_INTERVAL)
_MILLIS_PER_HOUR = 3_600_000


@dataclass(frozen=True)
class RetentionPolicy:
    """What the service reclaims of a table.

    Attributes:
        interval: milliseconds between two reclamations, at least.
        hours: how long history stays; None = only files are deleted, by the table's own retention.
        asked: the properties that count, as they are written.
    """

    interval: int
    hours: float | None
    asked: Mapping[str, str]


def retention_policy(configuration: Mapping[str, str]) -> RetentionPolicy | None:
    """Returns what a table's properties ask for; None if nothing is reclaimed automatically.

    Raises:
        InvalidArgumentError: a value that is not accepted.
    """
    hours, interval = RETENTION_HOURS.optional_value(configuration), VACUUM_INTERVAL.optional_value(configuration)
    if hours is None and interval is None:
        return None
    asked = {s.name: configuration[s.name] for s in RETENTION_SETTINGS if s.name in configuration}
    return RetentionPolicy(int(interval or VACUUM_INTERVAL.parse(_DEFAULT_INTERVAL)), hours, asked)


def floor_hours_of(configuration: Mapping[str, str]) -> float:
    """Returns how long Delta keeps removed files of a table; 0 if its property cannot be read, which Delta refuses."""
    try:
        return DELTA_RETENTION.value(configuration) / _MILLIS_PER_HOUR
    except InvalidArgumentError:
        return 0.0


def check_retention(configuration: Mapping[str, str]) -> None:
    """Refuses a retention below that of Delta.

    Args:
        configuration: all properties of the table.

    Raises:
        RetentionError: it is below.
    """
    hours, floor_hours = RETENTION_HOURS.optional_value(configuration), floor_hours_of(configuration)
    if hours is not None and hours < floor_hours:
        raise RetentionError(
            f"{RETENTION_HOURS.name} = {configuration[RETENTION_HOURS.name]} is below the table's "
            f"delta.deletedFileRetentionDuration of {floor_hours:g} hours: it must be at least as long."
        )


def lengthened_retention(configuration: Mapping[str, str]) -> dict[str, str]:
    """Returns the properties of Delta that are too short for ``use.retention.hours``, as they must be.

    Delta refuses time travel to versions older than ``delta.deletedFileRetentionDuration``, whatever files exist.

    Args:
        configuration: all properties of the table.
    """
    hours = RETENTION_HOURS.optional_value(configuration)
    if hours is None:
        return {}
    text = f"interval {math.ceil(hours * 3600)} seconds"
    return {
        setting.name: text
        for setting in (DELTA_RETENTION, DELTA_LOG_RETENTION)
        if _is_shorter(setting, configuration, hours * _MILLIS_PER_HOUR)
    }


def _is_shorter(setting: Setting[float], configuration: Mapping[str, str], millis: float) -> bool:
    try:
        return setting.value(configuration) < millis
    except InvalidArgumentError:
        return False
