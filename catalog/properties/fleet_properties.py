"""Properties of a fleet: a database brings its tables in, and a table opts out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.errors import InvalidArgumentError, UseError
from catalog.properties.hours import HOURS
from catalog.properties.lifecycle_properties import CLUSTERING_ENABLED, COMPACTION_INTERVAL
from catalog.properties.optimization_properties import AUTO_ENABLED_KEY, TYPE_KEY
from catalog.settings.setting import BOOLEAN, SIZE, Setting, duration, whole_number

FLEET_PREFIX = "use.fleet."
FLEET_ENABLED_KEY = f"{FLEET_PREFIX}enabled"

FLEET_ENABLED = Setting(
    FLEET_ENABLED_KEY,
    BOOLEAN,
    "Of a database: its tables are optimized, by their index, or without one. Of a table: false leaves it out, and out "
    "of all changes by the service that only its database or the session asks for.",
    "false",
)
FLEET_HOURS = Setting(
    f"{FLEET_PREFIX}hours",
    HOURS,
    "Hours of the day in which runs of the service may start; a run stops at a boundary when they end. UTC, unless a "
    "time zone is named: '01:00-05:00 Europe/Madrid'.",
    unset="the whole day",
)
_MOST_DAYS = 31
_MILLIS_PER_DAY = 86_400_000


def _check_period(name: str, text: str) -> None:
    if PERIOD_TYPE.read(text) > _MOST_DAYS * _MILLIS_PER_DAY:
        raise InvalidArgumentError.of(name, text, f"a time of at most {_MOST_DAYS} days, such as '1 day'")


PERIOD_TYPE = duration("a positive time such as '1 day' or '12 hours'")
FLEET_MAX_BYTES = Setting(
    f"{FLEET_PREFIX}maxBytes",
    SIZE,
    "Of a database: bytes that runs of the service on its tables may rewrite within `use.fleet.period`, in all "
    "services together.",
    unset="unlimited",
)
FLEET_PERIOD = Setting(
    f"{FLEET_PREFIX}period",
    PERIOD_TYPE,
    "Length of the time before each moment for which `use.fleet.maxBytes` counts.",
    "1 day",
    check=_check_period,
)
FLEET_MAX_RUNS = Setting(
    f"{FLEET_PREFIX}maxRuns",
    whole_number(1, digits=4),
    "Of a database: runs of the service on its tables at the same time, in all services together.",
    unset="unlimited",
)
_BUDGET: tuple[Setting[object], ...] = (FLEET_MAX_BYTES, FLEET_PERIOD, FLEET_MAX_RUNS)
FLEET_SETTINGS: tuple[Setting[object], ...] = (FLEET_ENABLED, FLEET_HOURS, *_BUDGET)
BUDGET_KEYS = tuple(setting.name for setting in _BUDGET)
"""Properties that many tables share: of a database, or of the session for all tables. A table has none of its own."""

_WITH_INDEX = {AUTO_ENABLED_KEY: "true"}
_WITHOUT_INDEX = {CLUSTERING_ENABLED.name: "true", COMPACTION_INTERVAL.name: "1 hour"}


@dataclass(frozen=True)
class Pool:
    """A budget that tables share.

    Attributes:
        database: its tables share it; None = all tables do.
        max_bytes: bytes that may be rewritten within a period; None = unlimited.
        period: milliseconds.
        max_runs: runs at the same time; None = unlimited.
    """

    database: str | None
    max_bytes: int | None
    period: int
    max_runs: int | None

    @property
    def label(self) -> str:
        """What it is the budget of, for people."""
        return "all tables" if self.database is None else f"database {self.database}"


def pool_of(database: str | None, properties: Mapping[str, str]) -> Pool | None:
    """The budget that a database or the session sets; None if it sets none.

    Args:
        database: name of the database; None for the session.
        properties: its properties.

    Raises:
        UseError: a value is not accepted.
    """
    most, runs = FLEET_MAX_BYTES.optional_value(properties), FLEET_MAX_RUNS.optional_value(properties)
    return None if most is None and runs is None else Pool(database, most, int(FLEET_PERIOD.value(properties)), runs)


def with_fleet_defaults(configuration: Mapping[str, str], *, has_index: bool) -> dict[str, str]:
    """The properties in force of a table, with those that follow if it is part of a fleet.

    Args:
        configuration: its own properties and those that it inherits.
        has_index: whether the table is to have an index.

    Returns:
        The same, where it is no part of a fleet, or says itself which strategies run.
    """
    try:
        is_member = FLEET_ENABLED.value(configuration)
    except UseError:
        is_member = False
    if not is_member or TYPE_KEY in configuration or AUTO_ENABLED_KEY in configuration:
        return dict(configuration)
    return {**(_WITH_INDEX if has_index else _WITHOUT_INDEX), **configuration}
