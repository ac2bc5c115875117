"""The world of one history: scheduler, store, log, faults, invariants; and the product's code placed into it."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from catalog.properties.fleet_properties import Pool
from simulation.delta_log import AddedFile, Commit, DeltaLog
from simulation.faults import SKEW, Faults
from simulation.history import History, Violation
from simulation.invariants import Invariants
from simulation.observation import Observation
from simulation.scheduler import Killed, Process, Scheduler, StuckError
from simulation.store import Store
from simulation.surroundings.paths import ROOT, ROW_BYTES
from simulation.surroundings.placement import placed
from simulation.surroundings.sessions import Session
from simulation.threads import SimulatedClock, SimulatedThreading

HOUR = 3_600_000
START = 1_800_000_000_000
# By how much processes wait for shorter times, so that many begin at once.
_HASTE = (1, 1, 20, 100)


class World:
    """The world of one history.

    Args:
        seed: of the history.
        phases: counts faults by phase.
        records: whether each step becomes an entry of the history.

    Attributes:
        is_calm: whether the history has no faults.
        purged_to: versions before it may have been purged by their number, however young they are; -1 for none.
    """

    def __init__(self, seed: int, phases: Counter[tuple[str, str]], *, records: bool = False) -> None:
        self.history = History(seed)
        self.random = random.Random(f"world {seed}")
        self.scheduler = Scheduler(seed, START)
        self.clock = SimulatedClock(self.scheduler)
        self.threading = SimulatedThreading(self.scheduler)
        self.faults = Faults(seed, self.scheduler, phases)
        self.faults.on_fault = lambda kind: self.note(f"-> {kind}")
        self.store = Store(self.scheduler, self.faults)
        self.log = DeltaLog(self.scheduler, self.faults)
        self.retention_hours = 3.0
        self.is_calm = not self.faults.kinds
        self.observation = Observation(self)
        self.invariants = Invariants(self)
        self.purged_to = -1
        self.log.on_commit = self._committed
        self.history.kinds = tuple(self.faults.kinds)
        self.pools: tuple[Pool, ...] | None = None
        self.plans: list[str] = []
        self._haste = self.random.choice(_HASTE)
        self._numbers = itertools.count(1)
        if records:
            step = self.scheduler.step

            def recorded(phase: str) -> None:
                step(phase)
                self.note(phase)

            self.scheduler.step = recorded  # type: ignore[method-assign]

    def rest(self, most: int) -> None:
        """Lets the process wait for some milliseconds; in some histories, all processes are in a hurry."""
        self.scheduler.sleep(self.random.randrange(most // self._haste))

    def note(self, what: str) -> None:
        """Adds an entry to the history."""
        self.history.entries.append((self.scheduler.now - START, self.scheduler.process.name, what))

    def _committed(self, commit: Commit) -> None:
        self.note(f"commits version {commit.version}: {commit.operation}, +{len(commit.added)} -{len(commit.removed)}")
        self.invariants.on_commit(commit)

    # ------------------------------------------------------------------------------------------------------- actors

    def process(self, name: str, work: Callable[[Session], object], at: int = 0) -> Process:
        """Adds a process.

        Args:
            name: for the history.
            work: gets the session of the process.
            at: when it begins, in milliseconds from now.
        """
        process = Process(name, self.faults.skew())
        session = Session(self)
        self.history.actors = (*self.history.actors, name)
        self.scheduler.start(process, lambda: work(session), self.scheduler.now + at)
        self.invariants.processes.append(process)
        return process

    # --------------------------------------------------------------------------------------------------------- data

    def new_rows(self, count: int) -> tuple[int, ...]:
        """Rows that no file has."""
        return tuple(next(self._numbers) for _ in range(count))

    def new_name(self, kind: str) -> str:
        """A name that no file has."""
        return f"{kind}-{next(self._numbers)}.parquet"

    def is_kept(self, version: int) -> bool:
        """Whether no purge or vacuum of the history may end a version, by whatever clock."""
        if version in self.invariants.protected.values():
            return True
        if version < self.purged_to:
            return False
        commits = self.log.commits
        hours = self.retention_hours - (1 if SKEW in self.faults.kinds else 0) - 0.1
        return version == self.log.newest or commits[version + 1].time > self.scheduler.now - hours * HOUR

    def new_data(self, name: str, rows: tuple[int, ...], phase: str) -> AddedFile:
        """Writes a data file."""
        size = ROW_BYTES * len(rows)
        self.store.put_data(f"{ROOT}/{name}", rows, size, phase)
        return AddedFile(name, size, len(rows), self.scheduler.now)

    def rows_of(self, file: AddedFile, phase: str = "read rows") -> list[int]:
        """Reads the rows of a file that its deletion vector does not hide.

        Raises:
            FileNotFoundError: an object is missing.
        """
        stored: Any = self.store.data(f"{ROOT}/{file.path}", phase)
        if not file.vector:
            return list(stored)
        hidden: Any = self.store.data(f"{ROOT}/{file.vector}", phase)
        return [row for position, row in enumerate(stored) if position not in hidden]

    def delete_data(self, path: str, phase: str) -> bool:
        """Deletes a data file; returns whether it was there."""
        self.faults.before(phase)
        if path not in self.store.objects:
            return False
        self.invariants.on_delete(path, phase)
        del self.store.objects[path]
        return True

    def log_operation(self, operation: str, metrics: dict[str, str]) -> None:
        """Commits an entry of the history without files."""
        self.log.commit(Commit(-1, -1, operation, metrics=metrics), self.log.newest)

    # ---------------------------------------------------------------------------------------------------------- run

    def run(self, set_up: Callable[[World], None], finish: Callable[[World], None]) -> History:
        """Runs the history.

        Args:
            set_up: makes the table and adds processes.
            finish: work without faults, after all processes have ended.
        """
        with placed(self):
            try:
                set_up(self)
                self.scheduler.run()
                self.invariants.on_end_of_processes()
                self.faults.are_over = True
                finish(self)
            except Violation as violation:
                self.history.violation = str(violation)
            except StuckError as error:
                self.history.violation = f"progress: {error}"
            finally:
                with contextlib.suppress(Killed):
                    self.scheduler.end()
        self.history.steps = self.scheduler.steps
        return self.history
