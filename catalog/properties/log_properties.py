"""The properties that say how often the service consolidates the log of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.properties.lifecycle_properties import Pace
from catalog.settings.setting import Setting, duration, whole_number

LOG_PREFIX = "use.log."

LOG_COMMITS: Setting[int] = Setting(
    f"{LOG_PREFIX}consolidation.commits",
    whole_number(1),
    "Writes a checkpoint and merges files of events in the background, once the table has so many new commits.",
)
LOG_INTERVAL: Setting[float] = Setting(
    f"{LOG_PREFIX}consolidation.interval",
    duration("a positive duration such as '1 hour' or '30 minutes'", spark_syntax=False),
    "Writes a checkpoint and merges files of events in the background, with at least this time in between.",
)
LOG_SETTINGS: tuple[Setting[object], ...] = (LOG_COMMITS, LOG_INTERVAL)


@dataclass(frozen=True)
class LogPolicy:
    """When the service consolidates the log of a table.

    Attributes:
        pace: how often.
        asked: the properties that count, as they are written.
    """

    pace: Pace
    asked: Mapping[str, str]


def log_policy(configuration: Mapping[str, str]) -> LogPolicy | None:
    """Returns what a table's properties ask for; None if the log is left to Delta.

    Raises:
        InvalidArgumentError: a value that is not accepted.
    """
    commits, interval = LOG_COMMITS.optional_value(configuration), LOG_INTERVAL.optional_value(configuration)
    if commits is None and interval is None:
        return None
    asked = {s.name: configuration[s.name] for s in LOG_SETTINGS if s.name in configuration}
    return LogPolicy(Pace(None if interval is None else int(interval), commits), asked)
