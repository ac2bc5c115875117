"""Stories of appends to tables of terabytes, without Spark: what reads and rewrites cost, against a fresh layout.

Each file of 128 MB is 64 points, each of which stands for 2 MB of rows. Files and bands are laid out by ``otree.curve``
and ``otree.packing``, and groups are chosen by the code of the strategy. What a read reads is counted on the points: a
page is a cube around a point, as large as the density of its file says, so that nothing of the strategy's estimates is
used.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
from procedures.selection.merge_choice import Budget, Choice, choose

FILE_BYTES = 128 * 2**20
POINTS_PER_FILE = 64
POINT_BYTES = FILE_BYTES / POINTS_PER_FILE
ROW_BYTES = 100
ROWS_PER_POINT = POINT_BYTES / ROW_BYTES
BATCH_BYTES = 10_000_000_000
GROUP_BYTES = 1_000_000_000
SAMPLES = (0.001, 0.01, 0.1)
BOXES = (0.001, 0.01)
BOXES_EACH = 20
Ids = NDArray[np.int64]
Points = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SimFile:
    """A file: its points, and their facts in the log."""

    ids: Ids
    first: float
    end: float
    low: Points
    high: Points
    page: Points
    write: int
    rewrites: float


@dataclass
class SimTable:
    """A table whose points are all known beforehand.

    Attributes:
        points: values, shape (points, columns).
        weights: of the points.
        target: what reads may cost.
        most_rewrites: the cap of the strategy.
    """

    points: Points
    weights: NDArray[np.int32]
    target: float = 1.25
    most_rewrites: float = 4.0
    group_bytes: float = GROUP_BYTES
    files: list[SimFile] = field(default_factory=list)
    deleted: NDArray[np.bool_] = field(init=False)
    written: int = 0
    writes: int = 0
    groups: int = 0
    largest_group: float = 0.0
    slowest: float = 0.0
    predicted: float = 0.0
    last: Choice | None = None

    def __post_init__(self) -> None:
        self.deleted = np.zeros(len(self.points), bool)

    def live(self) -> Ids:
        """Points of the table."""
        ids = np.concatenate([f.ids for f in self.files])
        return ids[~self.deleted[ids]]

    def index(self, ids: Ids, rewrites: float = 1.0) -> None:
        """UnindexedFiles: batches become writes."""
        step = int(BATCH_BYTES / POINT_BYTES)
        for start in range(0, len(ids), step):
            batch = ids[start : start + step]
            self.written += len(batch)
            self.files += self.laid_out(batch, rewrites)

    def optimize(self) -> None:
        """Merges as long as the strategy chooses files."""
        for _ in range(50):
            begun = time.process_time()
            judge = Judge(regions_of(self.files), float(FILE_BYTES))
            spent = sum(f.rewrites * len(f.ids) for f in self.files) * POINT_BYTES
            choice = choose(
                judge, self.target, Budget(self.most_rewrites, spent), Limit(self.group_bytes, MAX_FILES_PER_GROUP)
            )
            self.slowest = max(self.slowest, time.process_time() - begun)
            self.last = choice
            if not choice.merges:
                return
            self.predicted = choice.after
            gone: set[int] = set()
            added: list[SimFile] = []
            for merge in choice.merges:
                taken = [self.files[i] for i in merge.files]
                assert not gone & set(merge.files.tolist()), "groups overlap"
                gone |= set(merge.files.tolist())
                ids = np.concatenate([f.ids for f in taken])
                self.largest_group = max(self.largest_group, len(ids) * POINT_BYTES)
                rewrites = sum(f.rewrites * len(f.ids) for f in taken) / len(ids) + 1
                self.groups += 1
                ids = ids[~self.deleted[ids]]
                self.written += len(ids)
                if len(ids):
                    added += self.laid_out(ids, rewrites, merge.end - merge.first)
            self.files = [f for i, f in enumerate(self.files) if i not in gone] + added
        raise AssertionError("the strategy does not come to an end")

    def laid_out(self, ids: Ids, rewrites: float, span: float = 1.0) -> list[SimFile]:
        """The files that a rewrite makes of some points."""
        self.writes += 1
        beside = sum(len(f.ids) for f in self.files)
        spreads = self._spreads() if beside > len(ids) // 4 else [None] * self.points.shape[1]
        return laid_out(self.points, self.weights, ids, spreads, beside, rewrites, span, self.writes)

    def _spreads(self) -> list[ValueSpread | None]:
        # As in the product, the files of the version that a run begins with say where all rows are.
        some = self.files[:: max(1, len(self.files) // 400)]
        rows = np.array([float(len(f.ids)) for f in some])
        low, high = np.array([f.low for f in some]), np.array([f.high for f in some])
        return [ValueSpread.of_files(low[:, c], high[:, c], rows) for c in range(low.shape[1])]


def laid_out(
    all_points: Points,
    all_weights: NDArray[np.int32],
    ids: Ids,
    spreads: Sequence[ValueSpread | None],
    beside: int,
    rewrites: float,
    span: float,
    write: int,
) -> list[SimFile]:
    """Lays points out in bands of weight and runs of the curve."""
    points, weights = all_points[ids], all_weights[ids]
    bits = bits_per_dimension(points.shape[1])
    codes = []
    for axis, spread in zip(points.T, spreads, strict=True):
        of_others = None if spread is None else RowsBeside(beside / (beside + len(ids)), spread.below)
        codes.append(Ranks.of_sample(axis[:: max(1, len(axis) // 100_000)], bits, of_others).codes_of(axis))
    keys = hilbert_keys(codes, bits)
    packing = pack(weights, keys, len(ids), POINTS_PER_FILE, beside, span)
    band = np.maximum(np.searchsorted([b.first_weight for b in packing.bands], weights, side="right") - 1, 0)
    file = np.zeros(len(ids), np.int64)
    for number, b in enumerate(packing.bands):
        of_band = np.flatnonzero(band == number)
        run = np.maximum(np.searchsorted([r.first_key for r in b.runs], keys[of_band], side="right") - 1, 0)
        first, width = np.array([r.first_file for r in b.runs]), np.array([r.width for r in b.runs])
        file[of_band] = first[run] + ids[of_band] % width[run]
    order = np.lexsort((keys, file))
    starts = np.flatnonzero(np.diff(file[order], prepend=-1))
    ends = np.array([*starts[1:], len(ids)])
    ordered = points[order]
    low, high = np.minimum.reduceat(ordered, starts, axis=0), np.maximum.reduceat(ordered, starts, axis=0)
    fractions = (weights[order].astype(np.float64) + 2.0**31) / 2.0**32
    limits = [(b.first_weight + 2.0**31) / 2.0**32 for b in packing.bands] + [1.0]
    if span < 1.0:
        limits[0], limits[-1] = float(fractions.min()), float(fractions.max()) + 2.0**-32
    in_band = band[order][starts]
    page_rows = float(page_rows_of(len(ids), len(ids) + beside))
    pages = np.maximum((ends - starts) * ROWS_PER_POINT / page_rows, 1.0)
    # The box of a few points is smaller than that of the rows that they stand for.
    count = np.maximum(ends - starts, 2)[:, None]
    extent = np.clip((high - low) * (count + 1) / (count - 1), 1e-9, 1.0)
    page = np.minimum(extent, (extent.prod(axis=1) / pages)[:, None] ** (1 / extent.shape[1]))
    return [
        SimFile(ids[order[s:e]], limits[b], limits[b + 1], low[n], high[n], page[n], write, rewrites)
        for n, (s, e, b) in enumerate(zip(starts, ends, in_band, strict=True))
    ]


def regions_of(files: Sequence[SimFile]) -> Regions:
    """What the judge is told of the files."""
    rows = np.array([len(f.ids) for f in files]) * ROWS_PER_POINT
    low, high = np.array([f.low for f in files]), np.array([f.high for f in files])
    ends = [quantiles(low[:, i], high[:, i], rows) for i in range(low.shape[1])]
    return Regions(
        rows * ROW_BYTES,
        rows,
        np.array([f.first for f in files]),
        np.array([f.end for f in files]),
        np.stack([e[0] for e in ends], axis=1),
        np.stack([e[1] for e in ends], axis=1),
        np.array([f.write for f in files]),
    )


@dataclass(frozen=True, eq=False)
class Query:
    """A read: weights below a fraction and values within a box."""

    kind: str
    fraction: float
    low: Points
    high: Points


def queries(points: Points, seed: int = 5) -> list[Query]:
    """The fixed set of reads over the points that are there."""
    random = np.random.default_rng(seed)
    dimensions = points.shape[1]
    ordered = np.sort(points[random.integers(0, len(points), 200_000)], axis=0)
    low, high = np.full(dimensions, -np.inf), np.full(dimensions, np.inf)
    found = [Query(f"sample {f}", f, low, high) for f in SAMPLES]

    def box(kind: str, columns: Sequence[int], side: float, start: float | None = None) -> Query:
        low, high = np.full(dimensions, -np.inf), np.full(dimensions, np.inf)
        for column in columns:
            at = random.uniform(0, 1 - side) if start is None else start
            low[column] = ordered[int(at * (len(ordered) - 1)), column]
            high[column] = ordered[int(min(at + side, 1) * (len(ordered) - 1)), column]
        return Query(kind, 1.0, low, high)

    for share in BOXES:
        found += [box(f"box {share}", (0, 1), share**0.5) for _ in range(BOXES_EACH)]
    found += [box("slice 0.01", (1,), 0.01) for _ in range(BOXES_EACH)]
    found += [box("newest 0.01", (0,), 0.01, 0.99)]
    return found


def costs(table: SimTable, files: Sequence[SimFile], reads: Sequence[Query]) -> dict[str, tuple[float, float]]:
    """Mean points and files that each kind of read reads."""
    ids = np.concatenate([f.ids for f in files])
    starts = np.cumsum([0] + [len(f.ids) for f in files])
    points = table.points[ids]
    low, high = np.array([f.low for f in files]), np.array([f.high for f in files])
    first, page = np.array([f.first for f in files]), np.array([f.page for f in files])
    sums: dict[str, list[tuple[float, float]]] = {}
    for q in reads:
        opened = np.flatnonzero((first < q.fraction) & np.all((low <= q.high) & (high >= q.low), axis=1))
        bounded = np.isfinite(q.low) | np.isfinite(q.high)
        read = 0.0
        if not bounded.any():
            read = float((starts[opened + 1] - starts[opened]).sum())
        elif len(opened):
            counts = starts[opened + 1] - starts[opened]
            at = np.repeat(starts[opened] - np.cumsum([0, *counts[:-1]]), counts) + np.arange(counts.sum())
            half = np.repeat(page[opened] / 2, counts, axis=0)
            inside = np.all((points[at] >= q.low - half) & (points[at] <= q.high + half), axis=1)
            read = float(inside.sum())
        sums.setdefault(q.kind, []).append((read, float(len(opened))))
    return {k: (float(np.mean([s[0] for s in v])), float(np.mean([s[1] for s in v]))) for k, v in sums.items()}


def ratios(table: SimTable) -> dict[str, tuple[float, float]]:
    """Bytes and files of each kind of read, relative to the same points laid out at once."""
    live = table.live()
    reads = queries(table.points[live])
    nothing: list[ValueSpread | None] = [None] * table.points.shape[1]
    fresh = costs(table, laid_out(table.points, table.weights, live, nothing, 0, 1.0, 1.0, 0), reads)
    today = costs(table, table.files, reads)
    return {kind: (today[kind][0] / max(fresh[kind][0], 1), today[kind][1] / max(fresh[kind][1], 1)) for kind in fresh}


@dataclass(frozen=True)
class Story:
    """How the values of rows depend on their place in time, in [0, 1].

    Attributes:
        name: for the report.
        points: makes the values.
        deletes: share of the rows that is deleted during the story.
    """

    name: str
    points: Callable[[NDArray[np.float64], np.random.Generator], Points]
    deletes: float = 0.0


def _uniform(time_: NDArray[np.float64], random: np.random.Generator) -> Points:
    return random.random((len(time_), 2))


def _moving(time_: NDArray[np.float64], random: np.random.Generator) -> Points:
    return np.stack([time_ + random.random(len(time_)) / 730, random.random(len(time_))], axis=1)


STORIES = (Story("uniform", _uniform), Story("time", _moving), Story("deletes", _uniform, 0.1))


def run(
    story: Story,
    terabytes: float,
    append: float,
    appends: int,
    every: int,
    checks: int = 4,
    seed: int = 1,
    target: float = 1.25,
    group_bytes: float = GROUP_BYTES,
) -> list[dict[str, Any]]:
    """Runs a story, and reports at several points in time.

    Args:
        story: the story.
        terabytes: size of the last table.
        append: size of an append, as a share of the last table.
        appends: how many.
        every: appends between optimizations.
        checks: about how many reports.
        seed: of the random values.
        target: what reads may cost.
        group_bytes: bytes of a group.
    """
    random = np.random.default_rng(seed)
    total = int(terabytes * 1e12 / POINT_BYTES)
    batch = max(1, int(total * append))
    base = max(0, total - batch * appends)
    place = np.concatenate(
        [np.linspace(-base / max(batch * appends, 1), 0, base), np.repeat(np.arange(1, appends + 1) / appends, batch)]
    )
    points = story.points(place, random)
    weights = random.integers(-(2**31), 2**31, len(points), dtype=np.int64).astype(np.int32)
    table = SimTable(points, weights, target=target, group_bytes=group_bytes)
    if base:
        table.files = laid_out(points, weights, np.arange(base), [None, None], 0, 1.0, 1.0, 0)
    table.written = 0
    found: list[dict[str, Any]] = []
    passes = appends // every
    for number in range(passes):
        start = base + number * every * batch
        if story.deletes:
            live = table.live()
            table.deleted[live[random.random(len(live)) < story.deletes / passes]] = True
        table.index(np.arange(start, start + every * batch))
        table.optimize()
        if (number + 1) % max(1, passes // checks) == 0:
            live_points = len(table.live())
            found.append(
                {
                    "appends": (number + 1) * every,
                    "files": len(table.files),
                    "written": round(table.written / live_points, 2),
                    "per_new": round(table.written / ((number + 1) * every * batch), 2),
                    "rewrites": round(sum(f.rewrites * len(f.ids) for f in table.files) / live_points, 2),
                    "groups": table.groups,
                    "cost": round(table.last.cost if table.last else 0, 3),
                    "predicted": round(table.predicted, 3),
                    "largest_group": table.largest_group,
                    "s": round(table.slowest, 1),
                    **{k: (round(b, 2), round(n, 1)) for k, (b, n) in ratios(table).items()},
                }
            )
    return found


def main() -> None:
    """Runs the stories and prints their costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--terabytes", type=float, nargs="*", default=[0.1, 1.0, 10.0])
    parser.add_argument("--appends", type=float, nargs="*", default=[0.001, 0.01])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--number", type=int, default=0)
    parser.add_argument("--every", type=int, default=0)
    arguments = parser.parse_args()
    for terabytes in arguments.terabytes:
        for append in arguments.appends:
            for story in STORIES:
                if arguments.only and story.name not in arguments.only:
                    continue
                begun = time.process_time()
                appends = arguments.number or (400 if append < 0.005 else 50)
                every = arguments.every or (10 if append < 0.005 else 1)
                print(f"{terabytes:g} TB, {appends} appends of {append:.1%}, {story.name}", flush=True)
                for line in run(story, terabytes, append, appends, every):
                    print(json.dumps(line), flush=True)
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
                print(f"{time.process_time() - begun:.1f} s, {peak:.1f} GB", flush=True)


if __name__ == "__main__":
    main()
