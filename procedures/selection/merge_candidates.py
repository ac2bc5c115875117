"""Candidates for merges: files that overlap within a cell of the curve and a range of weights.

A table of terabytes is not merged as a whole. The files of every group lie close together on the curve, so that the
group overlaps little outside its region, and fits a limit of bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from catalog.files.arrays import Flags, Floats, Integers
from otree.curve import bits_per_dimension, hilbert_keys
from procedures.groups.cutter import Limits, pieces
from procedures.groups.judge import Judge, Merges
from procedures.groups.read_costs import Regions

# Files with less than this share of the rows in their region, and then those with more of them.
_DENSITIES = (0.03, 0.07, 0.15, 0.3, 0.6, float("inf"))
# Levels of cells that are tried for a range of weights and a density.
_LEVELS = 5
# All ranges between ends of bands are tried where there are few bands.
_FEW_BANDS = 5
# Groups of a range of weights, a density and a level that are kept, the best ones.
_MOST_KEPT = 2_000
# Files below this share of the target size are small.
_SMALL_FILE = 0.5
_SLACK = 1e-6


def candidates(judge: Judge, limits: Limits, smallest: float) -> Iterator[Merges]:
    """Yields groups that save reads, in no order; groups of different sets overlap.

    Args:
        judge: of all files of the revision.
        limits: of a group.
        smallest: what a group is worth at least; see ``Merges.worth``.
    """
    files = judge.files
    density = files.densities() * files.occupied()
    keys, bits = _places(files)
    by_place = np.argsort(keys, kind="stable")
    for first, end in _ranges(judge.limits):
        within = files.end <= end + _SLACK
        # Small files that reach beyond the range are divided at its end.
        begins = (files.first < end - _SLACK) & (files.size < _SMALL_FILE * judge.target_bytes)
        inside = (files.first >= first - _SLACK) & (within | begins)
        before = -1
        for most in _DENSITIES:
            chosen = by_place[(inside & (density < most))[by_place]]
            if len(chosen) < 2 or len(chosen) == before:
                continue
            before = len(chosen)
            for members, starts in _cells(files, chosen, keys, density, bits, limits):
                merges = _best(judge.merges(members, starts), smallest)
                if len(merges.size):
                    yield merges


def _ranges(limits: list[float]) -> Iterator[tuple[float, float]]:
    last = len(limits) - 1
    for i in range(last):
        for j in range(i + 1, last + 1):
            if last <= _FEW_BANDS or i == 0 or j - i <= 2:
                yield limits[i], limits[j]


def _places(files: Regions) -> tuple[Integers, int]:
    """The place of each file's centre on the curve, and how many bits it has."""
    dimensions = files.low.shape[1]
    bits = bits_per_dimension(dimensions)
    centre = np.clip((files.low + files.high) / 2, 0.0, 1.0 - 1e-9)
    codes = [(centre[:, n] * (1 << bits)).astype(np.int32) for n in range(dimensions)]
    return hilbert_keys(codes, bits), bits * dimensions


def _cells(
    files: Regions, chosen: Integers, keys: Integers, density: Floats, bits: int, limits: Limits
) -> Iterator[tuple[Integers, Integers]]:
    """Yields the groups of several levels of cells: their files, and where each group begins.

    Args:
        files: all files.
        chosen: positions of those to be grouped, along the curve.
        keys: place of each file.
        density: of each file.
        bits: of a place.
        limits: of a group.
    """
    size = files.size[chosen]
    most_bytes = limits.bytes or float("inf")
    cells = max(float(size.sum()) / most_bytes, len(chosen) / limits.files)
    coarsest = max(0, int(np.floor(np.log2(max(cells, 1.0)))) - 1)
    layer = np.floor(np.log2(np.maximum(density[chosen], 1e-12)))
    for level in range(coarsest, min(coarsest + _LEVELS, bits + 1)):
        cell = keys[chosen] >> (bits - level)
        # Within a cell, files of about the same density are next to each other, thin ones first.
        order = np.lexsort((keys[chosen], layer, cell))
        members = chosen[order]
        starts = np.array([first for first, _ in pieces(size[order], limits, within=cell[order])], np.int64)
        counts = np.diff([*starts, len(members)])
        small_enough = np.add.reduceat(size[order], starts) <= most_bytes
        keep = (counts > 1) & small_enough & _overlap_in_weights(files, members, starts)
        if not keep.any():
            continue
        members = members[np.repeat(keep, counts)]
        yield members, np.cumsum([0, *counts[keep][:-1]])


def _overlap_in_weights(files: Regions, members: Integers, starts: Integers) -> Flags:
    """Whether the weights of two writes overlap, for each group; a merge of others would save nothing.

    Those of a write reach from its lowest one in the group to its highest one.

    Args:
        files: all files.
        members: positions of the files, group after group.
        starts: where the files of each group begin among them.
    """
    first, end, write = files.first[members], files.end[members] - _SLACK, files.write[members]
    several = np.maximum.reduceat(write, starts) > np.minimum.reduceat(write, starts)
    found: Flags = several & (np.maximum.reduceat(first, starts) < np.minimum.reduceat(end, starts))
    group = np.repeat(np.arange(len(starts)), np.diff([*starts, len(members)]))
    # The others need a look at each write.
    rest = (several & ~found)[group]
    if rest.any():
        found[_overlapping(group[rest], write[rest], first[rest], end[rest])] = True
    return found


def _overlapping(group: Integers, write: Integers, first: Floats, end: Floats) -> Integers:
    """The groups in which the weights of two writes overlap; takes the group, write and weights of each file."""
    order = np.lexsort((write, group))
    owner, write = group[order], write[order]
    starts = np.flatnonzero(np.append(True, (owner[1:] != owner[:-1]) | (write[1:] != write[:-1])))
    # Weights are fractions: with these steps, those of a group are above those of the groups before it.
    owner, step = owner[starts], 2.0 * owner[starts]
    first = np.minimum.reduceat(first[order], starts) + step
    reached = np.maximum.reduceat(end[order], starts) + step
    along = np.argsort(first, kind="stable")
    is_reached = first[along][1:] < np.maximum.accumulate(reached[along])[:-1]
    return np.asarray(owner[along][1:][is_reached], np.int64)


def _best(merges: Merges, smallest: float) -> Merges:
    """The groups that are worth the most per byte."""
    kept = np.flatnonzero(merges.worth >= smallest)
    if len(kept) > _MOST_KEPT:
        kept = np.sort(kept[np.argpartition(-merges.worth[kept], _MOST_KEPT)[:_MOST_KEPT]])
    ends = np.append(merges.starts[1:], len(merges.members))
    counts = (ends - merges.starts)[kept]
    is_kept: Flags = np.zeros(len(merges.starts), bool)
    is_kept[kept] = True
    members = merges.members[np.repeat(is_kept, ends - merges.starts)]
    starts = np.cumsum([0, *counts[:-1]]) if len(counts) else np.zeros(0, np.int64)
    return Merges(members, starts, merges.size[kept], merges.saved[:, kept], merges.worth[kept])
