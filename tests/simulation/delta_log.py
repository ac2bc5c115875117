"""A Delta log: numbered commits that are each created once, checkpoints, versions, and the rules of conflicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from catalog.errors import ConcurrentChangeError
from simulation.faults import CONFLICT, LOST_ANSWER, Faults, StoreError
from simulation.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A live file.

    Attributes:
        path: relative to the table.
        size: bytes.
        rows: how many it stores.
        time: modification time, epoch milliseconds.
        vector: name of its deletion vector, '' without one.
        hidden: positions of the rows that the deletion vector hides.
        tags: of the log.
    """

    path: str
    size: int
    rows: int
    time: int
    vector: str = ""
    hidden: frozenset[int] = frozenset()
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def needs(self) -> tuple[str, ...]:
        """The objects that its rows need."""
        return (self.path, self.vector) if self.vector else (self.path,)


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit.

    Attributes:
        version: its number.
        time: modification time of its file, by the clock of the store.
        operation: name in the history.
        added: files that are live afterwards.
        removed: files that are not, as they were before.
        removed_at: time of their removal by the clock of the writer.
        data_change: whether rows were added or deleted.
        parameters: of the operation.
        inserted: the rows that the operation adds.
        deleted: the rows that it deletes.
        metrics: of the operation.
    """

    version: int
    time: int
    operation: str
    added: tuple[AddedFile, ...] = ()
    removed: tuple[AddedFile, ...] = ()
    removed_at: int = 0
    data_change: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)
    inserted: frozenset[int] = frozenset()
    deleted: frozenset[int] = frozenset()
    metrics: Mapping[str, str] = field(default_factory=dict)


class DeltaLog:
    """The log of one table.

    Args:
        scheduler: runs the history.
        faults: what goes wrong.

    Attributes:
        commits: all commits that were ever made, the truth; ``stored`` names those whose file is still there.
        live: the live files of each version, by path.
        stored: numbers of the commits whose files exist.
        checkpoints: numbers of the versions with a checkpoint.
        on_commit: called with each commit.
    """

    def __init__(self, scheduler: Scheduler, faults: Faults) -> None:
        self._scheduler = scheduler
        self._faults = faults
        self.commits: list[Commit] = []
        self.live: list[dict[str, AddedFile]] = []
        self.rows: list[frozenset[int]] = []
        self.stored: set[int] = set()
        self.checkpoints: set[int] = set()
        self.on_commit = lambda _: None
        self.cache: dict[int, object] = {}
        self._late: list[tuple[int, Commit]] = []

    @property
    def newest(self) -> int:
        """The newest version."""
        return len(self.commits) - 1

    def can_make(self, version: int) -> bool:
        """Whether the stored log can make a version."""
        first = max((c for c in self.checkpoints if c <= version), default=-1)
        return 0 <= version <= self.newest and all(v in self.stored for v in range(first + 1, version + 1))

    def oldest(self) -> int:
        """The oldest version that the stored log can make, with all versions after it."""
        starts = sorted({0, *self.checkpoints})
        for start in starts:
            is_whole = start in self.checkpoints or 0 in self.stored
            if is_whole and all(v in self.stored for v in range(start + 1, self.newest + 1)):
                return start
        return self.newest

    def at(self, millis: int, or_oldest: bool = True) -> int:
        """See ``TableVersions.at``."""
        oldest = self.oldest()
        before = [v for v in range(oldest, self.newest + 1) if self.commits[v].time <= millis]
        return before[-1] if before else (oldest if or_oldest else -1)

    # ------------------------------------------------------------------------------------------------------ commits

    def commit(
        self, wanted: Commit, read: int, reads_all: bool = False, hold: Callable[[int], int] | None = None
    ) -> int:
        """Commits after the version that was read, or a later one without a conflict.

        Args:
            wanted: the commit; its version and time are filled in.
            read: version that the transaction read.
            reads_all: whether files that others have added since conflict, as for a writer with a condition.
            hold: waits after the first check that finds other commits; see ``TableTransaction.hold``.

        Raises:
            ConcurrentChangeError: another commit conflicts.
            StoreError: nobody knows the outcome.
        """
        faults = self._faults
        checked = read
        while True:
            faults.before("commit")
            self._settle()
            self._check(wanted, checked + 1, self.newest, reads_all)
            if hold is not None and self.newest > checked:
                checked = self.newest
                while hold(checked + 1) > checked + 1:
                    self._check(wanted, checked + 1, self.newest, reads_all)
                    checked = self.newest
                hold = None
                continue
            checked = self.newest
            if wanted.removed and faults.strikes(CONFLICT, 0.3):
                raise ConcurrentChangeError("another writer was first, as far as Delta can tell")
            faults.before("commit")
            self._settle()
            if self.newest > checked:
                faults.count(CONFLICT)
                continue
            if faults.strikes(LOST_ANSWER):
                return self._without_answer(wanted)
            return self._put(wanted)

    def _without_answer(self, wanted: Commit) -> int:
        kind = self._faults.share()
        if kind < 0.35:
            # It is there, and nobody says so.
            self._put(wanted)
            raise StoreError("the connection was reset while the commit was answered")
        if kind < 0.6 and wanted.removed:
            # The client sends it again, and finds its own commit in the way.
            self._put(wanted)
            raise ConcurrentChangeError("a file of the transaction was removed by a concurrent commit")
        if kind < 0.8:
            # It arrives later, unless another writer takes the number first.
            late = replace(wanted, version=self.newest + 1)
            # Mostly soon, so that the number is still free.
            wait = int(30_000 * self._faults.share() ** 3)
            self._late.append((self._scheduler.now + wait, late))
            raise StoreError("the request timed out")
        raise StoreError("the connection was reset before the commit was sent")

    def _settle(self) -> None:
        for entry in [entry for entry in self._late if entry[0] <= self._scheduler.now]:
            self._late.remove(entry)
            if entry[1].version == self.newest + 1:
                self._put(entry[1], entry[0])

    def _check(self, wanted: Commit, first: int, last: int, reads_all: bool) -> None:
        removed = {file.path for file in wanted.removed}
        for version in range(first, last + 1):
            other = self.commits[version]
            if removed and not removed.isdisjoint(file.path for file in other.removed):
                self._faults.count(CONFLICT)
                raise ConcurrentChangeError("a file of the transaction was removed by a concurrent commit")
            if reads_all and other.added and other.data_change:
                self._faults.count(CONFLICT)
                raise ConcurrentChangeError("files were added that the transaction would have read")

    def _put(self, wanted: Commit, arrived: int | None = None) -> int:
        version = len(self.commits)
        now = self._scheduler.now if arrived is None else arrived
        commit = replace(wanted, version=version, time=max(now, self._last_time() + 1))
        files = dict(self.live[-1]) if self.live else {}
        for file in commit.removed:
            files.pop(file.path, None)
        for file in commit.added:
            files[file.path] = file
        rows = (self.rows[-1] if self.rows else frozenset()) - commit.deleted | commit.inserted
        self.commits.append(commit)
        self.live.append(files)
        self.rows.append(rows)
        self.stored.add(version)
        self.on_commit(commit)
        return version

    def _last_time(self) -> int:
        return self.commits[-1].time if self.commits else 0

    # ------------------------------------------------------------------------------------------------------ actions

    def read(self, phase: str = "snapshot") -> int:
        """Returns the newest version."""
        self._faults.before(phase)
        self._settle()
        return self.newest

    def tombstones(self, version: int) -> Iterable[tuple[str, AddedFile, int]]:
        """The objects that commits up to a version removed and that are not live: path, file, time of the removal."""
        live = {path for file in self.live[version].values() for path in file.needs}
        for commit in self.commits[: version + 1]:
            for file in commit.removed:
                for path in file.needs:
                    if path not in live:
                        yield path, file, commit.removed_at
