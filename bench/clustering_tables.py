"""Tables of the simulation of clustering: their files, the ways to merge them, and the cost of a history."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from clustering_histories import HOUR, Append

from procedures.selection.size_tiers import TierPolicy, merges

QUIET = 6 * HOUR
# Files are counted after every such append. Coprime to the appends between two runs, so that counts fall anywhere
# between them.
SAMPLE = 7


@dataclass(frozen=True)
class SimFile:
    """A file of a table partition.

    Attributes:
        size: bytes.
        first: when its first rows were written, in milliseconds.
        last: when its last rows were written.
        newest: the latest event time of its rows.
        rewrites: how often the row that was rewritten most often was rewritten.
        lift: the highest sum, over its rows, of a row's rewrites and the tier of the file that first held the row.
        tier: tier that a merge has lifted it to.
    """

    size: int
    first: int
    last: int
    newest: int
    rewrites: int
    lift: int
    tier: int = 0


@dataclass
class SimTable:
    """A table.

    Attributes:
        policy: for the tiers of appended files.
        footer: bytes of each file that do not grow with its rows; a merge saves those of all inputs but one.
        small: files below ``isolate_bytes`` of each partition, by the time of their first rows.
        large: the other files of each partition.
        changed: partitions that got files since the last run.
        now: when the last append was.
        rewritten: bytes that were written by merges.
        appended: bytes that were appended.
        merges: how many files were written by merges.
    """

    policy: TierPolicy
    footer: int = 0
    small: dict[int, list[SimFile]] = field(default_factory=dict)
    large: dict[int, list[SimFile]] = field(default_factory=dict)
    changed: set[int] = field(default_factory=set)
    now: int = 0
    rewritten: int = 0
    appended: int = 0
    merges: int = 0

    def append(self, append: Append) -> None:
        """Adds the files of a commit."""
        self.now = append.at
        for partition, size, newest in append.files:
            self.changed.add(partition)
            self.appended += size
            self._add(partition, SimFile(size, append.at, append.at, newest, 0, self.policy.tier(size)))

    def _add(self, partition: int, file: SimFile) -> None:
        files = self.small if file.size < self.policy.isolate_bytes else self.large
        files.setdefault(partition, []).append(file)

    def merge(self, partition: int, runs: Sequence[Sequence[int]], tiers: Sequence[int] | None = None) -> None:
        """Replaces each run of small files by one file, lifted to a tier."""
        old = self.small[partition]
        taken: set[int] = set()
        for run, tier in zip(runs, tiers or [0] * len(runs), strict=True):
            files = [old[position] for position in run]
            taken.update(run)
            size = sum(f.size for f in files) - (len(files) - 1) * self.footer
            self.rewritten += size
            self.merges += 1
            first, last = min(f.first for f in files), max(f.last for f in files)
            rewrites, lift = max(f.rewrites for f in files) + 1, max(f.lift for f in files) + 1
            self._add(partition, SimFile(size, first, last, max(f.newest for f in files), rewrites, lift, tier))
        kept = [f for position, f in enumerate(self.small[partition]) if position not in taken]
        self.small[partition] = sorted(kept, key=lambda f: f.first)

    def files(self) -> Iterator[SimFile]:
        """All files."""
        for of_partition in (*self.small.values(), *self.large.values()):
            yield from of_partition


Clustering = Callable[[SimTable], None]


def _columns(files: Sequence[SimFile], names: Sequence[str]) -> list[NDArray[np.int64]]:
    return [np.array([getattr(file, name) for file in files], np.int64) for name in names]


def _merge_all(table: SimTable, policy: TierPolicy, scale: float = 1.0) -> None:
    """Merges what a policy chooses until it chooses nothing.

    Args:
        table: the table.
        policy: when to merge.
        scale: bytes of a file are multiplied by it before the policy sees them.
    """
    for partition in table.changed:
        while True:
            small = table.small.get(partition, [])
            size = (np.array([f.size for f in small], np.float64) * scale).astype(np.int64)
            runs = merges(*_small_files(size, *_columns(small, ("first", "last", "tier"))), policy)
            if not runs:
                break
            table.merge(partition, [run.positions for run in runs], [run.tier for run in runs])
    table.changed = set()


def tiered(table: SimTable) -> None:
    """SizeTieredClustering."""
    _merge_all(table, table.policy)


def aligned(table: SimTable) -> None:
    """The same with tiers that are counted from ``isolate_bytes`` down: sizes are scaled to make it a power."""
    power = 1
    while power < table.policy.isolate_bytes:
        power *= table.policy.ratio
    _merge_all(table, replace(table.policy, isolate_bytes=power), power / table.policy.isolate_bytes)


def quiet(table: SimTable) -> None:
    """The same; also, all small files of a partition are merged once it has had no append for six hours."""
    _merge_all(table, table.policy)
    for partition, small in table.small.items():
        if len(small) > 1 and max(f.last for f in small) <= table.now - QUIET:
            _merge_together(table, partition, range(len(small)))


def finished(table: SimTable) -> None:
    """Time ranges that start at multiples of ``max_time_range``; all small files of a past range are merged."""
    most = table.policy.max_time_range
    assert most is not None
    for partition in table.changed:
        for bucket in sorted({f.first // most for f in table.small.get(partition, [])}):
            while True:
                small = table.small[partition]
                positions = [p for p, f in enumerate(small) if f.first // most == bucket]
                if len(positions) < 2:
                    break
                if bucket < table.now // most:
                    _merge_together(table, partition, positions)
                    break
                columns = _columns([small[p] for p in positions], ("size", "first", "last", "tier"))
                runs = merges(*_small_files(*columns), table.policy)
                if not runs:
                    break
                chosen = [[positions[p] for p in run.positions] for run in runs]
                table.merge(partition, chosen, [run.tier for run in runs])
    table.changed = set()


def _merge_together(table: SimTable, partition: int, positions: Sequence[int]) -> None:
    runs: list[list[int]] = [[]]
    for position in positions:
        if sum(table.small[partition][p].size for p in runs[-1]) >= table.policy.isolate_bytes:
            runs.append([])
        runs[-1].append(position)
    table.merge(partition, [together for together in runs if len(together) > 1])


def optimize(table: SimTable) -> None:
    """Delta's OPTIMIZE: fills bins with the small files of a partition by size, and rewrites bins of several files."""
    for partition, small in table.small.items():
        bins: list[list[int]] = [[]]
        filled = 0
        for position in sorted(range(len(small)), key=lambda p: small[p].size):
            if filled + small[position].size > table.policy.isolate_bytes:
                bins.append([])
                filled = 0
            bins[-1].append(position)
            filled += small[position].size
        table.merge(partition, [run for run in bins if len(run) > 1])


def nothing(_table: SimTable) -> None:
    """Leaves all files as they are."""


@dataclass(frozen=True)
class Outcome:
    """The cost of a history.

    Attributes:
        partition_files: files that a scan of one partition reads, on average over partitions and history.
        newest_files: files that a scan of the newest tenth of the event time reads, on average over the history.
        newest_bytes: bytes that these scans read, per byte that was appended with event times in their tenth.
        rewritten: bytes rewritten per byte appended.
        left: files of the table at the end.
        small_left: those of them below ``isolate_bytes``, per partition.
        rewrites: how often the row that was rewritten most often was rewritten.
        lift: rewrites of a row and the tier of the file that first held it, at most; see ``SimFile``.
    """

    partition_files: float
    newest_files: float
    newest_bytes: float
    rewritten: float
    left: int
    small_left: float
    rewrites: int
    lift: int


def run(history: Sequence[Append], policy: TierPolicy, every: int, clustering: Clustering, footer: int = 0) -> Outcome:
    """Plays a history.

    Args:
        history: the appends.
        policy: when to merge.
        every: appends between two runs.
        clustering: what a run does.
        footer: see ``SimTable``.
    """
    table = SimTable(policy, footer)
    partition_files, newest_files = [], []
    read = needed = 0
    appended = np.array([(number, *file[1:]) for number, a in enumerate(history, 1) for file in a.files], np.int64)
    for number, append in enumerate(history, 1):
        table.append(append)
        if number % every == 0:
            clustering(table)
        if number % SAMPLE == 0 or number == len(history):
            now = append.at
            since = now - (now - history[0].at) // 10
            files = list(table.files())
            partition_files.append(len(files) / len(table.small.keys() | table.large.keys()))
            of_newest = [f.size for f in files if f.newest >= since]
            newest_files.append(len(of_newest))
            read += sum(of_newest)
            needed += int(appended[(appended[:, 0] <= number) & (appended[:, 2] >= since), 1].sum())
    partitions = table.small.keys() | table.large.keys()
    return Outcome(
        float(np.mean(partition_files)),
        float(np.mean(newest_files)),
        read / needed,
        table.rewritten / table.appended,
        sum(1 for _ in table.files()),
        sum(map(len, table.small.values())) / len(partitions),
        max(f.rewrites for f in table.files()),
        max(f.lift for f in table.files()),
    )


def _small_files(size, first_time, last_time, tier):
    """The columns that ``merges`` looks at, and the positions of all files."""
    files = SimpleNamespace(size=size, first_time=first_time, last_time=last_time, tier=tier)
    return files, np.arange(len(size))
