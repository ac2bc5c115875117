"""The files that may be concatenated, in the order of time, by their places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from catalog.columns.column_names import FoundColumn, find_column, find_stored, split_names
from catalog.errors import InvalidArgumentError, UnknownNameError
from catalog.files.arrays import UNKNOWN, Flags, Integers, group_numbers, numbered
from catalog.files.file_table import FileTable
from catalog.properties.lifecycle_properties import CLUSTERING_ISOLATE_BYTES
from catalog.settings.strategy_options import MIN_FILES, TIER_RATIO
from catalog.table.snapshot import TableSnapshot
from otree.packing import band_limits
from otree.weight import MAX_WEIGHT, MIN_WEIGHT
from procedures.selection.size_tiers import TierPolicy
from procedures.selection.step_runs import widened

_BAND_DECADES = 9
# Cubes to whose borders boxes are widened, for each file.
_CUBES_PER_FILE = 8


@dataclass(frozen=True)
class Scope:
    """Which files may be taken.

    Attributes:
        revision_id: files of one revision; None = of any.
        purge_deleted: whether files with deletion vectors may be taken.
        start: rows were first written at this time or later, in epoch milliseconds; None = at any time.
        end: they were last written at this time or earlier; None = at any time.
        isolated: whether files that clustering never merges again may be taken.
    """

    revision_id: int | None
    purge_deleted: bool
    start: int | None
    end: int | None
    isolated: bool = False


@dataclass(frozen=True)
class Place:
    """Files of one place may become one file.

    Attributes:
        revision_id: their revision, 0 for unindexed files.
        partition: values of the partition columns, as text.
        band: first weight of the rows and first weight above them, at ends of bands; a sample that needs one band only
            reads no file of another one.
    """

    revision_id: int
    partition: str
    band: tuple[int, int]


def candidates(snapshot: TableSnapshot, scope: Scope) -> tuple[FileTable, int]:
    """The files that may be taken, by the time of their first rows and path.

    Args:
        snapshot: the version.
        scope: which files are wanted.

    Returns:
        The files, and how many were left out because they have deletion vectors.
    """
    files = snapshot.file_table
    within = np.ones(len(files), np.bool_)
    if scope.revision_id is not None:
        within &= files.revision == scope.revision_id
    if scope.start is not None:
        within &= files.first_time >= scope.start
    if scope.end is not None:
        within &= files.last_time <= scope.end
    left_out = (files.deletion_vector != "") & within & (not scope.purge_deleted)
    isolated = _are_isolated(files, snapshot) & (files.rows != 0) & (not scope.isolated)
    positions = np.flatnonzero(within & ~left_out & ~isolated)
    return files.take(positions[np.argsort(files.first_time[positions], kind="stable")]), int(left_out.sum())


def without_ranges(files: FileTable) -> FileTable:
    """The same without ranges of values."""
    none = np.zeros((len(files), 0))
    return files.with_ranges(none, none)


def with_ranges(files: FileTable, snapshot: TableSnapshot, columns: Sequence[FoundColumn | None]) -> FileTable:
    """The same with the ranges of some columns, NaN where they are not known.

    Args:
        files: files of a version.
        snapshot: the version.
        columns: the columns; None for one that the table no longer has. At least one.
    """
    low, high = snapshot.ranges_of(files.path, columns)
    return files.with_ranges(*(np.where(np.isfinite(corner), corner, np.nan) for corner in (low, high)))


def with_boxes(files: FileTable, snapshot: TableSnapshot, names: str | None) -> FileTable:
    """The same with boxes around the values of some columns, as coordinates in [0, 1].

    The space reaches from the smallest to the largest value. Boxes are widened to the borders of its cubes, of
    which there are about ``_CUBES_PER_FILE`` for each file.

    Args:
        files: files of a version.
        snapshot: the version.
        names: of the columns, separated by commas; None = the indexed ones.

    Raises:
        InvalidArgumentError: no columns are named, and the table has no index.
        UnknownNameError: there is no such column.
    """
    files = with_ranges(files, snapshot, _columns_of(snapshot, names))
    low, high = files.low, files.high
    known = np.isfinite(low) & np.isfinite(high)
    least = np.min(low, axis=0, where=known, initial=np.inf)
    span = np.max(high, axis=0, where=known, initial=-np.inf) - least
    scale = np.where(np.isfinite(span) & (span > 0), span, 1.0)
    level = int(np.ceil(np.log2(_CUBES_PER_FILE * max(len(files), 1)) / low.shape[1]))
    return files.with_ranges(*widened((low - least) / scale, (high - least) / scale, level))


def places(files: FileTable, fractions: Sequence[float]) -> Iterator[tuple[Place, Integers]]:
    """Each place with the positions of its files, in their order; places by revision, partition and band.

    Args:
        files: the files.
        fractions: samples for which bands end.
    """
    lower, upper = _bands_of(files, fractions)
    partition, partitions = numbered(files.partition)
    of_place, count = group_numbers(files.revision, partition, lower, upper)
    order = np.argsort(of_place, kind="stable")
    ends = np.searchsorted(of_place[order], np.arange(count), side="right")
    for positions in np.split(order, ends[:-1]) if count else ():
        first = positions[0]
        band = int(lower[first]), int(upper[first])
        yield Place(int(files.revision[first]), partitions[partition[first]], band), positions


def _bands_of(files: FileTable, fractions: Sequence[float]) -> tuple[Integers, Integers]:
    """The ends of the band that each file was written for, from its smallest and largest weight.

    A band ends at a limit. It begins at one too, at a tenth of its end or above, unless it is the lowest one.
    """
    limits = np.array([*band_limits(_BAND_DECADES, fractions), MAX_WEIGHT + 1])
    has_band = (files.band_first != UNKNOWN) & (files.band_end != UNKNOWN) & (files.revision > 0)
    first, end = np.where(has_band, files.band_first, MIN_WEIGHT), np.where(has_band, files.band_end, MAX_WEIGHT + 1)
    upper = limits[np.clip(np.searchsorted(limits, end), 0, len(limits) - 1)]
    tenth = MIN_WEIGHT + (upper - MIN_WEIGHT) // 10 - 1
    lower = limits[np.clip(np.searchsorted(limits, first, side="right") - 1, 0, len(limits) - 1)]
    lower = np.where((first < tenth) | (lower > first), MIN_WEIGHT, lower)
    return lower, upper


def _are_isolated(files: FileTable, snapshot: TableSnapshot) -> Flags:
    """Whether clustering never merges files again, by its property or its default."""
    isolate = CLUSTERING_ISOLATE_BYTES.value(snapshot.settings)
    top = TierPolicy(MIN_FILES.value({}), None, TIER_RATIO.value({}), isolate).top
    flags: Flags = (files.size >= isolate) | (files.tier > top)
    return flags


def _columns_of(snapshot: TableSnapshot, names: str | None) -> list[FoundColumn | None]:
    if names is None:
        revision = snapshot.latest_revision
        if revision is None:
            accepted = "names of columns, separated by commas: the table has no index, and amplification needs columns"
            raise InvalidArgumentError.missing("columns", accepted)
        return [find_stored(snapshot.schema, column) for column in revision.columns]
    columns: list[FoundColumn | None] = []
    for name, _ in split_names(names):
        column = find_column(snapshot.schema, name)
        if column is None:
            raise UnknownNameError.of("column", name, snapshot.schema.names, "columns")
        columns.append(column)
    return columns
