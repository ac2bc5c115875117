"""Cuts files into pieces below a limit of bytes and of files; pure.

A list is cut in its order, and a set of boxes where the fewest of them reach across the cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from catalog.files.arrays import Flags, Floats, Integers

# A group is collected by the driver: its number of files is bounded like its bytes are.
MAX_FILES_PER_GROUP = 10_000
# A cut of a set leaves at least this share of the load on each side, if there is a place for such a cut.
_LEAST_SHARE = 0.25


@dataclass(frozen=True)
class Limits:
    """How large a piece may be.

    Attributes:
        bytes: of its files; None = any number.
        files: how many.
    """

    bytes: int | None
    files: int = MAX_FILES_PER_GROUP

    def allow(self, size: Integers) -> bool:
        """Whether files may be one piece.

        Args:
            size: their bytes.
        """
        return len(size) < 2 or (len(size) <= self.files and (self.bytes is None or int(size.sum()) <= self.bytes))


def pieces(
    size: Integers | Floats,
    limits: Limits,
    *,
    crossing: bool = False,
    files: Integers | None = None,
    within: Integers | None = None,
) -> Iterator[tuple[int, int]]:
    """Cuts a list into as few pieces as its order and the limits allow.

    Args:
        size: bytes of each entry of the list; whole numbers.
        limits: of a piece. An entry that alone exceeds them is a piece of its own.
        crossing: whether a piece ends with the entry with which it reaches the limit of bytes, and not before the
            entry with which it would exceed it.
        files: how many files each entry stands for; one file when left out.
        within: a number for each entry; entries with different numbers are in different pieces.

    Yields:
        [first, end) of each piece.
    """
    position = np.arange(len(size))
    count = np.ones(len(size), np.int64) if files is None else files
    total, counted = np.cumsum(size), np.cumsum(count)
    # Where a piece ends that begins with the entry: of all entries at once, because there may be very many pieces.
    end = np.searchsorted(counted, counted - count + limits.files, side="right")
    if limits.bytes is not None:
        # A limit above the sum of all entries has no effect, and so large a number could overflow.
        reached = total - size + min(limits.bytes, int(size.sum()) + 1)
        if crossing:
            end = np.minimum(end, np.searchsorted(total, reached, side="left") + 1)
        else:
            end = np.minimum(end, np.searchsorted(total, reached, side="right"))
    if within is not None:
        ends = np.append(np.flatnonzero(np.diff(within)) + 1, len(within))
        end = np.minimum(end, ends[np.searchsorted(ends, position, side="right")])
    following: list[int] = np.maximum(end, position + 1).tolist()
    first = 0
    while first < len(following):
        yield first, min(following[first], len(following))
        first = following[first]


def first_piece(size: Integers, most_bytes: int) -> int:
    """How many entries to take until their bytes reach a limit, the crossing entry included.

    Args:
        size: bytes of each entry.
        most_bytes: the limit.
    """
    return next((end for _, end in pieces(size, Limits(most_bytes), crossing=True)), 0)


@dataclass(frozen=True)
class Parts:
    """The parts of a set of files.

    Attributes:
        members: positions of the files of each part.
        crossing: how many boxes reach across the cuts, added up over the cuts.
        dimensions: of the cuts; -1 stands for the order of the files.
    """

    members: tuple[Integers, ...]
    crossing: int
    dimensions: frozenset[int]


def parts_of(size: Integers, low: Floats, high: Floats, limits: Limits) -> Parts:
    """Cuts a set of files until each part is within the limits.

    A cut has a place in one dimension. Files that begin before it are on one side, whole. Of the places that leave a
    quarter of the load on each side, the one that the fewest boxes reach across is taken. Files that all begin at one
    place in every dimension are cut in their order.

    Args:
        size: bytes of each file.
        low: lower corners of the files' boxes, shape (files, dimensions).
        high: upper corners.
        limits: of a part; a single file may be larger.
    """
    whole: Integers = np.arange(len(size))
    waiting, parts, crossing, dimensions = [whole], [], 0, set()
    while waiting:
        members = waiting.pop()
        if limits.allow(size[members]):
            parts.append(members)
            continue
        cut = _best_cut(size[members] / (limits.bytes or np.inf) + 1.0 / limits.files, low[members], high[members])
        crossing += cut.crossing
        dimensions.add(cut.dimension)
        # The first side is taken next, so that parts are in order.
        waiting += [members[~cut.is_first], members[cut.is_first]]
    return Parts(tuple(parts), crossing, frozenset(dimensions))


@dataclass(frozen=True, eq=False)
class _Cut:
    """A cut of one set: its dimension, which files are on the first side, and how many boxes reach across."""

    dimension: int
    is_first: Flags
    crossing: int


def _best_cut(load: Floats, low: Floats, high: Floats) -> _Cut:
    candidates: list[tuple[bool, int, float, int, float]] = []
    for dimension in range(low.shape[1]):
        order = np.argsort(low[:, dimension], kind="stable")
        begins = low[order, dimension]
        ends = np.sort(high[:, dimension])
        # A cut before each file that begins after the one before it.
        cuts = np.flatnonzero(np.diff(begins) > 0) + 1
        if not len(cuts):
            continue
        crossing = cuts - np.searchsorted(ends, begins[cuts], side="left")
        share = np.cumsum(load[order])[cuts - 1] / load.sum()
        off_centre = np.abs(share - 0.5)
        is_uneven = off_centre > 0.5 - _LEAST_SHARE
        # Among uneven cuts the most even one is best: otherwise each might remove one file.
        first = np.where(is_uneven, 0, crossing)
        best = int(np.lexsort((off_centre, first, is_uneven))[0])
        key = bool(is_uneven[best]), int(first[best]), float(off_centre[best])
        candidates.append((*key, dimension, float(begins[cuts[best]])))
    if not candidates:
        is_first = np.cumsum(load) <= load.sum() / 2
        is_first[0], is_first[-1] = True, False
        return _Cut(-1, is_first, int(is_first.sum()))
    *_, dimension, place = min(candidates)
    is_first = low[:, dimension] < place
    crossing_it = is_first & (high[:, dimension] >= place)
    return _Cut(dimension, is_first, int(crossing_it.sum()))
