"""Which sorted runs to merge: the group that saves the most of a declared mix of reads per byte rewritten.

The files that one write made within a band of weights are a run: they are sorted along one curve and do not overlap
each other. Runs of the same band overlap. As in a log-structured merge tree, merging runs makes reads cheaper and costs
a rewrite, and the number of times that a row is rewritten is bounded.

Source:
    P. O'Neil et al., "The log-structured merge-tree (LSM-tree)", Acta Informatica 33 (1996).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from catalog.files.file_table import Floats, Integers
from procedures.groups.read_costs import Judge

# A merge must save at least this share of the allowed cost.
SMALLEST_GAIN = 0.002
# And this share per byte rewritten, relative to the bytes of the revision.
SMALLEST_RATIO = 0.03
# The gain that a revision's bytes have to bring where no row was rewritten yet, as a share of the allowed cost.
PRICE = 0.05
# A part of the budget is left to merges of a small share of the bytes, such as those of low weights.
_RESERVE, _SMALL_MERGE = 0.15, 0.1
# Numbers of runs that are tried per range of weights; more runs than that are tried in growing steps.
_PREFIXES = 10
# Files below this share of the target size are small.
_SMALL_FILE = 0.5
_SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class Merge:
    """Files that are worth merging.

    Attributes:
        files: indices of the files.
        gain: what the mix of reads saves, as a share of a fresh layout's cost.
        size: bytes to rewrite.
        first: start of the range of weights, as a fraction.
        end: its end.
        writes: how many writes the files are of.
    """

    files: Integers
    gain: float
    size: float
    first: float
    end: float
    writes: int


@dataclass(frozen=True, eq=False)
class Choice:
    """What is to be merged.

    Attributes:
        merge: the best merge within the budget, None = there is none.
        waiting: the best merge that has to wait for the budget, where none is within it.
        too_large: the best merge that has too many bytes or files for a group, where none has fewer.
        cost: what the mix of reads costs today; 1 = as a fresh layout.
        rewrites: how many times a row of the revision was rewritten, on average.
    """

    merge: Merge | None
    waiting: Merge | None
    too_large: Merge | None
    cost: float
    rewrites: float


def choose(
    judge: Judge,
    most_rewrites: float,
    rewritten_bytes: float,
    most_bytes: float = float("inf"),
    most_files: int = 1_000_000,
) -> Choice:
    """Chooses the merge with the largest gain per byte.

    Args:
        judge: of all files of the revision.
        most_rewrites: how many times a row may be rewritten, on average over the revision.
        rewritten_bytes: bytes that were rewritten so far, with those of other groups of the same plan.
        most_bytes: bytes of a group.
        most_files: files of a group.
    """
    files = judge.files
    total = float(files.size.sum())
    if len(files) < 2 or total <= 0 or float(files.rows.sum()) < 1:
        return Choice(None, None, None, 1.0, 0.0)
    rewrites = rewritten_bytes / total
    merges = []
    for indices, first, end, staying in _candidates(judge):
        size = float(files.size[indices].sum())
        most = judge.gain(staying)
        if most < SMALLEST_GAIN or most * total < SMALLEST_RATIO * size:
            continue
        reached = max(end, float(files.end[indices].max()))
        gain = judge.gain(staying + judge.of_group(indices, reached - first))
        if gain >= SMALLEST_GAIN and gain * total >= SMALLEST_RATIO * size:
            merges.append(Merge(indices, gain, size, first, reached, len(np.unique(files.write[indices]))))
    merges.sort(key=lambda merge: -merge.gain / merge.size)
    small = [m for m in merges if m.size <= most_bytes and len(m.files) <= most_files]
    affordable = [m for m in small if m.gain * total >= m.size * price(rewrites, m.size / total, most_rewrites)]
    merge = _widened(affordable[0], small, total, rewrites, most_rewrites) if affordable else None
    waiting = next(iter(small), None) if merge is None else None
    too_large = next(iter(merges), None) if not small else None
    return Choice(merge, waiting, too_large, judge.cost, rewrites)


def _widened(merge: Merge, merges: list[Merge], total: float, rewrites: float, most: float) -> Merge:
    """A merge with further files, while these gain what their own bytes have to.

    Merging the same files now and again with more of them in the next iteration would rewrite them twice.

    Args:
        merge: the best merge.
        merges: all merges.
        total: bytes of the revision.
        rewrites: how many times a row was rewritten, on average.
        most: how many times it may be.
    """
    while True:
        wider = [
            (other.gain - merge.gain) / (other.size - merge.size)
            if other.size > merge.size
            and (other.gain - merge.gain) * total
            >= (other.size - merge.size) * price(rewrites, other.size / total, most)
            and other.first <= merge.first
            and other.end >= merge.end
            and bool(np.isin(merge.files, other.files).all())
            else -1.0
            for other in merges
        ]
        if max(wider, default=-1.0) <= 0:
            return merge
        merge = merges[int(np.argmax(wider))]


def price(rewrites: float, share: float, most: float) -> float:
    """The gain that a byte must bring: higher as the budget of rewrites runs out, so that cheap merges go on.

    Args:
        rewrites: how many times a row was rewritten, on average.
        share: bytes of the merge, as a share of the revision.
        most: how many times a row may be rewritten.
    """
    limit = most if share <= _SMALL_MERGE else most - _RESERVE * (most - 1)
    left = limit - rewrites - share
    return PRICE * most / left if left > 0 else float("inf")


def _candidates(judge: Judge) -> Iterator[tuple[Integers, float, float, Floats]]:
    """Yields groups of files of at least two writes within a range of weights, the smallest runs first.

    Yields:
        Their indices, both ends of the range, and what each read costs over the other files.
    """
    files, limits = judge.files, judge.limits
    for i, first in enumerate(limits[:-1]):
        for end in limits[i + 1 :]:
            within = files.end <= end + _SLACK
            # Small files that reach beyond the range are divided at its end.
            begins = (files.first < end - _SLACK) & (files.size < _SMALL_FILE * judge.target_bytes)
            inside = np.flatnonzero((files.first >= first - _SLACK) & (within | begins))
            if len(inside) < 2:
                continue
            writes, run = np.unique(files.write[inside], return_inverse=True)
            if len(writes) < 2:
                continue
            order = np.argsort(np.bincount(run, files.size[inside]), kind="stable")
            rank = np.empty(len(order), np.int64)
            rank[order] = np.arange(len(order))
            # Files by their runs, so that the first runs are the first files.
            ordered = inside[np.argsort(rank[run], kind="stable")]
            ends = np.cumsum(np.bincount(rank[run]))
            counts = [int(ends[number - 1]) for number in _steps(len(writes))]
            for count, staying in zip(counts, judge.without_first(ordered, counts), strict=True):
                yield np.sort(ordered[:count]), first, end, staying


def _steps(most: int) -> list[int]:
    """Numbers of runs to try: all of them where there are few."""
    return sorted({round(n) for n in np.geomspace(2, most, min(_PREFIXES, most - 1))})
