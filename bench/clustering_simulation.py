"""Histories of small appends without Spark: files that queries read, and bytes that SizeTieredClustering rewrites.

The policy is the code of the strategy; only reading and writing are left out. Delta's ``OPTIMIZE`` runs over the same
appends at the same moments, with 128 MB as its file size. All tables together take one to two minutes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from procedures.selection.size_tiered_clustering import ISOLATE_BYTES, MIN_FILES, TIER_RATIO
from procedures.selection.size_tiers import SmallFiles, TierPolicy, merges

MINUTE = 60_000
HOUR, DAY = 60 * MINUTE, 24 * 60 * MINUTE
KB, MB = 1024, 1024**2
SIZES = (30 * KB, 300 * KB, 3 * MB)
EVERY = (1, 10, 30, 100)
REGIONS = 50
BUCKET = 2 * HOUR
QUIET = 6 * HOUR
# Files are counted after every such append. Coprime to EVERY, so that counts fall anywhere between two runs.
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


@dataclass(frozen=True)
class Append:
    """Files that one commit adds.

    Attributes:
        at: when, in milliseconds.
        files: partition, bytes and latest event time of each file.
    """

    at: int
    files: tuple[tuple[int, int, int], ...]


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
            runs = merges(SmallFiles(size, *_columns(small, ("first", "last", "tier"))), policy)
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
                runs = merges(SmallFiles(*columns), table.policy)
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
    """What a history cost.

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


@dataclass(frozen=True)
class Case:
    """A kind of history.

    Attributes:
        story: ``steady``, ``bursty`` or ``late``.
        many: several partitions, where the story has them.
        size: median bytes of an appended file.
    """

    story: str
    many: bool
    size: int

    @property
    def name(self) -> str:
        """For the report."""
        partitions = "many partitions" if self.many else "1 partition"
        return f"{self.story}, {partitions}, {self.size // KB} KB"


CASES = tuple(Case(*values) for values in product(("steady", "bursty", "late"), (False, True), SIZES))


def appends(case: Case, count: int, seed: int = 1) -> list[Append]:
    """The history of a case.

    Steady: an append every two minutes. Bursty: per 20 hours, 200 appends of ten times the size within 33 minutes and
    400 others. Late: every fifth append has rows of a uniformly distributed earlier time; its files are small.
    Several partitions are 50 regions of which each append has three, the larger ones more often, or two hours each of
    the event time where rows arrive late; a late append then has files in three of them.

    Args:
        case: its kind.
        count: how many appends.
        seed: of the random values.
    """
    random = np.random.default_rng(seed)
    weights = 1 / np.arange(1, REGIONS + 1)
    weights /= weights.sum()
    history: list[Append] = []
    at = 0
    for number in range(count):
        in_burst = case.story == "bursty" and number % 600 >= 400
        at += 10_000 if in_burst else 2 * MINUTE
        median = case.size * (10 if in_burst else 1)
        late = case.story == "late" and number % 5 == 4
        events = [at]
        if late:
            median //= 5
            events = [int(e) for e in random.integers(0, at, 3 if case.many else 1)]
        if not case.many:
            partitions = [0]
        elif case.story == "late":
            partitions = [event // BUCKET for event in events]
        else:
            partitions = [int(p) for p in random.choice(REGIONS, 3, replace=False, p=weights)]
            events = [at] * 3
        sizes = [int(s) for s in median * random.lognormal(0, 0.7, len(events))]
        history.append(Append(at, tuple(zip(partitions, sizes, events, strict=True))))
    return history


def tier_policy(
    min_files: int = MIN_FILES,
    tier_ratio: int = TIER_RATIO,
    max_time_range: int | None = None,
    min_bytes: int | None = None,
) -> TierPolicy:
    """The defaults of the strategy, or others."""
    return TierPolicy(min_files, min_bytes, tier_ratio, ISOLATE_BYTES, max_time_range)


def line(name: str, outcomes: Sequence[Outcome]) -> str:
    """Means over several histories, and the highest number of rewrites."""
    means = [
        float(np.mean([getattr(outcome, of) for outcome in outcomes]))
        for of in ("partition_files", "newest_files", "newest_bytes", "rewritten", "left", "small_left")
    ]
    top = max(outcome.rewrites for outcome in outcomes)
    texts = [f"{mean:10.{digits}f}" for mean, digits in zip(means, (1, 1, 2, 2, 0, 1), strict=True)]
    return f"{name:36}{''.join(texts)}{top:10d}"


NAMES = ("partition", "newest", "bytes", "rewritten", "left", "small", "rewrites")
HEADER = f"{'':36}{''.join(f'{name:>10}' for name in NAMES)}"


class Report:
    """Plays histories and prints tables.

    Args:
        count: appends of each history.
    """

    def __init__(self, count: int) -> None:
        self.histories = {case: appends(case, count) for case in CASES}
        self._outcomes: dict[tuple[Case, TierPolicy, int, Clustering], Outcome] = {}

    def _title(self, text: str) -> None:
        print(f"\n{text}\n{HEADER}")

    def _line(self, name: str, cases: Sequence[Case], policy: TierPolicy, every: int, clustering: Clustering) -> None:
        for case in cases:
            key = case, policy, every, clustering
            if key not in self._outcomes:
                self._outcomes[key] = run(self.histories[case], policy, every, clustering)
        print(line(name, [self._outcomes[case, policy, every, clustering] for case in cases]), flush=True)

    def cases(self) -> None:
        """The defaults and OPTIMIZE, each case."""
        self._title(f"min_files {MIN_FILES}, tier_ratio {TIER_RATIO}, and OPTIMIZE, a run every 10 appends")
        for case in CASES:
            self._line(case.name, [case], tier_policy(), 10, tiered)
            self._line("  OPTIMIZE", [case], tier_policy(), 10, optimize)

    def intervals(self) -> None:
        """Appends between two runs."""
        self._title("Appends between two runs, all cases")
        self._line("no clustering", CASES, tier_policy(), 1, nothing)
        for every in EVERY:
            self._line(f"every {every}: {MIN_FILES}, {TIER_RATIO}", CASES, tier_policy(), every, tiered)
            self._line(f"every {every}: OPTIMIZE", CASES, tier_policy(), every, optimize)

    def parameters(self) -> None:
        """min_files and tier_ratio."""
        self._title("min_files, tier_ratio: all cases, a run every 10 appends")
        for min_files, ratio in ((2, 2), (3, 3), (4, 2), (4, 4), (5, 5), (6, 6), (8, 2), (8, 4), (8, 8), (12, 12)):
            self._line(f"{min_files}, {ratio}", CASES, tier_policy(min_files, ratio), 10, tiered)

    def others(self) -> None:
        """Other rules."""
        self._title("Other rules: all cases, a run every 10 appends")
        for min_files in (MIN_FILES, 8):
            policy = tier_policy(min_files, min_files)
            self._line(f"{min_files}, {min_files}", CASES, policy, 10, tiered)
            self._line("  min_bytes = isolate_bytes", CASES, replace(policy, min_bytes=ISOLATE_BYTES), 10, tiered)
            self._line("  tiers from isolate_bytes", CASES, policy, 10, aligned)
        late = [case for case in CASES if case.story == "late" and case.many]
        self._title("Partitions that get no more files: late, many partitions, a run every 10 appends")
        self._line(f"{MIN_FILES}, {TIER_RATIO}", late, tier_policy(), 10, tiered)
        self._line("  merged once quiet for 6 hours", late, tier_policy(), 10, quiet)
        self._line("  OPTIMIZE", late, tier_policy(), 10, optimize)

    def time_ranges(self) -> None:
        """max_time_range."""
        for size in SIZES:
            cases = [case for case in CASES if case.size == size and not case.many]
            self._title(f"max_time_range: 1 partition, {size // KB} KB, a run every 10 appends")
            for name, most in (("none", None), ("1 day", DAY), ("1 hour", HOUR)):
                self._line(name, cases, tier_policy(max_time_range=most), 10, tiered)
            self._line("1 hour, past hours merged", cases, tier_policy(max_time_range=HOUR), 10, finished)

    def bounds(self) -> None:
        """Rewrites of a row against the tiers that it passes through."""
        print(
            "\nMost rewrites of a row, the tiers of the smallest file up to isolate_bytes, and how far any row exceeds"
        )
        print("the tiers of its own first file (1 partition, a run after each append, files of rows and a footer)")
        for (min_files, ratio), footer in product(((2, 2), (4, 4), (8, 4), (8, 8)), (0, 10 * KB)):
            policy = tier_policy(min_files, ratio)
            top = policy.tier(ISOLATE_BYTES - 1) + 1
            texts = []
            for size in (KB, *SIZES):
                rows = appends(Case("steady", False, size), 1000)
                history = [Append(a.at, tuple((p, s + footer, e) for p, s, e in a.files)) for a in rows]
                tiers = top - policy.tier(min(s for a in history for _, s, _ in a.files))
                outcome = run(history, policy, 1, tiered, footer)
                texts.append(f"{size // KB} KB: {outcome.rewrites} of {tiers}, {max(0, outcome.lift - top)} more")
            print(f"{min_files}, {ratio}, footer {footer // KB:2d} KB   {'   '.join(texts)}", flush=True)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--appends", type=int, default=3000)
    names = ("cases", "intervals", "parameters", "others", "time_ranges", "bounds")
    parser.add_argument("--only", nargs="*", default=names, choices=names)
    arguments = parser.parse_args()
    report = Report(arguments.appends)
    for name in arguments.only:
        begun = time.process_time()
        getattr(report, name)()
        print(f"{time.process_time() - begun:.1f} s")


if __name__ == "__main__":
    main()
