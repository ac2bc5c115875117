"""Boxes around the values of files, and which of them overlap, found by a sweep along one dimension; pure."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from catalog.files.arrays import Floats, Integers
from catalog.files.file_table import FileTable

_FIRST_CAPACITY = 64


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes with the bytes of the files in them. One entry per box.

    Attributes:
        size: bytes.
        low: lower corners, shape (boxes, dimensions), NaN where they are not known. Without dimensions, only sizes are
            known.
        high: upper corners; boxes are closed.
    """

    size: Integers
    low: Floats
    high: Floats

    @classmethod
    def of(cls, files: FileTable, positions: Integers) -> Boxes:
        """The boxes of some files.

        Args:
            files: the files, with the ranges of some columns.
            positions: of the files wanted.
        """
        return cls(files.size[positions], files.low[positions], files.high[positions])

    def __len__(self) -> int:
        """The number of boxes."""
        return len(self.size)


def depths(group: Integers, groups: int, low: Floats, high: Floats) -> Integers:
    """How many intervals of each group overlap at one point, at most. Intervals are closed.

    Args:
        group: number of the group of each interval.
        groups: how many groups there are; each has an interval.
        low: lower ends.
        high: upper ends.
    """
    kind = np.repeat([0, 1], len(low))
    owner = np.concatenate([group, group])
    # At one value, intervals begin before others end.
    order = np.lexsort((kind, np.concatenate([low, high]), owner))
    overlapping = np.cumsum(np.where(kind[order] == 0, 1, -1))
    deepest: Integers = np.maximum.reduceat(overlapping, np.searchsorted(owner[order], np.arange(groups)))
    return deepest


def sweep_dimension(low: Floats, high: Floats) -> int:
    """The dimension in which the fewest boxes overlap at one point: a sweep along it looks at the fewest.

    Args:
        low: lower corners, shape (boxes, dimensions), at least one box.
        high: upper corners.
    """
    one = np.zeros(len(low), np.int64)
    return int(np.argmin([depths(one, 1, low[:, n], high[:, n])[0] for n in range(low.shape[1])]))


def overlap_groups(low: Floats, high: Floats) -> tuple[Integers, Floats, Floats]:
    """Joins boxes that overlap, and the boxes around them where these overlap, until none do.

    Args:
        low: lower corners, shape (boxes, dimensions).
        high: upper corners; boxes are closed.

    Returns:
        The number of the group of each box, in the order of their first boxes, and the corners of the groups' boxes.
    """
    group = np.arange(len(low))
    while len(low):
        number = _groups_of_one_sweep(low, high)
        count = int(number.max()) + 1
        if count == len(low):
            break
        around_low, around_high = np.full((count, low.shape[1]), np.inf), np.full((count, low.shape[1]), -np.inf)
        np.minimum.at(around_low, number, low)
        np.maximum.at(around_high, number, high)
        low, high, group = around_low, around_high, number[group]
    return group, low, high


def has_overlap(low: Floats, high: Floats) -> bool:
    """Whether any two boxes overlap.

    Args:
        low: lower corners, shape (boxes, dimensions), at least one box.
        high: upper corners; boxes are closed.
    """
    return int(_groups_of_one_sweep(low, high).max()) + 1 < len(low)


def _groups_of_one_sweep(low: Floats, high: Floats) -> Integers:
    """One sweep. Boxes that it has passed are not compared with boxes that have grown since: another sweep does."""
    along = sweep_dimension(low, high)
    others = [n for n in range(low.shape[1]) if n != along]
    sweep = _Sweep(len(others))
    parent = np.arange(len(low))
    for box in np.argsort(low[:, along], kind="stable").tolist():
        sweep.expire(float(low[box, along]))
        first, last, end = low[box, others], high[box, others], float(high[box, along])
        while True:
            met = sweep.overlapping(first, last)
            if not len(met):
                break
            # The box around them may overlap further ones.
            for slot in sorted(met.tolist(), reverse=True):
                other = sweep.remove(slot)
                parent[other.box] = box
                first, last, end = np.minimum(first, other.low), np.maximum(last, other.high), max(end, other.end)
        sweep.add(box, first, last, end)
    return _numbered(parent)


def _numbered(parent: Integers) -> Integers:
    """Numbers the trees of parents in the order of their first members."""
    while True:
        above = parent[parent]
        if np.array_equal(above, parent):
            break
        parent = above
    roots, first, number = np.unique(parent, return_index=True, return_inverse=True)
    rank = np.empty(len(roots), np.int64)
    rank[np.argsort(first)] = np.arange(len(roots))
    numbers: Integers = rank[number]
    return numbers


class _Passing:
    """A box that the sweep is within: its number, its corners in the other dimensions, and where it ends."""

    __slots__ = ("box", "end", "high", "low", "slot")

    def __init__(self, box: int, low: Floats, high: Floats, end: float, slot: int) -> None:
        self.box, self.low, self.high, self.end, self.slot = box, low, high, end, slot


class _Sweep:
    """The boxes that a sweep is within. None of them overlap."""

    def __init__(self, dimensions: int) -> None:
        self._low = np.empty((dimensions, _FIRST_CAPACITY))
        self._high = np.empty((dimensions, _FIRST_CAPACITY))
        self._within: list[_Passing] = []
        self._ends: list[tuple[float, int]] = []
        self._by_box: dict[int, _Passing] = {}

    def add(self, box: int, low: Floats, high: Floats, end: float) -> None:
        slot = len(self._within)
        if slot == self._low.shape[1]:
            self._low, self._high = np.hstack([self._low, self._low]), np.hstack([self._high, self._high])
        self._low[:, slot], self._high[:, slot] = low, high
        passing = _Passing(box, low, high, end, slot)
        self._within.append(passing)
        self._by_box[box] = passing
        heapq.heappush(self._ends, (end, box))

    def expire(self, position: float) -> None:
        """Removes the boxes that end before a position."""
        while self._ends and self._ends[0][0] < position:
            _, box = heapq.heappop(self._ends)
            if box in self._by_box:
                self.remove(self._by_box[box].slot)

    def remove(self, slot: int) -> _Passing:
        """Removes a box; the last one takes its slot."""
        removed, last = self._within[slot], self._within.pop()
        del self._by_box[removed.box]
        if last is not removed:
            self._within[slot], last.slot = last, slot
            self._low[:, slot], self._high[:, slot] = last.low, last.high
        return removed

    def overlapping(self, low: Floats, high: Floats) -> Integers:
        """The slots of the boxes that overlap one in the other dimensions."""
        count = len(self._within)
        overlaps = np.ones(count, np.bool_)
        for dimension in range(len(low)):
            overlaps &= self._low[dimension, :count] <= high[dimension]
            overlaps &= self._high[dimension, :count] >= low[dimension]
        return np.flatnonzero(overlaps)
