"""The thread that gathers what the dashboard shows, so that a request costs nothing but its page."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from catalog.clock import Clock
from catalog.epoch_millis import moment
from catalog.system_tables.system_table import error_text
from procedures.service.action import KnownTable
from procedures.service.fleet_overview import Member
from sql_ext.dashboard.fleet_data import FleetData, HealthNote, Notes

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 10.0
# Share of the time that looking at tables and measuring their health may take, after the first pass over them.
_SHARE = 0.1
# The page fills up so often during the first pass.
_FIRST_SECONDS = 2.0
# A pass looks at so many tables that have not changed; those that were not looked at for the longest time come first.
_MOST_UNCHANGED = 200
# The first pass measures the health of so many tables.
_FIRST_MEASURED = 20


class FleetSource(Protocol):
    """What the collector asks; see ``spark_fleet.SparkFleet``."""

    def prepare(self) -> None:
        """Prepares the calling thread for the other methods."""
        ...

    def tables(self) -> list[KnownTable]:
        """Lists the tables, with their newest versions."""
        ...

    def member(self, table: KnownTable) -> Member | None:
        """Reads the state of one table; None if it is no part of the fleet."""
        ...

    def health(self, table: KnownTable) -> HealthNote:
        """Measures the health of one table."""
        ...

    def data(self, members: Sequence[Member], health: dict[str, HealthNote], notes: Notes) -> FleetData:
        """Joins what is known of the tables with the state of this process; reads no table."""
        ...


@dataclass(eq=False)
class _Known:
    """What the passes over the tables have found, by location; only the thread of the collector uses it."""

    members: dict[str, Member] = field(default_factory=dict)
    health: dict[str, HealthNote] = field(default_factory=dict)
    unmeasurable: dict[str, int] = field(default_factory=dict)
    # Number of the last look at a table, and the version that it had.
    looks: dict[str, tuple[int, int]] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)
    is_first_pass: bool = True


class Collector:
    """Gathers the fleet at an interval and keeps the newest result.

    In each round, it joins the state of this process with what is known of the tables. In the rest of its share of the
    time, it looks at one table after the other, and measures the health of those that have changed.

    Args:
        source: what it asks.
        clock: the time.
        interval: seconds between two rounds.
    """

    def __init__(self, source: FleetSource, clock: Clock, interval: float = INTERVAL_SECONDS) -> None:
        self._source = source
        self._clock = clock
        self.interval = interval
        self._known = _Known()
        self._steps = self._pass_after_pass()
        self._newest = FleetData(clock.now())
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def newest(self) -> FleetData:
        """The newest result."""
        return self._newest

    def start(self) -> None:
        """Starts the thread."""
        self._thread = threading.Thread(target=self._loop, name="use-dashboard-collector", daemon=True)
        self._thread.start()

    def stop(self, seconds: float = 10.0) -> None:
        """Stops the thread.

        Args:
            seconds: how long to wait for it.
        """
        self._ending.set()
        if self._thread is not None:
            self._thread.join(seconds)

    def _loop(self) -> None:
        try:
            self._source.prepare()
        except Exception as error:  # noqa: BLE001 - the page shows the problem
            self._known.notes = replace(self._known.notes, problem=error_text(error))
        while not self._ending.is_set():
            rest = self.round()
            self._clock.wait(self._ending, rest)

    def round(self) -> float:
        """Gathers once.

        Returns:
            Seconds until the next round.
        """
        seconds = _FIRST_SECONDS if self._known.is_first_pass else self.interval * _SHARE
        began = self._clock.monotonic()
        is_idle = False
        # At least one step, so that one slow table delays the others, but does not keep them out for ever.
        while not is_idle and not self._ending.is_set():
            is_idle = self._step()
            if self._clock.monotonic() - began >= seconds:
                break
        self._publish()
        took = self._clock.monotonic() - began
        if self._known.is_first_pass and self._known.notes.problem is None:
            return 0.0
        return max(self.interval - took, took / _SHARE - took)

    def _step(self) -> bool:
        """Does the next piece of work on a table; returns whether the pass over them is complete."""
        try:
            return next(self._steps)
        except Exception as error:  # noqa: BLE001 - the thread goes on after any error, and the page shows it
            text = error_text(error)
            if not self._ending.is_set():
                logger.warning("The dashboard cannot list the tables: %s", text)
            self._known.notes = replace(self._known.notes, problem=text)
            self._steps = self._pass_after_pass()
            return True

    def _pass_after_pass(self) -> Iterator[bool]:
        known = self._known
        looks = max((number for number, _ in known.looks.values()), default=0)
        while True:
            tables = self._source.tables()
            known.notes = replace(known.notes, listed=len(tables), looked_at=0, problem=None)
            listed = {table.location for table in tables}
            for location in known.looks.keys() - listed:
                for facts in (known.looks, known.members, known.health, known.unmeasurable):
                    facts.pop(location, None)
            yield False
            for number, table in enumerate(self._due(tables), start=1):
                looks += 1
                known.looks[table.location] = looks, table.version
                member = self._source.member(table)
                if member is None:
                    known.members.pop(table.location, None)
                else:
                    known.members[table.location] = member
                known.notes = replace(known.notes, looked_at=number)
                yield False
            known.notes = replace(known.notes, passed_at=moment(self._clock.now()))
            for number, table in enumerate(self._unmeasured(tables)):
                known.is_first_pass &= number < _FIRST_MEASURED
                self._measure(table)
                yield False
            known.is_first_pass = False
            yield True

    def _due(self, tables: Sequence[KnownTable]) -> list[KnownTable]:
        """The tables of a pass: those that have changed, and some of the others, which may be suspended meanwhile."""
        looks = self._known.looks
        changed = [table for table in tables if looks.get(table.location, (0, -1))[1] != table.version]
        others = [table for table in tables if looks.get(table.location, (0, -1))[1] == table.version]
        return changed + sorted(others, key=lambda table: looks[table.location][0])[:_MOST_UNCHANGED]

    def _unmeasured(self, tables: Sequence[KnownTable]) -> list[KnownTable]:
        """The members whose health was not measured since they changed: those never measured first, then the newest."""
        health = self._known.health
        changed = [
            table
            for table in tables
            if (member := self._known.members.get(table.location)) is not None
            and member.problem is None
            and ((note := health.get(table.location)) is None or note.version != table.version)
            and self._known.unmeasurable.get(table.location) != table.version
        ]
        return sorted(changed, key=lambda table: (table.location in health, -table.modified))

    def _measure(self, table: KnownTable) -> None:
        try:
            self._known.health[table.location] = self._source.health(table)
        except Exception as error:  # noqa: BLE001 - one table must not keep the others from being measured
            self._known.unmeasurable[table.location] = table.version
            logger.info("%s: its health cannot be measured: %s", table.name, error_text(error))

    def _publish(self) -> None:
        known = self._known
        try:
            self._newest = self._source.data(list(known.members.values()), known.health, known.notes)
        except Exception as error:  # noqa: BLE001 - the last result stays, with the problem
            text = error_text(error)
            if not self._ending.is_set():
                logger.warning("The dashboard cannot gather its data: %s", text)
            self._newest = replace(self._newest, notes=replace(self._newest.notes, problem=text))
