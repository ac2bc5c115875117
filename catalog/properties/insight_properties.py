"""The properties that say what is recorded about a table: its commits, and the queries that read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.properties.lifecycle_properties import Pace
from catalog.properties.setting import BOOLEAN, Setting, whole_number

INSIGHTS_PREFIX = "use.insights."

INGESTION_ENABLED = Setting(
    f"{INSIGHTS_PREFIX}ingestion.enabled",
    BOOLEAN,
    "The service keeps the rows of `<table>.ingestion`, so that they outlast the log.",
    "false",
)
INGESTION_DAYS = Setting(
    f"{INSIGHTS_PREFIX}ingestion.days",
    whole_number(1, digits=6),
    "How many days the service keeps a row of `<table>.ingestion` after the log has lost the commit.",
    "365",
)
INSIGHT_SETTINGS: tuple[Setting[object], ...] = (INGESTION_ENABLED, INGESTION_DAYS)
_MILLIS_PER_DAY = 86_400_000
# The log has the newest commits, so nothing is lost between two recordings.
_PACE = Pace(interval=3_600_000, commits=1_000)


@dataclass(frozen=True)
class IngestionPolicy:
    """What the service keeps about the commits of a table.

    Attributes:
        keep_millis: how long rows are kept, in milliseconds.
        asked: the properties that count, as they are written.
        pace: how often.
    """

    keep_millis: int
    asked: Mapping[str, str]
    pace: Pace = _PACE


def ingestion_policy(configuration: Mapping[str, str]) -> IngestionPolicy | None:
    """Returns what a table's properties ask for; None if the service keeps nothing.

    Raises:
        InvalidArgumentError: a value that is not accepted.
    """
    days = INGESTION_DAYS.value(configuration)
    if not INGESTION_ENABLED.value(configuration):
        return None
    asked = {s.name: configuration[s.name] for s in (INGESTION_ENABLED, INGESTION_DAYS) if s.name in configuration}
    return IngestionPolicy(days * _MILLIS_PER_DAY, asked)
