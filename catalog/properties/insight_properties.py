"""The properties that say what is recorded about a table: its commits, and the queries that read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.errors import UseError
from catalog.properties.lifecycle_properties import Pace
from catalog.settings.setting import BOOLEAN, Setting, whole_number

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
    "How many days the service keeps the rows of `<table>.ingestion`.",
    "365",
)
CONSUMPTION_ENABLED = Setting(
    f"{INSIGHTS_PREFIX}consumption.enabled",
    BOOLEAN,
    "Queries that read the table are recorded in `<table>.consumption`.",
    "false",
)
CONSUMPTION_DAYS = Setting(
    f"{INSIGHTS_PREFIX}consumption.days",
    whole_number(1, digits=6),
    "How many days records of queries are kept.",
    "30",
)
CONSUMPTION_ROWS = Setting(
    f"{INSIGHTS_PREFIX}consumption.rows",
    whole_number(1, digits=12),
    "About how many records of queries are kept; the oldest files are deleted first.",
    "1000000",
)
INSIGHT_SETTINGS: tuple[Setting[object], ...] = (
    INGESTION_ENABLED,
    INGESTION_DAYS,
    CONSUMPTION_ENABLED,
    CONSUMPTION_DAYS,
    CONSUMPTION_ROWS,
)
_MILLIS_PER_DAY = 86_400_000
# The log has the newest commits, so nothing is lost between two recordings.
_PACE = Pace(interval=3_600_000, commits=1_000)


def records_scans(configuration: Mapping[str, str]) -> bool:
    """Whether queries that read a table are recorded; a value that is not accepted counts as no.

    Args:
        configuration: the table's properties.
    """
    try:
        return CONSUMPTION_ENABLED.value(configuration)
    except UseError:
        return False


@dataclass(frozen=True)
class ScanRetention:
    """How many records of queries stay.

    Attributes:
        keep_millis: how long, in milliseconds.
        rows: how many, approximately.
    """

    keep_millis: int
    rows: int

    @classmethod
    def of(cls, configuration: Mapping[str, str]) -> ScanRetention:
        """Returns what a table's properties say, whether or not queries are recorded.

        Raises:
            InvalidArgumentError: a value that is not accepted.
        """
        return cls(CONSUMPTION_DAYS.value(configuration) * _MILLIS_PER_DAY, CONSUMPTION_ROWS.value(configuration))


@dataclass(frozen=True)
class InsightsPolicy:
    """What the service does for the insights of a table.

    Attributes:
        keep_commits_millis: how long rows about commits are kept, in milliseconds; None = they are not kept.
        scans: the records of queries that stay; None = queries are not recorded.
        asked: the properties that count, as they are written.
        pace: how often.
    """

    keep_commits_millis: int | None
    scans: ScanRetention | None
    asked: Mapping[str, str]
    pace: Pace = _PACE


def insights_policy(configuration: Mapping[str, str]) -> InsightsPolicy | None:
    """Returns what a table's properties ask for; None if nothing is recorded.

    Raises:
        InvalidArgumentError: a value that is not accepted.
    """
    keep_millis, scans = INGESTION_DAYS.value(configuration) * _MILLIS_PER_DAY, ScanRetention.of(configuration)
    keeps_commits, keeps_scans = INGESTION_ENABLED.value(configuration), CONSUMPTION_ENABLED.value(configuration)
    if not keeps_commits and not keeps_scans:
        return None
    asked = {s.name: configuration[s.name] for s in INSIGHT_SETTINGS if s.name in configuration}
    return InsightsPolicy(keep_millis if keeps_commits else None, scans if keeps_scans else None, asked)
