"""What must hold after each step, and what must be true at the end."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from catalog.errors import RowsChangedError, UseError
from catalog.history import event_store
from catalog.history.events import EVENT_KEY, EVENTS_FOLDER
from catalog.state.lease import Acquired
from procedures.loop import stored_plan_run, table_optimizer
from simulation.delta_log import Commit
from simulation.faults import CONFLICT, KILL, LOST_ANSWER, PAUSE, SKEW, THROTTLING, StoreError
from simulation.history import Violation
from simulation.scheduler import Process
from simulation.surroundings.paths import ROOT

if TYPE_CHECKING:
    from simulation.world import World

# Leases and claims exclude each other unless a process stands still, a clock is wrong, or a state file is damaged.
_KEEPING_EXCLUSION = frozenset({CONFLICT, LOST_ANSWER})
_KEEPING_EVENTS = frozenset({CONFLICT, LOST_ANSWER, KILL, PAUSE, THROTTLING, SKEW})


class Invariants:
    """The invariants of a history.

    Args:
        world: the history.

    Attributes:
        processes: all that were started.
        protected: the versions whose protection was confirmed, by name.
        cutoffs: by process that deletes old files, which versions it must keep: from a time or from a version on.
        past_events: ids of the events that were stored before the history began.
        spent: bytes that the budget of the fleet has allowed.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.processes: list[Process] = []
        self.protected: dict[str, int] = {}
        self.past_events: set[str] = set()
        self.spent = 0
        self.most_spent: int | None = None
        self._running = 0
        self._held: set[tuple[str, Process]] = set()
        self._holds_exclusion = _KEEPING_EXCLUSION.issuperset(world.faults.kinds)

    def check(self, holds: bool, what: str) -> None:
        """Ends the history unless an invariant holds.

        Raises:
            Violation: it does not.
        """
        if not holds:
            self._world.note(f"VIOLATION {what}")
            self._world.scheduler.failure = self._world.scheduler.failure or Violation(what)
            raise self._world.scheduler.failure

    # ---------------------------------------------------------------------------------------------------- each step

    def on_commit(self, commit: Commit) -> None:
        """Each row is there exactly once after a commit, and each file that it names exists."""
        world, log = self._world, self._world.log
        before = log.live[commit.version - 1] if commit.version else {}
        for file in commit.removed:
            self.check(before.get(file.path) == file, f"rows: version {commit.version} removes {file.path} twice")
        objects, rows = world.store.objects, Counter[int]()
        for files, sign in ((commit.added, 1), (commit.removed, -1)):
            for file in files:
                for path in file.needs:
                    there = f"{ROOT}/{path}" in objects
                    self.check(there or sign < 0, f"files: version {commit.version} names {path}, which is missing")
                if f"{ROOT}/{file.path}" not in objects:
                    continue
                stored: Any = objects[f"{ROOT}/{file.path}"].data
                for position, row in enumerate(stored):
                    if position not in file.hidden:
                        rows[row] += sign
        wanted = Counter(dict.fromkeys(commit.inserted, 1))
        wanted.subtract(dict.fromkeys(commit.deleted, 1))
        changed = {row: count for row, count in (rows - wanted).items() if count}
        changed |= {row: -count for row, count in (wanted - rows).items() if count}
        self.check(not changed, f"rows: version {commit.version} changes the number of rows {changed}")

    def on_delete(self, path: str, phase: str) -> None:
        """No file goes that a version needs which must stay readable."""
        log, world = self._world.log, self._world
        name = path.removeprefix(f"{ROOT}/")
        needing = [v for v, files in enumerate(log.live) if any(name in file.needs for file in files.values())]
        if not needing:
            return
        self.check(phase != "discard", f"files: {name} of version {needing[-1]} is discarded")
        self.check(needing[-1] != log.newest, f"files: {name} of the newest version is deleted")
        for protection, version in self.protected.items():
            kept = f"files: {name} of version {version}, protected as {protection}, is deleted"
            self.check(version not in needing, kept)
        cutoff = world.scheduler.process.memory.get("cutoff")
        self.check(cutoff is not None, f"files: {name} is deleted by a process without a cutoff")
        for version in needing:
            self.check(not self._is_retained(version, cutoff), f"files: {name} of the retained version {version} goes")

    def _is_retained(self, version: int, cutoff: Callable[[int], bool]) -> bool:
        return version == self._world.log.newest or cutoff(version)

    def on_log_deletion(self, version: int) -> None:
        """The log can make the newest version, protected ones, and those that the process must keep."""
        log = self._world.log
        self.check(log.can_make(log.newest), f"log: the newest version cannot be made without {version}")
        for protection, kept in self.protected.items():
            self.check(log.can_make(kept), f"log: version {kept}, protected as {protection}, is lost with {version}")
        cutoff = self._world.scheduler.process.memory.get("cutoff")
        if cutoff is not None and cutoff(version):
            self.check(log.can_make(version), f"log: the retained version {version} is lost")

    # -------------------------------------------------------------------------------------------------- observation

    def observers(self) -> list[tuple[Any, str, Any]]:
        """Replacements of attributes that watch who holds a lease, and who rewrites a group of a plan."""
        lease, rewrite = table_optimizer.TableLease, stored_plan_run.rewrite
        acquire, renewed = lease.acquire, lease.renewed

        def watched_acquire(this: Any) -> Any:
            acquired = acquire(this)
            if isinstance(acquired, Acquired):
                self._begin(f"lease {this.plan or this.run.run_id}", "lease ")
            return acquired

        @contextmanager
        def watched_renewed(this: Any) -> Iterator[None]:
            name = f"lease {this.plan or this.run.run_id}"
            with renewed(this):
                try:
                    yield
                finally:
                    self._held.discard((name, self._world.scheduler.process))

        def watched_rewrite(table: Any, group: Any, context: Any) -> Any:
            name = f"group {context.parameters['plan']}/{context.parameters['group']}"
            self._begin(name, name)
            try:
                return rewrite(table, group, context)
            finally:
                self._held.discard((name, self._world.scheduler.process))

        return [
            (lease, "acquire", watched_acquire),
            (lease, "renewed", watched_renewed),
            (stored_plan_run, "rewrite", watched_rewrite),
        ]

    def _begin(self, name: str, excluded: str) -> None:
        process = self._world.scheduler.process
        others = {n for n, p in self._held if n.startswith(excluded) and p is not process and not p.is_dead}
        shared = name.startswith("lease ") and others == {name}
        self.check(not self._holds_exclusion or not others or shared, f"exclusion: {name} and {sorted(others)}")
        self._held.add((name, process))

    @contextmanager
    def counted(self, most: int | None) -> Iterator[None]:
        """Counts a run that the fleet has allowed.

        Args:
            most: runs at the same time.
        """
        self._running += 1
        are_few = most is None or self._running <= most
        self.check(are_few or not self._holds_exclusion, f"budget: {self._running} runs at a time")
        try:
            yield
        finally:
            self._running -= 1

    def on_spent(self, size: int, refused: object) -> None:
        """The budget of the fleet is not exceeded."""
        if refused is None and self.most_spent is not None:
            self.spent += size
            self.check(self.spent <= self.most_spent, f"budget: {self.spent} of {self.most_spent} bytes were spent")

    # ------------------------------------------------------------------------------------------------------- at the end

    def on_end_of_processes(self) -> None:
        """Processes end without errors other than those that a caller expects."""
        for process in self.processes:
            error = process.error
            if error is None or process.is_dead:
                continue
            if isinstance(error, Violation):
                raise error
            expected = isinstance(error, (UseError, StoreError)) and not isinstance(error, RowsChangedError)
            self.check(expected, f"errors: {process.name} failed with {type(error).__name__}: {error}")
            if not self._world.faults.kinds:
                known = getattr(error, "code", "")
                self.check(known in _EXPECTED_CODES, f"errors: {process.name} failed without a fault: {known} {error}")

    def on_end(self, table: Any) -> None:
        """Every event of a commit is stored, unless a state file was damaged."""
        world = self._world
        if not _KEEPING_EVENTS.issuperset(world.faults.kinds):
            return
        event_store.reconcile(table)
        stored = set()
        # As readers do, which leave out the parts of merged files.
        for name in event_store.current_files(table, world.clock.now()):
            text = str(world.store.objects[f"{ROOT}/_use/{EVENTS_FOLDER}/{name}"].data)
            stored |= {json.loads(line)["write_id"] for line in text.split("\n")}
        self.check(self.past_events <= stored, f"events: {sorted(self.past_events - stored)} are lost")
        for commit in world.log.commits:
            if EVENT_KEY in commit.parameters and commit.version in world.log.stored:
                write = json.loads(commit.parameters[EVENT_KEY])["write_id"]
                self.check(write in stored, f"events: that of version {commit.version} is lost")


_EXPECTED_CODES = frozenset({"USE_CONCURRENT_CHANGE", "USE_VERSION_RECLAIMED", "USE_PROTECTION"})
