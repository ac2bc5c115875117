"""The judge: what reads cost over the files of a revision, and over the files that a group of them would become.

Costs are estimates of a mix of reads. They take the files' statistics and weights only, so that millions of rows are
judged by a few thousand numbers. All functions are pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from catalog.files.file_table import UNKNOWN, FileTable, Floats, Integers
from otree.packing import DECADES, band_limits, weight_bands
from otree.pages import PAGE_ROWS, page_rows_of
from otree.value_spread import ValueSpread
from otree.weight import MAX_WEIGHT, MIN_WEIGHT, weight_of

# The declared mix of reads: samples, boxes over each pair of columns, and slices of each column.
SAMPLES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5)
BOXES = (0.001, 0.01, 0.1)
SLICE = 0.01
# Opening a file costs as much as reading this share of the target size: 1 MB of 128 MB.
OPENING = 1 / 128
_POWER = 8
_WEIGHTS = 20_000
_SHORTEST = 1e-9


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
    """

    fraction: float
    sides: tuple[float, ...]


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


def overall(relative: Floats) -> float:
    """One number for the costs of all reads, in which expensive ones count most.

    Args:
        relative: cost of each read, in proportion to a fresh layout.
    """
    return float(np.mean(np.maximum(relative, 0.0) ** _POWER) ** (1 / _POWER))


def slopes(relative: Floats) -> Floats:
    """How fast the overall cost changes with the cost of each read; see ``overall``.

    Args:
        relative: cost of each read, in proportion to a fresh layout.
    """
    mean = max(overall(relative), _SHORTEST)
    return np.asarray((np.maximum(relative, 0.0) / mean) ** (_POWER - 1) / len(relative), np.float64)


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
        sides = np.asarray(read.sides)
        costs.files[n] = np.where(sampled, _hit(sides, extent), 0.0)
        costs.bytes[n] = files.size * np.where(sampled, _hit(sides, page), 0.0)
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


def _hit(sides: Floats, extents: Floats) -> Floats:
    """The probability that a box of these sides meets a region of these extents."""
    return np.asarray(np.prod(np.minimum(1.0, np.where(sides < 1.0, sides + extents, 1.0)), axis=-1), np.float64)


@dataclass(frozen=True, eq=False)
class PlannedFiles:
    """Rows that would be laid out together.

    Attributes:
        weights: evenly spaced sample of their weights, ascending.
        rows: how many they are.
        size: their bytes.
        extent: length of their region in each column, as a share of the revision's rows.
        first: smallest weight, as a fraction.
        beside: rows of the revision in files that stay.
        span: length of the range of weights that the rows come from, as a share of all weights.
        fractions: samples for which bands end.
    """

    weights: NDArray[np.int32]
    rows: float
    size: float
    extent: Floats
    first: float = 0.0
    beside: float = 0.0
    span: float = 1.0
    fractions: Sequence[float] = ()

    @classmethod
    def of_all(cls, rows: float, size: float, dimensions: int, fractions: Sequence[float] = ()) -> PlannedFiles:
        """All rows of a revision."""
        weights = _weights(np.array([0.0]), np.array([1.0]), np.array([rows]))
        return cls(weights, rows, size, np.ones(dimensions), fractions=fractions)

    @classmethod
    def of_files(cls, files: Regions, beside: float, span: float, fractions: Sequence[float] = ()) -> PlannedFiles:
        """The rows of some files."""
        extent = np.clip(files.high.max(axis=0) - files.low.min(axis=0), 0.0, 1.0)
        weights = _weights(files.first, files.end, files.rows)
        return cls(
            weights,
            float(files.rows.sum()),
            float(files.size.sum()),
            extent,
            float(files.first.min()),
            beside,
            span,
            fractions,
        )

    def bands(self, target_rows: int) -> list[tuple[int, int]]:
        """[first, end) of each band of weights in the files that would be written."""
        return weight_bands(self.weights, int(self.rows), target_rows, int(self.beside), self.span, self.fractions)

    def bands_at_decades(self, target_rows: int) -> list[tuple[int, int]]:
        """The same without the limits that only large tables have."""
        limits = {*band_limits(0, self.fractions), *(weight_of(1 / 10**n) for n in range(1, DECADES + 1))}
        bands = self.bands(target_rows)
        firsts = [first for n, (first, _) in enumerate(bands) if n == 0 or first in limits]
        return [*zip(firsts, [*firsts[1:], MAX_WEIGHT + 1], strict=True)]

    def costs(
        self,
        mix: Sequence[Read],
        target_rows: int,
        page_rows: int = PAGE_ROWS,
        bands: Sequence[tuple[int, int]] | None = None,
    ) -> ReadCosts:
        """Estimates what the mix costs once the rows are laid out.

        Args:
            mix: the reads.
            target_rows: rows of a file.
            page_rows: rows of a page.
            bands: of weights; those of the product where left out.
        """
        bands = self.bands(target_rows) if bands is None else bands
        starts = np.searchsorted(self.weights, [first for first, _ in bands])
        share = np.diff([*starts, len(self.weights)]) / max(len(self.weights), 1)
        first = np.maximum([_fraction(first) for first, _ in bands], self.first)
        rows = share * self.rows
        count = np.maximum(1.0, np.round(rows / target_rows))
        file = divided(self.extent, count)
        pages = rows / page_rows_of(self.rows, self.rows + self.beside, page_rows)
        page = divided(self.extent, pages)
        count = np.where(share > 0, count, 0.0)
        read_bytes, opened = [], []
        for read in mix:
            sides = np.asarray(read.sides)
            sampled = first < read.fraction
            read_bytes.append(np.sum(share * self.size * sampled * _hit(sides, page)))
            opened.append(np.sum(count * sampled * _hit(sides, file)))
        return ReadCosts(np.array(read_bytes), np.array(opened))


@dataclass(frozen=True, eq=False)
class Merges:
    """Groups of files, each of which would be laid out together. One entry per group.

    Attributes:
        members: positions of the files, group after group.
        starts: where the files of each group begin among them.
        size: bytes of each group.
        saved: what each read of the mix would save, in bytes and opened files counted as bytes; shape (reads, groups).
    """

    members: Integers
    starts: Integers
    size: Floats
    saved: Floats


@dataclass(frozen=True, eq=False)
class Judge:
    """Judges groups of the files of a revision by a mix of reads.

    Attributes:
        files: all files of the revision.
        target_bytes: size of the files that are written.
        page_rows: rows of a page.
        fractions: samples for which bands end.
        mix: the reads; the declared mix where it is left out.
    """

    files: Regions
    target_bytes: float
    page_rows: int = PAGE_ROWS
    fractions: Sequence[float] = ()
    mix: tuple[Read, ...] = ()

    @cached_property
    def reads(self) -> tuple[Read, ...]:
        """The reads by which groups are judged."""
        return self.mix or read_mix(self.files.low.shape[1])

    @property
    def cost(self) -> float:
        """What the mix costs today, in proportion to a fresh layout."""
        return overall(self.today / self.fresh)

    @cached_property
    def limits(self) -> list[float]:
        """Where the bands of a fresh layout begin, as fractions, and 1."""
        return [(first - MIN_WEIGHT) / 2.0**32 for first, _ in self._fresh_files.bands(self.target_rows)] + [1.0]

    @cached_property
    def target_rows(self) -> int:
        """Rows of a file of the target size."""
        return max(1, int(float(self.files.rows.sum()) * self.target_bytes / float(self.files.size.sum())))

    @cached_property
    def fresh(self) -> Floats:
        """What each read costs over the same rows laid out anew.

        A table that has just become so large that its samples would get further bands is not merged for these.
        """
        bands = self._fresh_files.bands_at_decades(self.target_rows)
        costs = self._fresh_files.costs(self.reads, self.target_rows, self.page_rows, bands)
        return costs.weighed(self.target_bytes)

    @cached_property
    def today(self) -> Floats:
        """What each read costs over the files as they are."""
        return np.asarray(self.per_file.sum(axis=1), np.float64)

    @cached_property
    def per_file(self) -> Floats:
        """What each file costs each read; shape (reads, files)."""
        return costs_per_file(self.files, self.reads, self.page_rows).weighed(self.target_bytes)

    def merges(self, members: Integers, starts: Integers) -> Merges:
        """Judges groups of files of about the same size within one range of weights, each of which is laid out anew.

        Args:
            members: positions of the files, group after group.
            starts: where the files of each group begin among them, ascending.
        """
        files = self.files.take(members)
        before = np.add.reduceat(self.per_file[:, members], starts, axis=1)
        after = self._laid_out(files, starts)
        return Merges(members, starts, np.add.reduceat(files.size, starts), before - after)

    def _laid_out(self, files: Regions, starts: Integers) -> Floats:
        """What each read costs over the files that groups become; shape (reads, groups)."""
        rows = np.add.reduceat(files.rows, starts)
        size = np.add.reduceat(files.size, starts)
        low, high = np.minimum.reduceat(files.low, starts), np.maximum.reduceat(files.high, starts)
        extent = np.clip(high - low, 0.0, 1.0)
        first, end = np.minimum.reduceat(files.first, starts), np.maximum.reduceat(files.end, starts)
        total = float(self.files.rows.sum())
        lowest, highest, usual = float(first.min()), float(end.max()), float(np.median(rows))
        evenly = lowest + (np.arange(_WEIGHTS) + 0.5) / _WEIGHTS * (highest - lowest)
        weights = np.asarray(evenly * 2.0**32 + MIN_WEIGHT, np.int64).astype(np.int32)
        span = highest - lowest
        bands = weight_bands(weights, int(usual), self.target_rows, int(total - usual), span, self.fractions)
        page_rows = page_rows_of(rows, total, self.page_rows)
        density = files.rows / np.maximum(files.end - files.first, _SHORTEST)
        read_bytes = np.zeros((len(self.reads), len(starts)))
        opened = np.zeros_like(read_bytes)
        for begins, ends in ((_fraction(first_), _fraction(end_)) for first_, end_ in bands):
            within = np.minimum(files.end, ends) - np.maximum(files.first, begins)
            of_band = np.add.reduceat(density * np.maximum(within, 0.0), starts)
            count = np.where(of_band > 0, np.maximum(1.0, np.round(of_band / self.target_rows)), 0.0)
            file, page = divided(extent, np.maximum(count, 1.0)), divided(extent, of_band / page_rows)
            bytes_of_band = size * of_band / np.maximum(rows, 1.0)
            starts_at = np.maximum(first, begins)
            for n, read in enumerate(self.reads):
                sides = np.asarray(read.sides)
                sampled = starts_at < read.fraction
                read_bytes[n] += bytes_of_band * sampled * _hit(sides, page)
                opened[n] += count * sampled * _hit(sides, file)
        return ReadCosts(read_bytes, opened).weighed(self.target_bytes)

    @cached_property
    def _fresh_files(self) -> PlannedFiles:
        rows, size = float(self.files.rows.sum()), float(self.files.size.sum())
        return PlannedFiles.of_all(rows, size, self.files.low.shape[1], self.fractions)


def _fraction(weight: int) -> float:
    return (weight - MIN_WEIGHT) / (MAX_WEIGHT - MIN_WEIGHT + 1)


def _weights(first: Floats, end: Floats, rows: Floats) -> NDArray[np.int32]:
    """Evenly spaced weights of rows that are spread evenly between the ends of their files' weights."""
    ends = np.unique(np.concatenate([first, end]))
    slope = np.zeros(len(ends))
    density = rows / np.maximum(end - first, 1e-9)
    slope += np.bincount(np.searchsorted(ends, first), density, len(ends))
    slope -= np.bincount(np.searchsorted(ends, end), density, len(ends))
    below = np.concatenate([[0.0], np.cumsum(np.cumsum(slope)[:-1] * np.diff(ends))])
    if below[-1] <= 0:
        return np.zeros(0, np.int32)
    places = np.interp((np.arange(_WEIGHTS) + 0.5) / _WEIGHTS * below[-1], below, ends)
    return np.asarray(np.minimum(places * 2.0**32 + MIN_WEIGHT, MAX_WEIGHT), np.int32)


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
