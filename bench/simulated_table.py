"""What the simulations without Spark have in common: tables of points, their layout, their merges, and reads.

Files and bands are laid out by ``otree.curve`` and ``otree.packing``, and groups are chosen by the strategy's code. A
simulation says what a file's pages are, and what a read of them costs.
"""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from otree.curve import Ranks, RowsBeside, bits_per_dimension, hilbert_keys
from otree.packing import pack
from otree.value_spread import ValueSpread
from procedures.groups.cutter import Limits
from procedures.groups.judge import Judge
from procedures.groups.read_costs import Regions, quantiles
from procedures.selection.merge_choice import Budget, Choice, Merge, choose

Ids = NDArray[np.int64]
Points = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SimFile:
    """A file: its points in order, and their facts in the log."""

    ids: Ids
    first: float
    end: float
    low: Points
    high: Points
    write: int
    rewrites: float


@dataclass(frozen=True, eq=False)
class Placed:
    """Points in the order of their files. The last three have one entry per file.

    Attributes:
        order: positions of the points.
        starts: where each file begins.
        ends: where it ends.
        band: weights of the file's band, as fractions; shape (files, 2).
    """

    order: Ids
    starts: Ids
    ends: Ids
    band: Points


def placed(
    points: Points,
    weights: NDArray[np.int32],
    target: int,
    others: Sequence[ValueSpread | None],
    beside: int,
    span: float,
    sample: int,
) -> Placed:
    """Places points in bands of weight and runs of the curve.

    Args:
        points: values, shape (points, columns).
        weights: of the points.
        target: points of a file.
        others: how the other points of the table are spread, by column; None = as if there were none.
        beside: how many other points there are.
        span: length of the range of weights that the points come from.
        sample: about how many points the quantiles are taken from.
    """
    bits = bits_per_dimension(points.shape[1])
    codes = []
    for axis, spread in zip(points.T, others, strict=True):
        of_others = None if spread is None else RowsBeside(beside / (beside + len(points)), spread.below)
        codes.append(Ranks.of_sample(axis[:: max(1, len(axis) // sample)], bits, of_others).codes_of(axis))
    keys = hilbert_keys(codes, bits)
    packing = pack(weights, keys, len(points), target, beside, span)
    limits = np.array([b.first_weight for b in packing.bands] + [2**31])
    band = np.maximum(np.searchsorted(limits[:-1], weights, side="right") - 1, 0)
    file = np.zeros(len(points), np.int64)
    for number, b in enumerate(packing.bands):
        of_band = np.flatnonzero(band == number)
        run = np.maximum(np.searchsorted([r.first_key for r in b.runs], keys[of_band], side="right") - 1, 0)
        first, width = np.array([r.first_file for r in b.runs]), np.array([r.width for r in b.runs])
        file[of_band] = first[run] + of_band % width[run]
    order = np.lexsort((keys, file))
    starts = np.flatnonzero(np.diff(file[order], prepend=-1))
    of_file = band[order][starts]
    fractions = (np.stack([limits[of_file], limits[of_file + 1]], axis=1) + 2.0**31) / 2.0**32
    return Placed(order, starts, np.array([*starts[1:], len(points)]), fractions)


def spreads_of(files: Sequence[SimFile], columns: int) -> list[ValueSpread | None]:
    """How the points of files are spread, by column."""
    if not files:
        return [None] * columns
    rows = np.array([float(len(f.ids)) for f in files])
    low, high = np.array([f.low for f in files]), np.array([f.high for f in files])
    return [ValueSpread.of_files(low[:, c], high[:, c], rows) for c in range(columns)]


def regions_of(files: Sequence[SimFile], rows_of_point: float = 1.0, bytes_of_row: float = 1.0) -> Regions:
    """What the judge is told of the files."""
    rows = np.array([float(len(f.ids)) for f in files]) * rows_of_point
    low, high = np.array([f.low for f in files]), np.array([f.high for f in files])
    ends = [quantiles(low[:, i], high[:, i], rows) for i in range(low.shape[1])]
    return Regions(
        rows * bytes_of_row,
        rows,
        np.array([f.first for f in files]),
        np.array([f.end for f in files]),
        np.stack([e[0] for e in ends], axis=1),
        np.stack([e[1] for e in ends], axis=1),
        np.array([f.write for f in files]),
    )


@dataclass
class SimTable(ABC):
    """A table of points that are all known beforehand.

    Attributes:
        points: values of all points that will ever be written, shape (points, columns).
        weights: their weights.
        most_rewrites: the cap of the strategy.
        target: what reads may cost.
        group_bytes: of a group at most; None = any number.
        files: the indexed ones.
        deleted: whether a point is deleted.
        written: points that were written by optimizations.
        writes: number of the last write.
        merges: groups that were merged.
        largest: bytes of the largest of them.
        slowest: CPU seconds of the slowest choice.
        last: the last choice.
        predicted: what the last merges were expected to come to.
    """

    points: Points
    weights: NDArray[np.int32]
    most_rewrites: float = field(default=4.0, kw_only=True)
    target: float = field(default=1.25, kw_only=True)
    group_bytes: int | None = field(default=None, kw_only=True)
    files: list[SimFile] = field(default_factory=list, init=False)
    deleted: NDArray[np.bool_] = field(init=False)
    written: int = field(default=0, init=False)
    writes: int = field(default=0, init=False)
    merges: int = field(default=0, init=False)
    largest: float = field(default=0.0, init=False)
    slowest: float = field(default=0.0, init=False)
    last: Choice | None = field(default=None, init=False)
    predicted: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.deleted = np.zeros(len(self.points), bool)

    @property
    @abstractmethod
    def bytes_of_point(self) -> float:
        """Bytes that a point stands for."""

    @abstractmethod
    def judge(self) -> Judge:
        """The judge of the files."""

    @abstractmethod
    def laid_out(self, ids: Ids, rewrites: float, span: float = 1.0, others: Sequence[SimFile] = ()) -> list[SimFile]:
        """The files of some points that are written together, beside others."""

    @property
    def appended(self) -> Sequence[Ids]:
        """Points of the table that are in no indexed file, by append."""
        return ()

    def live(self) -> Ids:
        """Points of the table that are not deleted."""
        ids = np.concatenate([*(f.ids for f in self.files), *self.appended])
        return ids[~self.deleted[ids]]

    def write(self, ids: Ids, rewrites: float, span: float = 1.0) -> None:
        """Writes points as an optimization does."""
        self.writes += 1
        self.written += len(ids)
        self.files += self.laid_out(ids, rewrites, span, self.files)

    def choice(self) -> Choice:
        """What the strategy chooses now."""
        begun = time.process_time()
        judge = self.judge()
        spent = sum(f.rewrites * len(f.ids) for f in self.files) * self.bytes_of_point
        self.last = choose(judge, self.target, Budget(self.most_rewrites, spent), Limits(self.group_bytes))
        self.slowest = max(self.slowest, time.process_time() - begun)
        return self.last

    def merge(self) -> None:
        """Merges as long as the strategy chooses files."""
        for _ in range(50):
            choice = self.choice()
            if not choice.merges:
                return
            self.predicted = choice.after
            self.apply(choice.merges)
        raise AssertionError("the strategy does not come to an end")

    def apply(self, merges: Sequence[Merge]) -> None:
        """Merges groups, none of which has a file of another."""
        before = self.files
        taken = [number for merge in merges for number in merge.files.tolist()]
        assert len(taken) == len(set(taken)), "groups overlap"
        gone = {id(before[number]) for number in taken}
        self.files = [f for f in before if id(f) not in gone]
        for merge in merges:
            of_group = [before[i] for i in merge.files]
            ids = np.concatenate([f.ids for f in of_group])
            self.merges += 1
            self.largest = max(self.largest, len(ids) * self.bytes_of_point)
            rewrites = sum(f.rewrites * len(f.ids) for f in of_group) / len(ids) + 1
            left = ids[~self.deleted[ids]]
            if len(left):
                self.write(left, rewrites, merge.end - merge.first)

    def mean_rewrites(self) -> float:
        """How often a live point was written, on average."""
        return sum(f.rewrites * len(f.ids) for f in self.files) / len(self.live())


@dataclass(frozen=True, eq=False)
class Query:
    """A read: points of a kind, with weights below a fraction and values within a box."""

    kind: str
    fraction: float
    low: Points
    high: Points


def queries(
    points: Points, samples: Sequence[float], boxes: Sequence[float], each: int, seed: int = 5
) -> Iterator[Query]:
    """Yields a fixed set of reads: samples, boxes in each pair of columns, slices of the last column, and the tail.

    Args:
        points: that are read.
        samples: fractions.
        boxes: shares of the points in a box.
        each: boxes and slices of a kind.
        seed: of their places.
    """
    random = np.random.default_rng(seed)
    dimensions = points.shape[1]
    ordered = np.sort(points, axis=0)
    low, high = np.full(dimensions, -np.inf), np.full(dimensions, np.inf)

    def box(kind: str, columns: Sequence[int], side: float, start: float | None = None) -> Query:
        first, last = low.copy(), high.copy()
        for column in columns:
            at = random.uniform(0, 1 - side) if start is None else start
            first[column] = ordered[int(at * (len(ordered) - 1)), column]
            last[column] = ordered[int(min(at + side, 1) * (len(ordered) - 1)), column]
        return Query(kind, 1.0, first, last)

    yield from (Query(f"sample {fraction}", fraction, low, high) for fraction in samples)
    for share in boxes:
        for pair in combinations(range(dimensions), 2):
            yield from (box(f"box {share}", pair, share**0.5) for _ in range(each))
    yield from (box("slice 0.01", (dimensions - 1,), 0.01) for _ in range(each))
    yield box("tail 0.01", (0,), 0.01, 0.99)


def means(costs: Sequence[tuple[str, float, float]]) -> dict[str, tuple[float, float]]:
    """The mean of points and files that reads cost, by kind."""
    kinds = dict.fromkeys(kind for kind, *_ in costs)
    return {
        kind: (
            float(np.mean([points for k, points, _ in costs if k == kind])),
            float(np.mean([files for k, _, files in costs if k == kind])),
        )
        for kind in kinds
    }


def ratios(
    today: dict[str, tuple[float, float]], fresh: dict[str, tuple[float, float]]
) -> dict[str, tuple[float, float]]:
    """Points and files of each kind of read, in proportion to a fresh layout."""
    return {k: (today[k][0] / max(fresh[k][0], 1), today[k][1] / max(fresh[k][1], 1)) for k in fresh}
