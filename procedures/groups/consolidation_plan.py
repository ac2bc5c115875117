"""The consolidation plan: which sets of files of a place to rewrite together, and what for; pure.

Source:
    The consolidation plan as TileDB documents it: docs.tiledb.com, "Consolidation Plan".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np

from catalog.files.arrays import Floats, Integers
from procedures.groups.boxes import Boxes, depths, overlap_groups, sweep_dimension

# Files below this share of the desired size are small, and those above this multiple are large.
SMALL_SHARE, LARGE_MULTIPLE = 0.5, 1.5
_BLOCK = 512
_CURVE_BITS = 60


class Reason(str, Enum):
    """Why files are rewritten together. Parts of a set that is too large for one group are ``OVERLAP_CUT``."""

    OVERLAP = "OVERLAP"
    SMALL = "SMALL"
    LARGE = "LARGE"
    OVERLAP_CUT = "OVERLAP_CUT"


@dataclass(frozen=True)
class FileSet:
    """Files to rewrite together, however large they are.

    Attributes:
        reason: why.
        files: their positions, ascending.
        depth: how many of the files a point lies in, at most: the smallest such number over the dimensions.
    """

    reason: Reason
    files: tuple[int, ...]
    depth: int


def consolidation_plan(files: Boxes, desired_bytes: int) -> list[FileSet]:
    """Plans the sets; no file is in two of them.

    Files whose boxes overlap are a set, and so are those that overlap the box around a set. Small sets and files
    that are neighbours become one set of at most the desired size, where its box overlaps no other. A large file
    that overlaps none forms a set of its own. A file without a known box is only looked at for its size.

    Args:
        files: the files.
        desired_bytes: size that files should have.

    Returns:
        The sets by reason, and by their first files.
    """
    is_known = ~(np.isnan(files.low) | np.isnan(files.high)).any(axis=1)
    known = np.flatnonzero(is_known)
    number, low, high = overlap_groups(files.low[known], files.high[known])
    size = np.zeros(len(low), np.int64)
    np.add.at(size, number, files.size[known])
    merged = merged_small(size, low, high, desired_bytes)[number] if len(known) else number
    sets = list(_sets(files, known, number, merged, desired_bytes))
    large = np.flatnonzero(~is_known & (files.size > LARGE_MULTIPLE * desired_bytes))
    sets += [FileSet(Reason.LARGE, (position,), 1) for position in large.tolist()]
    order = list(Reason)
    return sorted(sets, key=lambda files: (order.index(files.reason), files.files))


def _sets(files: Boxes, known: Integers, number: Integers, merged: Integers, desired_bytes: int) -> Iterator[FileSet]:
    if not len(known):
        return
    order = np.argsort(merged, kind="stable")
    starts = np.flatnonzero(np.diff(merged[order], prepend=-1))
    dense = np.cumsum(np.diff(merged[order], prepend=-1) != 0) - 1
    members = known[order]
    depth = np.min(
        [depths(dense, len(starts), files.low[members, n], files.high[members, n]) for n in range(files.low.shape[1])],
        axis=0,
    )
    ends = [*starts[1:].tolist(), len(order)]
    for index, (start, end) in enumerate(zip(starts.tolist(), ends, strict=True)):
        positions = tuple(np.sort(members[start:end]).tolist())
        if len(positions) == 1:
            if files.size[positions[0]] > LARGE_MULTIPLE * desired_bytes:
                yield FileSet(Reason.LARGE, positions, 1)
            continue
        overlaps = len(np.unique(number[order[start:end]])) < len(positions)
        reason = Reason.OVERLAP if overlaps else Reason.SMALL
        yield FileSet(reason, positions, int(depth[index]))


def merged_small(size: Integers, low: Floats, high: Floats, desired_bytes: int) -> Integers:
    """Merges small boxes that are neighbours on a curve, where the box around them overlaps no other.

    Args:
        size: bytes of each box.
        low: lower corners of boxes that do not overlap.
        high: upper corners.
        desired_bytes: bytes of a merged box at most; boxes of less than half are small.

    Returns:
        The number of the group of each box: the position of one of its members.
    """
    group = np.arange(len(size))
    small = np.flatnonzero(size < SMALL_SHARE * desired_bytes)
    if len(small) < 2:
        return group
    obstacles = _Obstacles(low, high)
    current: list[int] = []
    total = 0
    for box in small[np.argsort(curve_places(low[small], high[small]), kind="stable")].tolist():
        if current and total + int(size[box]) <= desired_bytes and obstacles.merge(current[0], box):
            total += int(size[box])
        else:
            current, total = [], int(size[box])
        current.append(box)
        group[box] = current[0]
    return group


def curve_places(low: Floats, high: Floats) -> Integers:
    """The places of boxes on a Z-order curve through their centres.

    Args:
        low: lower corners.
        high: upper corners.
    """
    # Half of each, since a sum may be too large.
    centre = np.clip(low / 2 + high / 2, -1e300, 1e300)
    least, span = centre.min(axis=0), np.ptp(centre / 2, axis=0) * 2
    bits = _CURVE_BITS // low.shape[1]
    # With many bits, the product is rounded up to the next power of two.
    cells = np.minimum(((centre - least) / np.where(span > 0, span, 1.0) * (2**bits - 1)).astype(np.int64), 2**bits - 1)
    place = np.zeros(len(low), np.int64)
    for bit in range(bits - 1, -1, -1):
        for dimension in range(low.shape[1]):
            place = (place << 1) | ((cells[:, dimension] >> bit) & 1)
    return place


class _Obstacles:
    """Boxes that do not overlap, and grow as they are merged.

    They are in the order of their lower ends in one dimension. Blocks of them know their largest upper end.
    A merged box takes the slot of its member that begins first, which keeps the order.
    """

    def __init__(self, low: Floats, high: Floats) -> None:
        self._along = sweep_dimension(low, high)
        order = np.argsort(low[:, self._along], kind="stable")
        self._slot = np.empty(len(low), np.int64)
        self._slot[order] = np.arange(len(low))
        self._low, self._high = low[order].T.copy(), high[order].T.copy()
        self._ends = np.maximum.reduceat(self._high[self._along], np.arange(0, len(low), _BLOCK))

    def merge(self, first: int, second: int) -> bool:
        """Merges two boxes unless the box around them overlaps another; says whether it has."""
        slots = int(self._slot[first]), int(self._slot[second])
        low = np.minimum(self._low[:, slots[0]], self._low[:, slots[1]])
        high = np.maximum(self._high[:, slots[0]], self._high[:, slots[1]])
        if self._overlaps(low, high, slots):
            return False
        kept, dropped = min(slots), max(slots)
        self._low[:, kept], self._high[:, kept] = low, high
        # A box that is in none.
        self._high[:, dropped] = -np.inf
        self._ends[kept // _BLOCK] = max(self._ends[kept // _BLOCK], high[self._along])
        self._slot[first] = self._slot[second] = kept
        return True

    def _overlaps(self, low: Floats, high: Floats, members: tuple[int, int]) -> bool:
        last = int(np.searchsorted(self._low[self._along], high[self._along], side="right"))
        blocks = np.flatnonzero(self._ends[: -(-last // _BLOCK)] >= low[self._along])
        for block in blocks.tolist():
            start, end = block * _BLOCK, min((block + 1) * _BLOCK, last)
            overlaps = np.ones(end - start, np.bool_)
            for dimension in range(len(low)):
                overlaps &= self._low[dimension, start:end] <= high[dimension]
                overlaps &= self._high[dimension, start:end] >= low[dimension]
            for member in members:
                if start <= member < end:
                    overlaps[member - start] = False
            if overlaps.any():
                return True
        return False
