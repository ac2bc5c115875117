"""The tables that the service knows, and the actions for their changes. It accesses no table itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from catalog.jvm import log_probe
from catalog.jvm.log_probe import Question, Sighting
from catalog.jvm.metastore import database_of
from catalog.properties.fleet_properties import Pool
from catalog.properties.inherited import NOTHING_INHERITED, InheritedProperties
from procedures.service.actions import ACTIONS, Action, KnownTable, TableChange
from procedures.service.schedule import InvalidSchedule, schedule_of


class Registry:
    """The last known state of tables, by location."""

    def __init__(self) -> None:
        """Starts empty."""
        self._known: dict[str, KnownTable] = {}
        self._updated: dict[str, KnownTable] = {}
        # Locations of the tables whose properties were invalid when they were last read.
        self._invalid: set[str] = set()
        self._names: Mapping[str, str] = {}
        self._inherited: Callable[[str], InheritedProperties] = lambda _: NOTHING_INHERITED

    def take_updated(self) -> list[KnownTable]:
        """Returns the tables that have changed since the last call: their version, name or properties."""
        updated, self._updated = list(self._updated.values()), {}
        return updated

    def updated(self, location: str) -> KnownTable | None:
        """Returns a table that ``take_updated`` would return."""
        return self._updated.get(location)

    def location_of(self, name: str) -> str | None:
        """Returns the last known location of a name."""
        return next((table.location for table in self._known.values() if table.name == name), None)

    def questions(self, due: Mapping[str, bool]) -> list[Question]:
        """Returns what to ask about the logs of tables.

        Args:
            due: the locations, and whether each is checked fully, to detect a table that was recreated at the same
                place.
        """
        return [self._question(location, full) for location, full in due.items()]

    def _question(self, location: str, full: bool) -> Question:
        table = self._known.get(location)
        if table is None or (full and table.modified < 0):
            return Question(location)
        return Question(location, table.version, table.modified if full else None)

    def update(
        self,
        due: Mapping[str, bool],
        names: Mapping[str, str],
        sightings: Iterable[Sighting],
        inherited: Callable[[str], InheritedProperties],
    ) -> list[Action]:
        """Updates the tables that were looked at and returns the actions for their changes.

        Args:
            due: as for ``questions``. Invalid properties are checked again in a full check, because a strategy may have
                been registered.
            names: names of these tables by location.
            sightings: one per table, in the same order.
            inherited: what a table of this name inherits.
        """
        actions: list[Action] = []
        for (location, full), sighting in zip(due.items(), sightings, strict=True):
            before, name = self._known.get(location), names[location]
            if sighting.state == log_probe.MISSING:
                actions += self.remove(location)
            elif sighting.state == log_probe.CHANGED:
                own, columns = sighting.configuration, sighting.columns
                facts = _in_force(name, own, columns, inherited)
                identity = name, location, sighting.table_id, sighting.version, facts.configuration, own, columns
                table = KnownTable(*identity, facts.database, facts.pools, sighting.modified)
                actions += self._put(before, table, full)
            elif before is not None and (before.name != name or (full and location in self._invalid)):
                facts = _in_force(name, before.own, before.columns, inherited)
                actions += self._put(before, replace(before, name=name, **facts._asdict()), full)
        return actions

    def refresh(self, names: Mapping[str, str], inherited: Callable[[str], InheritedProperties]) -> list[Action]:
        """Applies a new list of tables and new inherited properties, and returns the actions for the changes.

        Args:
            names: names of all tables by location; the same object as long as it is the same list.
            inherited: what a table of this name inherits.
        """
        inherits_same = inherited == self._inherited
        if names is self._names and inherits_same:
            return []
        actions = [action for location in self._known.keys() - names.keys() for action in self.remove(location)]
        for location, before in self._known.items():
            name = names[location]
            if name != before.name or not inherits_same:
                facts = _in_force(name, before.own, before.columns, inherited)
                actions += self._put(before, replace(before, name=name, **facts._asdict()))
        self._names, self._inherited = names, inherited
        return actions

    def remove(self, location: str) -> list[Action]:
        """Removes a table and returns the actions for this."""
        before = self._known.pop(location, None)
        self._updated.pop(location, None)
        self._invalid.discard(location)
        return [] if before is None else _actions(TableChange(before, None))

    def _put(self, before: KnownTable | None, after: KnownTable, full: bool = False) -> list[Action]:
        location, retry = after.location, full and after.location in self._invalid
        self._known[location] = after
        if after != before or retry:
            self._updated[location] = after
        if not retry and before is not None and _is_same(before, after):
            return []
        self._invalid.discard(location)
        if isinstance(schedule_of(after.configuration), InvalidSchedule):
            self._invalid.add(location)
        return _actions(TableChange(None if retry else before, after))


class _InForce(NamedTuple):
    """What a table has from its own properties and from those that it inherits; see ``KnownTable``."""

    configuration: Mapping[str, str]
    database: str | None
    pools: tuple[Pool, ...]


def _in_force(
    name: str, own: Mapping[str, str], columns: Sequence[str], inherited: Callable[[str], InheritedProperties]
) -> _InForce:
    database, defaults = database_of(name), inherited(name)
    return _InForce(defaults.effective(own, columns), database, defaults.pools(database))


def _is_same(before: KnownTable, after: KnownTable) -> bool:
    """Whether no action depends on the change: only the name, the version or the columns may differ."""
    return before.table_id == after.table_id and before.configuration == after.configuration


def _actions(change: TableChange) -> list[Action]:
    due = (kind.due(change) for kind in ACTIONS)
    return [action for action in due if action is not None]
