"""Consolidation in steps: which files become one, as runs of files that are neighbours in time.

A step takes the run of the most files, among those the one of the fewest bytes, and among those the oldest. Its result
takes the place of its files, and the next step begins. Rows of Delta never overwrite each other, so every run may be
consolidated. All functions are pure.

Source:
    The consolidation of fragments as TileDB documents it, for arrays with duplicates: docs.tiledb.com, "Consolidation".
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from procedures.groups.boxes import Boxes
from procedures.groups.cutter import Limits, pieces
from procedures.selection.step_runs import NO_RUN, StepPolicy, best_runs


@dataclass(frozen=True)
class ConsolidationStep:
    """One step.

    Attributes:
        first: position of its oldest file.
        end: position after its newest file.
        files: how many files it takes; results of earlier steps count as one.
        bytes: their bytes.
    """

    first: int
    end: int
    files: int
    bytes: int


@dataclass(frozen=True)
class Consolidation:
    """Steps one after another.

    Attributes:
        steps: in their order.
        results: positions [first, end) of the files that become one in the end. Where steps take the results of earlier
            ones, only the last result is there: its rows need to be written only once.
    """

    steps: tuple[ConsolidationStep, ...]
    results: tuple[tuple[int, int], ...]


def consolidation(files: Boxes, policy: StepPolicy) -> Consolidation:
    """Chooses steps until no run qualifies or the policy's number is reached.

    The best run from each file on is kept in a heap. A step changes it for the files before and in the run only.

    Args:
        files: the files.
        policy: which runs qualify.
    """
    state = _Files(files, policy)
    steps: list[ConsolidationStep] = []
    while policy.steps is None or len(steps) < policy.steps:
        step = state.take()
        if step is None:
            break
        steps.append(step)
    return Consolidation(tuple(steps), tuple(state.results()))


class _Files:
    """Files and the results that have taken their places. A result is known by the position of its oldest file."""

    def __init__(self, files: Boxes, policy: StepPolicy) -> None:
        self._policy = policy
        self._most = policy.most_files(len(files))
        self._size = files.size.copy()
        self._low, self._high = files.low.copy(), files.high.copy()
        self._end = np.arange(1, len(files) + 1)
        self._before = np.arange(-1, len(files) - 1)
        self._length, total = best_runs(files, policy, self._most)
        self._bytes = total
        starts = np.flatnonzero(self._length)
        self._heap = list(zip((-self._length[starts]).tolist(), total[starts].tolist(), starts.tolist(), strict=True))
        heapq.heapify(self._heap)

    def results(self) -> Iterator[tuple[int, int]]:
        """Positions [first, end) of each result of two files or more."""
        position = 0
        while position < len(self._end):
            end = int(self._end[position])
            if end - position > 1:
                yield position, end
            position = end

    def take(self) -> ConsolidationStep | None:
        """Takes the best run and puts its results in its place; None where no run qualifies."""
        best = self._best()
        return None if best is None else self._consolidate(*best)

    def _best(self) -> tuple[int, int, int] | None:
        """The best run: its first file, its number of files and their bytes."""
        while self._heap:
            length, total, first = heapq.heappop(self._heap)
            # Entries of runs that have changed are passed over.
            if self._length[first] == -length and self._bytes[first] == total:
                return first, -length, total
        return None

    def _consolidate(self, first: int, length: int, total: int) -> ConsolidationStep:
        members = self._from(first, length)
        end = int(self._end[members[-1]])
        self._length[members] = NO_RUN
        cut = pieces(self._size[members], Limits(self._policy.max_bytes, len(self._size)))
        results = [self._join(members[start:stop]) for start, stop in cut]
        if end < len(self._end):
            self._before[end] = results[-1]
        self._refresh(results)
        return ConsolidationStep(first, end, length, total)

    def _join(self, members: list[int]) -> int:
        first = members[0]
        self._size[first] = self._size[members].sum()
        self._low[first], self._high[first] = self._low[members].min(axis=0), self._high[members].max(axis=0)
        end = int(self._end[members[-1]])
        self._end[first] = end
        if end < len(self._end):
            self._before[end] = first
        return first

    def _from(self, position: int, most: int) -> list[int]:
        positions: list[int] = []
        while position < len(self._end) and len(positions) < most:
            positions.append(position)
            position = int(self._end[position])
        return positions

    def _refresh(self, results: list[int]) -> None:
        """Looks for the best runs from the results on, and from those files before them that may reach them."""
        before: list[int] = []
        position = int(self._before[results[0]])
        # The nearest file may have reached the run until now. Those before it reach as far as they are alike.
        while position >= 0 and len(before) < self._most and (not before or self._are_alike(position)):
            before.append(position)
            position = int(self._before[position])
        changed = before[::-1] + results
        end = int(self._end[results[-1]])
        near = np.array(changed + self._after(end), np.int64)
        boxes = Boxes(self._size[near], self._low[near], self._high[near])
        length, total = best_runs(boxes, self._policy, self._most)
        for index, position in enumerate(changed):
            self._length[position], self._bytes[position] = length[index], total[index]
            if length[index]:
                heapq.heappush(self._heap, (-int(length[index]), int(total[index]), position))

    def _are_alike(self, position: int) -> bool:
        """Whether a file and the one after it may be in one run."""
        after = int(self._end[position])
        if after >= len(self._end):
            return False
        sizes = int(self._size[position]), int(self._size[after])
        return bool(min(sizes) >= self._policy.size_ratio * max(sizes))

    def _after(self, position: int) -> list[int]:
        positions: list[int] = []
        while position < len(self._end) and len(positions) < self._most - 1:
            positions.append(position)
            if not self._are_alike(position):
                break
            position = int(self._end[position])
        return positions
