"""Stories of small appends without Spark: the cost of reads and rewrites, against the same rows laid out at once.

Rows are points and weights. Files, bands and pages are laid out by ``otree.curve`` and ``otree.packing``, and groups
are chosen by the code of the strategy; only reading and writing are left out. A story takes seconds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from otree.curve import Ranks, RowsBeside, bits_per_dimension, hilbert_keys
from otree.packing import pack
from otree.pages import page_rows_of
from otree.value_spread import ValueSpread
from procedures.groups.cutter import MAX_FILES_PER_GROUP
from procedures.groups.judge import Judge
from procedures.groups.read_costs import Regions, quantiles
from procedures.selection.merge_candidates import Limit
from procedures.selection.merge_choice import Budget, choose

SAMPLES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5)
BOXES = (0.001, 0.01, 0.1)
BOXES_EACH = 40
FILES = 28
PAGES_PER_FILE = 36
Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SimFile:
    """A file: its rows in order, and their facts in the log and in its footer."""

    ids: Ids
    first: float
    end: float
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    page_low: NDArray[np.float64]
    page_high: NDArray[np.float64]
    page_rows: NDArray[np.int64]
    write: int
    rewrites: float
    revision: int


@dataclass
class SimTable:
    """A table of rows that are all known beforehand; files hold numbers of rows.

    Attributes:
        points: values of all rows that will ever be written, shape (rows, columns).
        weights: their weights.
        target_rows: rows of a file.
        page_rows: rows of a page where the whole table is written.
        most_rewrites: the cap of the strategy.
        target: what reads may cost.
        group_rows: rows of a group.
    """

    points: NDArray[np.float64]
    weights: NDArray[np.int32]
    target_rows: int
    page_rows: int
    most_rewrites: float = 4.0
    target: float = 1.25
    group_rows: float = float("inf")
    files: list[SimFile] = field(default_factory=list)
    unindexed: list[Ids] = field(default_factory=list)
    deleted: NDArray[np.bool_] = field(init=False)
    written: int = 0
    writes: int = 0
    merges: int = 0
    revision: int = 1

    def __post_init__(self) -> None:
        self.deleted = np.zeros(len(self.points), bool)

    def live(self) -> Ids:
        """Rows of the table."""
        ids = np.concatenate([f.ids for f in self.files] + self.unindexed)
        return ids[~self.deleted[ids]]

    def lay_out(self, ids: Ids, rewrites: float, span: float = 1.0) -> list[SimFile]:
        """The files that a rewrite makes of some rows."""
        self.writes += 1
        self.written += len(ids)
        return laid_out(self, ids, rewrites, self.files, span)

    def index(self) -> None:
        """UnindexedFiles."""
        if self.unindexed:
            ids = np.concatenate(self.unindexed)
            ids = ids[~self.deleted[ids]]
            self.unindexed = []
            self.files += self.lay_out(ids, 1.0)

    def optimize(self) -> None:
        """Indexes the appended rows, and merges as long as the strategy chooses files."""
        self.index()
        for _ in range(20):
            judge = Judge(regions_of(self.files), float(self.target_rows), self.page_rows)
            budget = Budget(self.most_rewrites, sum(f.rewrites * len(f.ids) for f in self.files))
            choice = choose(judge, self.target, budget, Limit(self.group_rows, MAX_FILES_PER_GROUP))
            if not choice.merges:
                return
            files = self.files
            for merge in choice.merges:
                self.merges += 1
                taken = [files[i] for i in merge.files]
                ids = np.concatenate([f.ids for f in taken])
                rewrites = sum(f.rewrites * len(f.ids) for f in taken) / len(ids) + 1
                merged = {id(f) for f in taken}
                self.files = [f for f in self.files if id(f) not in merged]
                self.files += self.lay_out(ids[~self.deleted[ids]], rewrites, merge.end - merge.first)
        raise AssertionError("the strategy does not come to an end")


def regions_of(files: Sequence[SimFile]) -> Regions:
    """What the judge is told of the files."""
    rows = np.array([float(len(f.ids)) for f in files])
    low, high = np.array([f.low for f in files]), np.array([f.high for f in files])
    ends = [quantiles(low[:, i], high[:, i], rows) for i in range(low.shape[1])]
    return Regions(
        rows,
        rows,
        np.array([f.first for f in files]),
        np.array([f.end for f in files]),
        np.stack([e[0] for e in ends], axis=1),
        np.stack([e[1] for e in ends], axis=1),
        np.array([f.write for f in files]),
    )


def laid_out(
    table: SimTable, ids: Ids, rewrites: float, others: Sequence[SimFile] = (), span: float = 1.0
) -> list[SimFile]:
    """Returns the files written for some rows of a table with other files: bands of weight, runs, pages."""
    points, weights = table.points[ids], table.weights[ids]
    bits = bits_per_dimension(points.shape[1])
    staying_rows = sum(len(f.ids) for f in others)
    rows_of_others = np.array([float(len(f.ids)) for f in others])
    codes = []
    for column, axis in enumerate(points.T):
        low, high = np.array([f.low[column] for f in others]), np.array([f.high[column] for f in others])
        spread = ValueSpread.of_files(low, high, rows_of_others)
        of_others = None if spread is None else RowsBeside(staying_rows / (staying_rows + len(ids)), spread.below)
        ranks = Ranks.of_sample(axis[:: max(1, len(axis) // 20_000)], bits, of_others)
        codes.append(ranks.codes_of(axis))
    keys = hilbert_keys(codes, bits)
    packing = pack(weights, keys, len(ids), table.target_rows, staying_rows, span)
    band = np.searchsorted([b.first_weight for b in packing.bands], weights, side="right") - 1
    file = np.zeros(len(ids), np.int64)
    for number, b in enumerate(packing.bands):
        of_band = np.flatnonzero(np.maximum(band, 0) == number)
        run = np.searchsorted([r.first_key for r in b.runs], keys[of_band], side="right") - 1
        run = np.maximum(run, 0)
        first = np.array([r.first_file for r in b.runs])
        width = np.array([r.width for r in b.runs])
        file[of_band] = first[run] + ids[of_band] % width[run]
    page = int(page_rows_of(len(ids), len(ids) + staying_rows, table.page_rows))
    order = np.lexsort((keys, file))
    starts = np.flatnonzero(np.diff(file[order], prepend=-1))
    files = []
    for start, end in zip(starts, [*starts[1:], len(ids)], strict=True):
        part = order[start:end]
        at = np.arange(0, len(part), page)
        low = np.minimum.reduceat(points[part], at, axis=0)
        high = np.maximum.reduceat(points[part], at, axis=0)
        fractions = (weights[part].astype(np.float64) + 2.0**31) / 2.0**32
        files.append(
            SimFile(
                ids[part],
                float(fractions.min()),
                float(fractions.max()) + 2.0**-32,
                low.min(axis=0),
                high.max(axis=0),
                low,
                high,
                np.diff([*at, len(part)]),
                table.writes,
                rewrites,
                table.revision,
            )
        )
    return files


@dataclass(frozen=True, eq=False)
class Query:
    """A read: rows of a kind, with weights below a fraction and values within a box."""

    kind: str
    fraction: float
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def queries(points: NDArray[np.float64], seed: int = 5) -> list[Query]:
    """The fixed set of reads over the rows that are there."""
    random = np.random.default_rng(seed)
    dimensions = points.shape[1]
    ordered = np.sort(points, axis=0)
    everything = np.full(dimensions, -np.inf), np.full(dimensions, np.inf)
    found = [Query(f"sample {f}", f, *everything) for f in SAMPLES]

    def box(kind: str, columns: Sequence[int], side: float, start: float | None = None) -> Query:
        low, high = everything[0].copy(), everything[1].copy()
        for column in columns:
            at = random.uniform(0, 1 - side) if start is None else start
            low[column] = ordered[int(at * (len(ordered) - 1)), column]
            high[column] = ordered[int(min(at + side, 1) * (len(ordered) - 1)), column]
        return Query(kind, 1.0, low, high)

    for share in BOXES:
        for pair in combinations(range(dimensions), 2):
            found += [box(f"box {share}", pair, share**0.5) for _ in range(BOXES_EACH)]
    found += [box("slice 0.01", (dimensions - 1,), 0.01) for _ in range(BOXES_EACH)]
    found += [box("tail 0.01", (0,), 0.01, 0.99)]
    return found


def costs(files: Sequence[SimFile], reads: Sequence[Query], unindexed: int = 0) -> dict[str, tuple[float, float]]:
    """Mean rows and files that each kind of read reads."""
    owner = np.repeat(np.arange(len(files)), [len(f.page_rows) for f in files])
    page_low = np.concatenate([f.page_low for f in files])
    page_high = np.concatenate([f.page_high for f in files])
    page_rows = np.concatenate([f.page_rows for f in files])
    low, high = np.array([f.low for f in files]), np.array([f.high for f in files])
    first = np.array([f.first for f in files])
    sums: dict[str, list[tuple[float, float]]] = {}
    for q in reads:
        opened = (first < q.fraction) & np.all((low <= q.high) & (high >= q.low), axis=1)
        pages = opened[owner] & np.all((page_low <= q.high) & (page_high >= q.low), axis=1)
        sums.setdefault(q.kind, []).append((float(page_rows[pages].sum()) + unindexed, float(opened.sum())))
    return {
        kind: (float(np.mean([s[0] for s in all_])), float(np.mean([s[1] for s in all_])))
        for kind, all_ in sums.items()
    }


def ratios(table: SimTable) -> dict[str, tuple[float, float]]:
    """Bytes and files of each kind of read, relative to the same rows laid out at once."""
    live = table.live()
    reads = queries(table.points[live])
    fresh = costs(laid_out(table, live, 1.0), reads)
    today = costs(table.files, reads)
    return {kind: (today[kind][0] / max(fresh[kind][0], 1), today[kind][1] / max(fresh[kind][1], 1)) for kind in fresh}


@dataclass(frozen=True)
class Story:
    """A history of appends.

    Attributes:
        name: for the report.
        base: rows before the appends, as a share of the last rows.
        appends: how many appends.
        every: appends between optimizations.
        points: makes the values of rows, by their place in time in [0, 1].
    """

    name: str
    base: float
    appends: int
    every: int
    points: Callable[[NDArray[np.float64], np.random.Generator], NDArray[np.float64]]


def _uniform(time_: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
    return random.random((len(time_), 2))


def _moving(time_: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
    return np.stack([time_ + random.random(len(time_)) / 730, random.random(len(time_))], axis=1)


def _late(time_: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
    points = random.random((len(time_), 2))
    late = random.random(len(time_)) < 0.1
    points[late & (time_ > 0), 0] -= 1
    return points


STORIES = (
    Story("zero", 0.0, 200, 10, _uniform),
    Story("base", 0.5, 200, 10, _uniform),
    Story("time", 0.0, 730, 10, _moving),
    Story("late", 0.5, 200, 10, _late),
)


def run(
    story: Story, rows: int, deletes: float, seed: int = 1, checks: int = 4, most_rewrites: float = 4.0
) -> list[dict[str, Any]]:
    """Runs a story, and reports at several points in time.

    Args:
        story: the story.
        rows: rows of the last table.
        deletes: share of the rows that is deleted; half of these are written again, as updates do.
        seed: of the random values.
        checks: about how many reports.
        most_rewrites: the budget of the strategy; 1 = rows are indexed and never merged.
    """
    random = np.random.default_rng(seed)
    base = int(rows * story.base)
    batch = (rows - base) // story.appends
    place = np.concatenate([np.zeros(base), np.repeat(np.arange(1, story.appends + 1) / story.appends, batch)])
    points = story.points(place, random)
    again = int(rows * deletes / 2)
    weights = random.integers(-(2**31), 2**31, len(points) + again, dtype=np.int64).astype(np.int32)
    points = np.concatenate([points, np.zeros((again, points.shape[1]))])
    target_rows = max(1, rows // FILES)
    table = SimTable(points, weights, target_rows, max(1, target_rows // PAGES_PER_FILE), most_rewrites)
    found: list[dict[str, Any]] = []
    if base:
        table.unindexed.append(np.arange(base))
        table.optimize()
    table.written = 0
    updated = base + batch * story.appends
    for number in range(story.appends):
        start = base + number * batch
        table.unindexed.append(np.arange(start, start + batch))
        if (number + 1) % story.every == 0 or number + 1 == story.appends:
            if deletes:
                live = table.live()
                gone = live[random.random(len(live)) < deletes * story.every / story.appends]
                table.deleted[gone] = True
                new = gone[: min(len(gone) // 2, len(table.points) - updated)]
                table.points[updated : updated + len(new)] = table.points[new]
                table.unindexed.append(np.arange(updated, updated + len(new)))
                updated += len(new)
            table.optimize()
            done = (number + 1) // story.every
            if done % max(1, story.appends // story.every // checks) == 0:
                live_rows = len(table.live())
                found.append(
                    {
                        "appends": number + 1,
                        "files": len(table.files),
                        "rewritten": round(table.written / live_rows, 2),
                        "rewrites": round(sum(f.rewrites * len(f.ids) for f in table.files) / live_rows, 2),
                        "merges": table.merges,
                        **{k: (round(b, 2), round(n, 2)) for k, (b, n) in ratios(table).items()},
                    }
                )
    return found


def main() -> None:
    """Runs the stories and prints their costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--deletes", type=float, nargs="*", default=[0.0, 0.05])
    arguments = parser.parse_args()
    for story in STORIES:
        if arguments.only and story.name not in arguments.only:
            continue
        for deletes in arguments.deletes:
            begun = time.process_time()
            for line in run(story, arguments.rows, deletes):
                print(story.name, deletes, line)
            print(f"{time.process_time() - begun:.1f} s")


if __name__ == "__main__":
    main()
