"""The tables that the service knows, and what their changes ask for. Pure: it is told what was seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from catalog.jvm import log_probe
from catalog.jvm.log_probe import Sighting
from procedures.service.actions import ACTIONS, Action, SeenTable, TableChange
from procedures.service.schedule import RefusedWish, wish_of


class Registry:
    """Tables by location, as they were last seen."""

    def __init__(self) -> None:
        """Starts empty."""
        self._seen: dict[str, SeenTable] = {}
        # Those whose properties were wrong when they were last read.
        self._wrong: set[str] = set()

    def tables(self) -> list[SeenTable]:
        """The known tables."""
        return list(self._seen.values())

    def location_of(self, name: str) -> str | None:
        """Where the table of this name was last seen."""
        return next((table.location for table in self._seen.values() if table.name == name), None)

    def questions(self, listed: Mapping[str, str], full: bool) -> list[tuple[str, int | None]]:
        """What to ask of the logs.

        Args:
            listed: names by location, of the tables that there are.
            full: ask for everything anew, so that a table is noticed that was made again at the same place.
        """
        known = {} if full else {location: table.version for location, table in self._seen.items()}
        return [(location, known.get(location)) for location in listed]

    def take(self, listed: Mapping[str, str], sightings: Iterable[Sighting], full: bool = False) -> list[Action]:
        """Takes notice of what was seen, and gives the actions that the changes ask for.

        Args:
            listed: names by location, of the tables that were looked at.
            sightings: one per table, in the same order.
            full: whether everything was asked for anew; wrong properties are then tried again, since a strategy may
                have been registered.
        """
        actions: list[Action] = []
        for (location, name), sighting in zip(listed.items(), sightings, strict=True):
            before = self._seen.get(location)
            if sighting.state == log_probe.MISSING:
                actions += self._forget(location)
            elif sighting.state == log_probe.CHANGED:
                after = SeenTable(name, location, sighting.table_id, sighting.version, sighting.configuration)
                self._seen[location] = after
                again = full and location in self._wrong
                actions += _actions(TableChange(None if again else before, after))
                self._wrong.discard(location)
                if isinstance(wish_of(after.configuration), RefusedWish):
                    self._wrong.add(location)
            elif before is not None and before.name != name:
                self._seen[location] = SeenTable(name, location, before.table_id, before.version, before.configuration)
        return actions

    def keep_only(self, locations: Iterable[str]) -> list[Action]:
        """Forgets the tables elsewhere, and gives the actions that this asks for."""
        kept = set(locations)
        gone = [location for location in self._seen if location not in kept]
        return [action for location in gone for action in self._forget(location)]

    def _forget(self, location: str) -> list[Action]:
        before = self._seen.pop(location, None)
        self._wrong.discard(location)
        return [] if before is None else _actions(TableChange(before, None))


def _actions(change: TableChange) -> list[Action]:
    found = (kind.due(change) for kind in ACTIONS)
    return [action for action in found if action is not None]
