"""The tables that the service knows, and the actions for their changes. It accesses no table itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from catalog.jvm import log_probe
from catalog.jvm.log_probe import Sighting
from catalog.jvm.metastore import database_of
from catalog.properties.inherited import NOTHING_INHERITED, InheritedProperties
from procedures.service.actions import ACTIONS, Action, KnownTable, TableChange
from procedures.service.schedule import InvalidSchedule, schedule_of


class Registry:
    """The last known state of tables, by location."""

    def __init__(self) -> None:
        """Starts empty."""
        self._known: dict[str, KnownTable] = {}
        # Locations of the tables whose properties were invalid when they were last read.
        self._invalid: set[str] = set()

    def tables(self) -> list[KnownTable]:
        """Returns the known tables."""
        return list(self._known.values())

    def location_of(self, name: str) -> str | None:
        """Returns the last known location of a name."""
        return next((table.location for table in self._known.values() if table.name == name), None)

    def questions(self, listed: Mapping[str, str], full: bool) -> list[tuple[str, int | None]]:
        """Returns the versions after which to check the logs.

        Args:
            listed: names of all tables by location.
            full: load all tables, to detect a table that was recreated at the same place.
        """
        versions = {} if full else {location: table.version for location, table in self._known.items()}
        return [(location, versions.get(location)) for location in listed]

    def update(
        self,
        listed: Mapping[str, str],
        sightings: Iterable[Sighting],
        full: bool = False,
        inherited: Callable[[str], InheritedProperties] = lambda _: NOTHING_INHERITED,
    ) -> list[Action]:
        """Updates the tables and returns the actions for their changes.

        Args:
            listed: names of the checked tables by location.
            sightings: one per table, in the same order.
            full: whether all tables were loaded. Invalid properties are then checked again, because a strategy may
                have been registered.
            inherited: what a table of this name inherits.
        """
        actions: list[Action] = []
        for (location, name), sighting in zip(listed.items(), sightings, strict=True):
            before = self._known.get(location)
            if sighting.state == log_probe.MISSING:
                actions += self._remove(location)
                continue
            if sighting.state == log_probe.CHANGED:
                own, columns = sighting.configuration, sighting.columns
                table_id, version = sighting.table_id, sighting.version
            elif before is not None:
                own, columns, table_id, version = before.own, before.columns, before.table_id, before.version
            else:
                continue
            database, defaults = database_of(name), inherited(name)
            effective, pools = defaults.effective(own, columns), defaults.pools(database)
            after = KnownTable(name, location, table_id, version, effective, own, columns, database, pools)
            self._known[location] = after
            if sighting.state == log_probe.CHANGED or before is None or before.configuration != effective:
                retry = full and location in self._invalid
                actions += _actions(TableChange(None if retry else before, after))
                self._invalid.discard(location)
                if isinstance(schedule_of(effective), InvalidSchedule):
                    self._invalid.add(location)
        return actions

    def keep_only(self, locations: Iterable[str]) -> list[Action]:
        """Removes all other tables and returns the actions for this."""
        kept = set(locations)
        gone = [location for location in self._known if location not in kept]
        return [action for location in gone for action in self._remove(location)]

    def _remove(self, location: str) -> list[Action]:
        before = self._known.pop(location, None)
        self._invalid.discard(location)
        return [] if before is None else _actions(TableChange(before, None))


def _actions(change: TableChange) -> list[Action]:
    due = (kind.due(change) for kind in ACTIONS)
    return [action for action in due if action is not None]
