"""Which tables are looked at in which look. It accesses no table, and has no clock."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

# Each table has its turn in one of so many looks: it is then checked fully. It is never looked at more seldom.
FULL_CHECK_EVERY = 8
SMALL_FLEET = 500
# A table that has not changed for ten looks longer than it takes to look at it again is looked at more seldom.
_LOOKS_OF_REST = 10


@dataclass
class _Table:
    """When a table changed last, epoch milliseconds, and in which of the looks it has its turn."""

    turn: int
    changed: int


class LookTimes:
    """Decides which tables are due in a look: those that changed lately in each look, others the less often.

    A table is looked at in every look, or in every second, fourth or eighth one. The looks of a longer period are also
    looks of the shorter ones, so that the longest period is never exceeded while a period grows.

    Args:
        small_fleet: number of tables that are listed and looked at in each look, whether or not they change.
    """

    def __init__(self, small_fleet: int = SMALL_FLEET) -> None:
        self._small_fleet = small_fleet
        self._look = 0
        self._tables: dict[str, _Table] = {}
        self._late: set[str] = set()
        self._next_turn = 0

    def lists_tables(self, known: int) -> bool:
        """Whether the next look lists the tables anew.

        Args:
            known: number of tables of the last list.
        """
        return known <= self._small_fleet or self._look % FULL_CHECK_EVERY == 0

    def due(
        self, locations: Collection[str], now: int, interval: int, wanted: Collection[str] = frozenset()
    ) -> dict[str, bool]:
        """Begins the next look.

        Args:
            locations: all tables.
            now: epoch milliseconds.
            interval: time between two looks, milliseconds.
            wanted: tables to look at whether or not it is their time.

        Returns:
            The tables to look at, those first that an earlier look did not come to; and whether each is checked fully.
        """
        is_small, due = len(locations) <= self._small_fleet, dict.fromkeys(self._late.intersection(locations), False)
        for location in locations:
            table = self._tables.get(location)
            rest = 0 if table is None else (self._look - table.turn) % FULL_CHECK_EVERY
            if rest == 0:
                due[location] = True
            elif is_small or location in wanted or (table and rest % _period(now - table.changed, interval) == 0):
                due[location] = False
        self._look += 1
        self._late.clear()
        return due

    def record(self, location: str, changed: int | None, now: int) -> None:
        """Records that a table was looked at.

        Args:
            location: the table.
            changed: when it was found to have changed, epoch milliseconds; None if it did not.
            now: epoch milliseconds.
        """
        table = self._tables.get(location)
        if table is None:
            # A new table is as old as its last commit. Turns are given in order, so that looks have equal numbers.
            self._tables[location] = _Table(self._next_turn, now if changed is None else min(changed, now))
            self._next_turn = (self._next_turn + 1) % FULL_CHECK_EVERY
        elif changed is not None:
            table.changed = now

    def record_late(self, location: str) -> None:
        """Records that a look ended before it came to a table, so that the next look begins with it."""
        self._late.add(location)

    def keep_only(self, locations: Iterable[str]) -> None:
        """Forgets all other tables."""
        kept = set(locations)
        self._tables = {location: table for location, table in self._tables.items() if location in kept}


def _period(rest: int, interval: int) -> int:
    """The number of looks from one look at a table to the next.

    Args:
        rest: time since its last change, milliseconds.
        interval: time between two looks, milliseconds.
    """
    looks = rest // (_LOOKS_OF_REST * interval)
    return 8 if looks >= 8 else 4 if looks >= 4 else 2 if looks >= 2 else 1
