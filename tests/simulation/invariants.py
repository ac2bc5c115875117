"""What must hold after each step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from catalog.errors import RowsChangedError, UseError
from simulation.delta_log import Commit
from simulation.faults import LOST_ANSWER, SKEW, StoreError
from simulation.history import Violation
from simulation.scheduler import Process
from simulation.surroundings.paths import ROOT

if TYPE_CHECKING:
    from simulation.world import World


class Invariants:
    """The invariants of a history.

    Args:
        world: the history.

    Attributes:
        processes: all that were started.
        protected: the versions whose protection was confirmed, by name.
    past_events: ids of the events that were stored before the history began.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.processes: list[Process] = []
        self.protected: dict[str, int] = {}
        self.past_events: set[str] = set()

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
        self._keeps_quiet(commit)
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

    def _keeps_quiet(self, commit: Commit) -> None:
        """A run with a quiet period replaces no file that a statement has just written."""
        world = self._world
        quiet = world.scheduler.process.memory.get("quiet", 0)
        is_known = world.faults.kinds.isdisjoint((SKEW, LOST_ANSWER))
        if not quiet or not is_known or not commit.operation.startswith("USE "):
            return
        paths = {file.path for file in commit.removed}
        for other in reversed(world.log.commits[: commit.version]):
            if other.time < commit.time - quiet:
                return
            of_statement = other.operation in ("DELETE", "UPDATE", "MERGE") and other.data_change
            young = paths.intersection(file.path for file in other.added) if of_statement else ()
            self.check(not young, f"quiet: version {commit.version} replaces {young} of version {other.version}")

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
        if "purge" in world.scheduler.process.memory:
            world.observation.on_purge()
        for version in needing:
            self.check(not self._is_retained(version, cutoff), f"files: {name} of the retained version {version} goes")

    def _is_retained(self, version: int, cutoff: Callable[[int], bool]) -> bool:
        return version == self._world.log.newest or cutoff(version)

    def on_log_deletion(self, version: int, made: Sequence[int]) -> None:
        """The log can make the newest version, protected ones, and those that the process must keep.

        Args:
            version: whose entry or checkpoint was deleted.
            made: the versions that the log could make before. A process that keeps more history may delete what an
                interrupted purge has left of the others.
        """
        log = self._world.log
        self.check(log.can_make(log.newest), f"log: the newest version cannot be made without {version}")
        for protection, kept in self.protected.items():
            self.check(log.can_make(kept), f"log: version {kept}, protected as {protection}, is lost with {version}")
        cutoff = self._world.scheduler.process.memory.get("cutoff")
        if cutoff is None:
            return
        for lost in made:
            self.check(log.can_make(lost) or not cutoff(lost), f"log: the retained version {lost} is lost")

    # -------------------------------------------------------------------------------------------------------- errors

    def on_error(self, what: str, error: BaseException) -> None:
        """Users see no other errors than those that the documentation names; without a fault, only a few of them.

        Args:
            what: failed.
            error: the error.

        Raises:
            Violation: another one.
        """
        if isinstance(error, Violation):
            raise error
        expected = isinstance(error, (UseError, StoreError)) and not isinstance(error, RowsChangedError)
        self.check(expected, f"errors: {what} failed with {type(error).__name__}: {error}")
        if self._world.is_calm:
            code = getattr(error, "code", "")
            # A purge deletes plans that have ended, while a run may be about to execute one.
            is_deleted = code == "USE_UNKNOWN_PLAN" and self._world.purged_to >= 0
            self.check(is_deleted or code in _EXPECTED_CODES, f"errors: {what} failed without a fault: {code} {error}")

    def on_end_of_processes(self) -> None:
        """Processes end without errors other than those that a caller expects."""
        for process in self.processes:
            if process.error is not None and not process.is_dead:
                self.on_error(process.name, process.error)


_EXPECTED_CODES = frozenset({"USE_CONCURRENT_CHANGE", "USE_VERSION_RECLAIMED", "USE_PROTECTION"})
