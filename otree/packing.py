"""Packing: which data file each row goes to, by its weight and its place on the curve."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from otree.weight import MAX_WEIGHT, MIN_WEIGHT, weight_of

# A file may be this many targets large before it is worth two files.
_LARGEST_FILE = 1.5
# A band of fewer targets joins its neighbour.
_SMALLEST_BAND = 0.5
# Rows that join others have bands of at least this share of a target, where the others' bands say so.
_FINEST_TARGET = 1 / 8
# People sample round percentages: bands end there, and never more than a factor of two apart.
_LIMITS = (1.0, 2.0, 3.0, 5.0)
# With many files, bands are still many files large when they are this much finer.
_FINE_LIMITS = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
_MANY_FILES = 256
_DECADES = 9


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


def pack(weights: NDArray[np.int32], keys: NDArray[np.int64], rows: int, target_rows: int, beside: int = 0) -> Packing:
    """Lay rows out in files: bands of weight first, runs of the curve within each band.

    Bands end at round fractions (1, 0.5, 0.3, 0.2, 0.1 and so on), down to where the rest fits one file. A sample then
    reads little more than its own rows, and a box the files of its region in each band.

    Args:
        weights: weights of a random sample of the rows, or of all.
        keys: their places on the curve.
        rows: how many rows there are in all.
        target_rows: rows that a file should hold.
        beside: rows of the same tree in files that stay; see ``weight_bands``.

    Returns:
        The packing; the same input gives the same packing.

    Raises:
        ValueError: If the target is not positive or there are not as many keys as weights.
    """
    if target_rows < 1 or len(weights) != len(keys):
        raise ValueError(f"Cannot pack {len(weights)} weights and {len(keys)} keys in files of {target_rows} rows")
    if rows <= _LARGEST_FILE * _band_rows(rows, target_rows, beside) or len(weights) == 0:
        return Packing((Band(MIN_WEIGHT, (Run(0, 0, 1),)),), 1)
    target = target_rows * len(weights) / rows
    order = np.lexsort((keys, weights))
    by_weight = weights[order]
    bands: list[Band] = []
    files = 0
    for first, end in weight_bands(by_weight, rows, target_rows, beside):
        start, stop = np.searchsorted(by_weight, [first, end], side="left")
        runs = tuple(_runs(np.sort(keys[order[start:stop]]), target, files))
        bands.append(Band(first, runs))
        files += sum(run.width for run in runs)
    return Packing(tuple(bands), files)


def weight_bands(by_weight: NDArray[np.int32], rows: int, target_rows: int, beside: int = 0) -> list[tuple[int, int]]:
    """Say between which weights `pack` puts rows into the same files.

    Rows that join a larger table get the bands that the table has, down to a limit, though their files are smaller for
    it: otherwise a sample of one percent, which reads one file of the table, would read a whole file of every addition.

    Args:
        by_weight: weights of a sample of the rows, ascending.
        rows: how many rows there are in all.
        target_rows: rows that a file should hold.
        beside: rows of the same tree in files that stay.

    Returns:
        [first, end) of each band, lowest weights first; one band when all rows fit into one file.
    """
    band_rows = _band_rows(rows, target_rows, beside)
    if rows <= _LARGEST_FILE * band_rows or len(by_weight) == 0:
        return [(MIN_WEIGHT, MAX_WEIGHT + 1)]
    return _bands(by_weight, band_rows * len(by_weight) / rows, (rows + beside) / target_rows)


def _band_rows(rows: int, target_rows: int, beside: int) -> float:
    """Return how many of the rows a band should hold at least: their share of a file of the whole table."""
    return target_rows * max(rows / max(rows + beside, 1), _FINEST_TARGET)


def _bands(by_weight: NDArray[np.int32], target: float, files: float) -> list[tuple[int, int]]:
    """Return [first, end) of each band, lowest weights first."""
    limits, below = [MAX_WEIGHT + 1], [len(by_weight)]
    for fraction in _fractions(files):
        if below[-1] <= target:
            break
        limits.append(weight_of(fraction))
        below.append(int(np.searchsorted(by_weight, limits[-1], side="left")))
    limits.append(MIN_WEIGHT)
    below.append(0)
    limits.reverse()
    below.reverse()
    bands: list[tuple[int, int]] = []
    start = 0
    for end in range(1, len(limits)):
        rows = below[end] - below[start]
        small = rows < _SMALLEST_BAND * target
        fits = bool(bands) and rows + below[start] - below[limits.index(bands[-1][0])] <= _LARGEST_FILE * target
        if small and (fits or (bands and end == len(limits) - 1)):
            # Downward, so that the limit itself stays: a sample up to it then reads nothing beyond.
            bands[-1] = (bands[-1][0], limits[end])
        elif small and end < len(limits) - 1:
            continue
        else:
            bands.append((limits[start], limits[end]))
        start = end
    return bands


def band_limits(decades: int) -> list[int]:
    """Return the weights at which bands may end, ascending, down to 1 / 10 ** decades."""
    return sorted({weight_of(step / 10**decade) for decade in range(1, decades + 1) for step in _FINE_LIMITS})


def _fractions(files: float) -> Iterable[float]:
    """Yield the limits of the bands below 1, largest first."""
    steps: Sequence[float] = _FINE_LIMITS if files >= _MANY_FILES else _LIMITS
    for decade in range(1, _DECADES + 1):
        for step in reversed(steps):
            yield step / 10**decade


def _runs(keys: NDArray[np.int64], target: float, first_file: int) -> Iterable[Run]:
    """Yield the runs of a band, of about equal rows; `keys` are its sampled rows' places, ascending."""
    size = len(keys)
    if size == 0:
        yield Run(0, first_file, 1)
        return
    # Equal keys cannot be cut: a run starts where a key does.
    cuts = np.append(np.flatnonzero(np.diff(keys, prepend=keys[0] - 1)), size)
    start, file = 0, first_file
    while start < size:
        left = size - start
        ideal = start + left / max(1, round(left / target))
        after = int(np.searchsorted(cuts, ideal, side="left"))
        end = int(cuts[min(after, len(cuts) - 1)])
        if cuts[after - 1] > start and ideal - cuts[after - 1] < end - ideal:
            end = int(cuts[after - 1])
        width = 1 if end - start <= _LARGEST_FILE * target else round((end - start) / target)
        yield Run(int(keys[start]), file, width)
        start, file = end, file + width
