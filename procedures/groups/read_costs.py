"""What reads cost over the files of a revision, and over files that would be written.

Costs are estimates of a mix of reads. They take the files' statistics and weights only, so that millions of rows are
judged by a few thousand numbers. All functions are pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations, zip_longest

import numpy as np

from catalog.files.arrays import UNKNOWN, Floats, Integers
from catalog.files.file_table import FileTable
from otree.packing import DECADES, weight_bands
from otree.pages import PAGE_ROWS, page_rows_of
from otree.value_spread import ValueSpread
from otree.weight import MAX_WEIGHT, MIN_WEIGHT, weight_of

# The declared mix of reads: samples, boxes over each pair of columns, and slices of each column.
SAMPLES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5)
BOXES = (0.001, 0.01, 0.1)
SLICE = 0.01
# Opening a file costs as much as reading this share of the target size: 1 MB of 128 MB.
OPENING = 1 / 128
# Weights by which bands are found; bands of fewer rows than one of them stands for are not seen.
_WEIGHTS = 20_000
_SHORTEST = 1e-9
# Half of the rows are in files that are less dense than those that show which part of the space is occupied.
_DENSE = 0.5
# Pages fill that part less evenly than files: a fresh layout is never to seem worse than it is.
_CAUTION = 0.7
# Files of independent columns are up to so dense, because their regions are not boxes.
_USUAL_DENSITY = 1.5


@dataclass(frozen=True, eq=False)
class Regions:
    """The regions of the index space that files take up. One entry per file.

    Attributes:
        size: bytes.
        rows: live rows.
        first: smallest weight, as a fraction in [0, 1).
        end: end of the weights, exclusive, as a fraction in (0, 1].
        low: smallest value of each indexed column, as a quantile of all rows; shape (files, columns).
        high: largest one; see ``low``.
        write: number of the write that made the file.
    """

    size: Floats
    rows: Floats
    first: Floats
    end: Floats
    low: Floats
    high: Floats
    write: Integers

    @classmethod
    def of(cls, files: FileTable) -> Regions:
        """The regions of all files of a table.

        Args:
            files: files with the ranges of the indexed columns. Files whose weights or values are not known count as
                files of all weights and values.
        """
        known = np.where(files.rows == UNKNOWN, 0, files.rows).astype(np.float64)
        size = files.size.astype(np.float64)
        # Where the log does not count rows, bytes stand for them.
        row_bytes = size[known > 0].sum() / known.sum() if known.sum() > 0 else 1.0
        rows = np.where(known > 0, known, size / max(row_bytes, 1e-9))
        first, end = _fractions(files.band_first, 0.0), _fractions(files.band_end, 1.0)
        is_range = end > first
        ranges = [quantiles(files.low[:, n], files.high[:, n], rows) for n in range(files.low.shape[1])]
        return cls(
            size=size,
            rows=rows,
            first=np.where(is_range, first, 0.0),
            end=np.where(is_range, end, 1.0),
            low=np.stack([low for low, _ in ranges], axis=1),
            high=np.stack([high for _, high in ranges], axis=1),
            write=files.write,
        )

    def __len__(self) -> int:
        """The number of files."""
        return len(self.size)

    def densities(self) -> Floats:
        """The share that a file has of the rows of its region; about 1 where no other file overlaps it.

        More than 1 where the columns depend on each other, so that the rows lie in a part of the space.
        """
        volume = np.prod(np.maximum(self.high - self.low, 1e-6), axis=1) * np.maximum(self.end - self.first, _SHORTEST)
        return np.asarray(self.rows / (volume * max(float(self.rows.sum()), 1.0)), np.float64)

    def occupied(self) -> float:
        """The share of the space that rows lie in, as the files show it that are packed most densely."""
        density = self.densities()
        order = np.argsort(density)
        through = np.cumsum(self.rows[order])
        dense = density[order][min(int(np.searchsorted(through, _DENSE * through[-1])), len(order) - 1)]
        return float(min(1.0, _USUAL_DENSITY / max(dense, _SHORTEST)) ** _CAUTION)

    def take(self, positions: Integers) -> Regions:
        """The regions of some files.

        Args:
            positions: of the files.
        """
        return replace(self, **{f.name: getattr(self, f.name)[positions] for f in fields(self)})


def _fractions(weights: Integers, otherwise: float) -> Floats:
    fractions = np.clip((weights.astype(np.float64) - MIN_WEIGHT) / 2.0**32, 0.0, 1.0)
    return np.where(weights == UNKNOWN, otherwise, fractions)


@dataclass(frozen=True, eq=False)
class Read:
    """A read of the mix: a sample of all rows, or all rows of a box.

    Attributes:
        fraction: the sample; 1 = all weights.
        sides: length of the box in each column, as a share of the rows; 1 = all values.
        places: where it begins and ends in each column, as quantiles; None if it may be anywhere. Columns that are left
            out are without a place.
    """

    fraction: float
    sides: tuple[float, ...]
    places: tuple[tuple[float, float] | None, ...] = ()

    def met(self, low: Floats, high: Floats, parts: Floats) -> Floats:
        """The share of the parts of regions that the box is expected to meet.

        Args:
            low: lower corners of the regions, shape (regions, columns).
            high: upper corners.
            parts: lengths of the parts that each region is divided into, likewise.
        """
        share = np.ones(len(parts))
        for column, (side, place) in enumerate(zip_longest(self.sides, self.places)):
            if place is not None:
                overlap = np.minimum(high[:, column], place[1]) - np.maximum(low[:, column], place[0])
                length = np.maximum(high[:, column] - low[:, column], _SHORTEST)
                met = np.where(overlap < 0, 0.0, (overlap + parts[:, column]) / length)
                share *= np.minimum(met, 1.0)
            elif side < 1:
                share *= np.minimum(side + parts[:, column], 1.0)
        return share


def read_mix(dimensions: int) -> tuple[Read, ...]:
    """The declared mix of reads for so many indexed columns."""
    whole = (1.0,) * dimensions
    samples = [Read(fraction, whole) for fraction in SAMPLES]
    pairs: list[tuple[int, ...]] = [*combinations(range(dimensions), 2)] or [(0,)]
    boxes = [Read(1.0, _sides(dimensions, pair, share)) for pair in pairs for share in BOXES]
    slices = [Read(1.0, _sides(dimensions, (column,), SLICE)) for column in range(dimensions)]
    return (*samples, *boxes, *slices)


def _sides(dimensions: int, columns: Sequence[int], share: float) -> tuple[float, ...]:
    return tuple(share ** (1 / len(columns)) if column in columns else 1.0 for column in range(dimensions))


@dataclass(frozen=True, eq=False)
class ReadCosts:
    """Expected bytes and files of each read of the mix; one entry, or one per file, along the last axis."""

    bytes: Floats
    files: Floats

    def weighed(self, target_bytes: float) -> Floats:
        """Bytes, and opened files as the bytes that could be read instead.

        Args:
            target_bytes: size of the files that are written.
        """
        return np.asarray(self.bytes + self.files * (target_bytes * OPENING), np.float64)


def costs_per_file(files: Regions, mix: Sequence[Read], page_rows: int = PAGE_ROWS) -> ReadCosts:
    """Estimates what each file costs the mix.

    Args:
        files: the files.
        mix: the reads.
        page_rows: rows of a page.

    Returns:
        Arrays of the shape (reads, files).
    """
    costs = ReadCosts(np.empty((len(mix), len(files))), np.empty((len(mix), len(files))))
    extent = np.clip(files.high - files.low, 0.0, 1.0)
    _, write = np.unique(files.write, return_inverse=True)
    of_write = np.bincount(write, files.rows)[write].astype(np.float64)
    pages = files.rows / page_rows_of(of_write, float(files.rows.sum()), page_rows)
    page = divided(extent, pages)
    for n, read in enumerate(mix):
        sampled = files.first < read.fraction
        costs.files[n] = np.where(sampled, read.met(files.low, files.high, extent), 0.0)
        costs.bytes[n] = files.size * np.where(sampled, read.met(files.low, files.high, page), 0.0)
    return costs


def divided(extents: Floats, parts: Floats) -> Floats:
    """Divides regions into parts of equal volume that are as cubic as their region allows.

    The curve follows the quantiles of the whole table, so that a region that is short in a column is divided along the
    others first.

    Args:
        extents: lengths of each region, shape (regions, columns), or (columns,) for one region.
        parts: parts of each region; below 1 counts as 1.

    Returns:
        Lengths of the parts, shape (regions, columns).
    """
    extents = np.broadcast_to(np.maximum(extents, _SHORTEST), (len(parts), extents.shape[-1]))
    columns = extents.shape[1]
    volume = np.prod(extents, axis=1) / np.maximum(parts, 1.0)
    ascending = np.sort(extents, axis=1)
    side = volume ** (1 / columns)
    # Columns that are shorter than the side stay whole, which leaves more of the volume to the others.
    whole = np.ones(len(parts))
    for column in range(columns - 1):
        whole = whole * ascending[:, column]
        wider = (volume / whole) ** (1 / (columns - 1 - column))
        side = np.where(ascending[:, column] < side, wider, side)
    return np.asarray(np.minimum(extents, side[:, None]), np.float64)


def bands_of(
    rows: float,
    revision_rows: float,
    target_rows: int,
    fractions: Sequence[float] = (),
    first: float = 0.0,
    end: float = 1.0,
) -> list[tuple[int, int]]:
    """Returns [first, end) of each band of weights in the files that are written for some rows.

    Args:
        rows: how many.
        revision_rows: of the revision, those among them.
        target_rows: rows of a file.
        fractions: samples for which bands end.
        first: smallest weight of the rows, as a fraction.
        end: end of their weights, exclusive.
    """
    evenly = first + (np.arange(_WEIGHTS) + 0.5) / _WEIGHTS * (end - first)
    weights = (evenly * 2.0**32 + MIN_WEIGHT).astype(np.int64).astype(np.int32)
    return weight_bands(weights, int(rows), target_rows, int(revision_rows - rows), end - first, fractions)


def bands_at_decades(bands: Sequence[tuple[int, int]], fractions: Sequence[float] = ()) -> list[tuple[int, int]]:
    """Returns bands without the limits that only large tables have.

    Args:
        bands: of a fresh layout.
        fractions: samples for which bands end.
    """
    limits = {weight_of(fraction) for fraction in (*fractions, *(1 / 10**n for n in range(1, DECADES + 1)))}
    firsts = [first for n, (first, _) in enumerate(bands) if n == 0 or first in limits]
    return [*zip(firsts, [*firsts[1:], MAX_WEIGHT + 1], strict=True)]


def costs_laid_out(
    files: Regions,
    starts: Integers,
    bands: Sequence[tuple[int, int]],
    mix: Sequence[Read],
    target_rows: int,
    revision_rows: float,
    page_rows: int = PAGE_ROWS,
    occupied: float = 1.0,
) -> ReadCosts:
    """Estimates what the mix costs once the rows of each of several groups of files are laid out together.

    Args:
        files: the files, group after group.
        starts: where the files of each group begin.
        bands: of weights in the files that are written.
        mix: the reads.
        target_rows: rows of a file.
        revision_rows: of the revision.
        page_rows: rows of a page where the whole revision is written.
        occupied: share of the region of a group that its rows lie in.

    Returns:
        Arrays of the shape (reads, groups).
    """
    rows, size = np.add.reduceat(files.rows, starts), np.add.reduceat(files.size, starts)
    low, high = np.minimum.reduceat(files.low, starts), np.maximum.reduceat(files.high, starts)
    extent = np.clip(high - low, 0.0, 1.0) * occupied ** (1 / low.shape[1])
    first = np.minimum.reduceat(files.first, starts)
    rows_per_page = page_rows_of(rows, revision_rows, page_rows)
    density = files.rows / np.maximum(files.end - files.first, _SHORTEST)
    costs = ReadCosts(np.zeros((len(mix), len(starts))), np.zeros((len(mix), len(starts))))
    for begins, ends in ((share_below(begins), share_below(ends)) for begins, ends in bands):
        within = np.minimum(files.end, ends) - np.maximum(files.first, begins)
        of_band = np.add.reduceat(density * np.maximum(within, 0.0), starts)
        count = np.where(of_band > 0, np.maximum(1.0, np.round(of_band / target_rows)), 0.0)
        file, page = divided(extent, count), divided(extent, of_band / rows_per_page)
        bytes_of_band = size * of_band / np.maximum(rows, 1.0)
        starts_at = np.maximum(first, begins)
        for n, read in enumerate(mix):
            sampled = starts_at < read.fraction
            costs.bytes[n] += bytes_of_band * sampled * read.met(low, high, page)
            costs.files[n] += count * sampled * read.met(low, high, file)
    return costs


def costs_of_fresh_layout(
    rows: float,
    size: float,
    bands: Sequence[tuple[int, int]],
    mix: Sequence[Read],
    target_rows: int,
    page_rows: int = PAGE_ROWS,
    occupied: float = 1.0,
) -> ReadCosts:
    """Estimates what the mix costs if all rows of a revision are laid out at once; one entry per read.

    Args:
        rows: of the revision.
        size: its bytes.
        bands: see ``costs_laid_out``, like the others.
        mix: the reads.
        target_rows: rows of a file.
        page_rows: rows of a page.
        occupied: share of the space that rows lie in.
    """
    dimensions = len(mix[0].sides) if mix else 1
    one, corner = np.ones(1), np.zeros((1, dimensions))
    everything = Regions(size * one, rows * one, 0 * one, one, corner, corner + 1, np.zeros(1, np.int64))
    first = np.zeros(1, np.int64)
    costs = costs_laid_out(everything, first, bands, mix, target_rows, rows, page_rows, occupied)
    return ReadCosts(costs.bytes[:, 0], costs.files[:, 0])


def share_below(weight: int) -> float:
    """The share of all weights that are below one."""
    return (weight - MIN_WEIGHT) / (MAX_WEIGHT - MIN_WEIGHT + 1)


def quantiles(low: Floats, high: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """Turns the ranges of a column's values in files into quantiles of all rows.

    Args:
        low: smallest value per file; NaN = unknown.
        high: largest value per file; NaN = unknown.
        rows: rows per file, which are taken to be spread evenly over the file's range.

    Returns:
        The quantiles of the smallest and largest values; 0 and 1 where they are unknown.
    """
    spread = ValueSpread.of_files(low, high, rows)
    if spread is None:
        return np.zeros(len(low)), np.ones(len(low))
    known = np.isfinite(low) & np.isfinite(high) & (high >= low)
    first, last = (np.where(known, ends, spread.values[0]) for ends in (low, high))
    return np.where(known, spread.below(first), 0.0), np.where(known, spread.up_to(last), 1.0)
