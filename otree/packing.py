"""Packing: which data file each row goes to, by its weight and its place on the curve."""

from __future__ import annotations

import math
import struct
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from otree.weight import MAX_WEIGHT, MIN_WEIGHT, weight_of

# A file may be this many targets large before it is worth two files.
_LARGEST_FILE = 1.5
# Files of a lower band may be this many targets large where it has few: a box opens at least one of each band.
_LARGEST_LOWER_FILE = 1.4
_FEW_FILES = 4
# The rows below the end of a band are at least this share of a target: one small file costs a box less than it saves
# a sample.
_SMALLEST_BAND = 0.1
# Rows that join others have bands of at least this share of those of a table, where the others' bands say so.
_FINEST_TARGET = 1 / 8
# Bands end at powers of ten; where so many files lie below one, at these steps up to it too.
_FINE_STEPS = (5.0, 2.0)
_MANY_FILES = 500
# Powers of ten at which bands may end.
DECADES = 9


@dataclass(frozen=True)
class Run:
    """Rows of a band from a place on the curve up to the band's next run.

    Attributes:
        first_key: smallest place on the curve.
        first_file: number of its first file.
        width: number of its files; more than one where a single place holds too many rows for one file.
    """

    first_key: int
    first_file: int
    width: int


@dataclass(frozen=True)
class Band:
    """Rows from a weight up to the next band's.

    Attributes:
        first_weight: smallest weight.
        runs: by first key; the first takes every smaller key too.
    """

    first_weight: int
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Packing:
    """Where the rows go.

    Attributes:
        bands: by first weight; the first takes every smaller weight too.
        files: number of files, numbered lowest weights first, then along the curve.
    """

    bands: tuple[Band, ...]
    files: int

    @cached_property
    def _first_weights(self) -> list[int]:
        return [band.first_weight for band in self.bands]

    @property
    def spreads(self) -> bool:
        """Whether any place on the curve has several files, so that rows need a number that spreads them."""
        return any(run.width > 1 for band in self.bands for run in band.runs)

    def file_of(self, weight: int, key: int, spread: int = 0) -> int:
        """Return the file of a row.

        Args:
            weight: the row's weight.
            key: its place on the curve.
            spread: any number that differs between rows of the same place.

        Returns:
            Number of the file.
        """
        band = self.bands[max(bisect_right(self._first_weights, weight) - 1, 0)]
        run = band.runs[max(bisect_right([run.first_key for run in band.runs], key) - 1, 0)]
        return run.first_file + spread % run.width

    def packed(self) -> bytes:
        """Return the packing as the row-level expression reads it (big-endian)."""
        runs = [run for band in self.bands for run in band.runs]
        firsts = np.cumsum([0, *(len(band.runs) for band in self.bands[:-1])])
        return struct.pack(
            f">ii{len(self.bands)}i{len(self.bands)}i{len(runs)}q{len(runs)}i{len(runs)}i",
            len(self.bands), len(runs), *self._first_weights, *(int(first) for first in firsts),
            *(run.first_key for run in runs), *(run.first_file for run in runs), *(run.width for run in runs),
        )  # fmt: skip


def pack(
    weights: NDArray[np.int32],
    keys: NDArray[np.int64],
    rows: int,
    target_rows: int,
    staying_rows: int = 0,
    span: float = 1.0,
    fractions: Sequence[float] = (),
) -> Packing:
    """Lay rows out in files: bands of weight first, runs of the curve within each band.

    Bands end at 1, 0.1, 0.01 and so on of all weights, down to a tenth of a file. Every band costs a box at least one
    file, so that few bands serve boxes best, and a small lowest file serves small samples. In large tables bands end at
    0.5 and 0.2 of each power of ten too. ``bench/bands.py`` compares such rules; see decision 061.

    Args:
        weights: weights of a random sample of the rows, or of all.
        keys: their places on the curve.
        rows: how many rows there are in all.
        target_rows: rows that a file should hold.
        staying_rows: rows of the same tree in files that stay; see ``weight_bands``.
        span: length of the range of weights that the rows come from, as a share of all weights.
        fractions: samples for which bands end too; see ``weight_bands``.

    Returns:
        The packing; the same input gives the same packing.

    Raises:
        ValueError: If the target is not positive or there are not as many keys as weights.
    """
    if target_rows < 1 or len(weights) != len(keys):
        raise ValueError(f"Cannot pack {len(weights)} weights and {len(keys)} keys in files of {target_rows} rows")
    if _fits_one_file(rows, target_rows, staying_rows, span) or len(weights) == 0:
        return Packing((Band(MIN_WEIGHT, (Run(0, 0, 1),)),), 1)
    target = target_rows * len(weights) / rows
    order = np.lexsort((keys, weights))
    by_weight = weights[order]
    bands: list[Band] = []
    files = 0
    for first, end in weight_bands(by_weight, rows, target_rows, staying_rows, span, fractions):
        start, stop = np.searchsorted(by_weight, [first, end], side="left")
        share = (stop - start) / target
        few = (end <= MAX_WEIGHT or span < 1.0) and share < _FEW_FILES
        wanted = math.ceil(share / _LARGEST_LOWER_FILE) if few else round(share)
        runs = tuple(_runs(np.sort(keys[order[start:stop]]), max(wanted, 1), target, files))
        bands.append(Band(first, runs))
        files += sum(run.width for run in runs)
    return Packing(tuple(bands), files)


def weight_bands(
    by_weight: NDArray[np.int32],
    rows: int,
    target_rows: int,
    staying_rows: int = 0,
    span: float = 1.0,
    fractions: Sequence[float] = (),
) -> list[tuple[int, int]]:
    """Say between which weights `pack` puts rows into the same files.

    Rows that join a larger table get the bands that the table has, down to a limit, though their files are smaller for
    it: otherwise a sample of one percent, which reads one file of the table, would read a whole file of every addition.
    Rows of a range of weights get the bands that the table has there: all rows below a tenth of the weights are a tenth
    of the table, and no small addition.

    Args:
        by_weight: weights of a sample of the rows, ascending.
        rows: how many rows there are in all.
        target_rows: rows that a file should hold.
        staying_rows: rows of the same tree in files that stay, of any weight.
        span: length of the range of weights that the rows come from, as a share of all weights.
        fractions: samples for which bands end too, where the bands are large enough; each above 0 and below 1.

    Returns:
        [first, end) of each band, lowest weights first; one band when all rows fit into one file.
    """
    size = len(by_weight)
    if _fits_one_file(rows, target_rows, staying_rows, span) or size == 0:
        return [(MIN_WEIGHT, MAX_WEIGHT + 1)]
    smallest = _SMALLEST_BAND * _band_rows(rows, target_rows, staying_rows, span) * size / rows
    limits, last = [MAX_WEIGHT + 1], size
    own = {weight_of(fraction) for fraction in fractions}
    for limit in sorted({*own, *_limits(rows, target_rows, staying_rows, span)}, reverse=True):
        below = int(np.searchsorted(by_weight, limit, side="left"))
        if below < smallest:
            break
        if last - below >= smallest:
            limits.append(limit)
            last = below
    limits.append(MIN_WEIGHT)
    return [(first, end) for end, first in pairwise(limits)][::-1]


def _fits_one_file(rows: int, target_rows: int, staying_rows: int, span: float) -> bool:
    """Return whether the share of the table that the rows are would be one file of the table."""
    return rows / span <= _LARGEST_FILE * _band_rows(rows, target_rows, staying_rows, span)


def _band_rows(rows: int, target_rows: int, staying_rows: int, span: float) -> float:
    """Return how many of the rows are the share of one file of the whole table."""
    return target_rows * min(max(rows / span / max(rows + staying_rows, 1), _FINEST_TARGET), 1.0)


def _limits(rows: int, target_rows: int, staying_rows: int, span: float) -> Iterable[int]:
    """Yield the weights below the largest at which bands may end, largest first."""
    below = 1.0
    for decade in range(1, DECADES + 1):
        # Bands of less than a file gain nothing from finer steps, even in a large table.
        if below * (rows + staying_rows) >= _MANY_FILES * target_rows and below * rows / span >= target_rows:
            yield from (weight_of(step / 10**decade) for step in _FINE_STEPS)
        below = 1 / 10**decade
        yield weight_of(below)


def band_limits(decades: int, fractions: Sequence[float] = ()) -> list[int]:
    """Return the weights at which bands may end, ascending, down to 1 / 10 ** decades and at some fractions."""
    steps = {step / 10**decade for decade in range(1, decades + 1) for step in (1.0, *_FINE_STEPS)}
    return sorted({weight_of(fraction) for fraction in (*steps, *fractions)})


def _runs(keys: NDArray[np.int64], wanted: int, target: float, first_file: int) -> Iterable[Run]:
    """Yield the runs of a band, about ``wanted`` of equal rows; `keys` are its sampled rows' places, ascending."""
    size = len(keys)
    if size == 0:
        yield Run(0, first_file, 1)
        return
    # Equal keys cannot be cut: a run starts where a key does.
    cuts = np.append(np.flatnonzero(np.diff(keys, prepend=keys[0] - 1)), size)
    even = size / wanted
    start, file = 0, first_file
    while start < size:
        left = size - start
        ideal = start + left / max(1, round(left / even))
        after = int(np.searchsorted(cuts, ideal, side="left"))
        end = int(cuts[min(after, len(cuts) - 1)])
        if cuts[after - 1] > start and ideal - cuts[after - 1] < end - ideal:
            end = int(cuts[after - 1])
        width = 1 if end - start <= _LARGEST_FILE * target else round((end - start) / target)
        yield Run(int(keys[start]), file, width)
        start, file = end, file + width
