"""Properties of a fleet: a database brings its tables in, and a table opts out."""

from __future__ import annotations

from collections.abc import Mapping

from catalog.errors import UseError
from catalog.properties.hours import HOURS
from catalog.properties.lifecycle_properties import CLUSTERING_ENABLED, COMPACTION_INTERVAL
from catalog.properties.optimization_properties import AUTO_ENABLED_KEY, TYPE_KEY
from catalog.settings.setting import BOOLEAN, Setting

FLEET_PREFIX = "use.fleet."
FLEET_ENABLED_KEY = f"{FLEET_PREFIX}enabled"

FLEET_ENABLED = Setting(
    FLEET_ENABLED_KEY,
    BOOLEAN,
    "Of a database: its tables are optimized, by their index, or without one. Of a table: false leaves it out.",
    "false",
)
FLEET_HOURS = Setting(
    f"{FLEET_PREFIX}hours",
    HOURS,
    "Hours of the day in which runs of the service may start; a run stops at a boundary when they end. UTC, unless a "
    "time zone is named: '01:00-05:00 Europe/Madrid'.",
    unset="the whole day",
)
FLEET_SETTINGS: tuple[Setting[object], ...] = (FLEET_ENABLED, FLEET_HOURS)

_WITH_INDEX = {AUTO_ENABLED_KEY: "true"}
_WITHOUT_INDEX = {CLUSTERING_ENABLED.name: "true", COMPACTION_INTERVAL.name: "1 hour"}


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
