"""The files that StepConsolidation may take, with the boxes of their values, from the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catalog.columns.column_names import FoundColumn, find_column, find_stored, split_names
from catalog.errors import InvalidArgumentError, UnknownNameError
from catalog.files.file_table import UNKNOWN, FileTable, Flags, Floats, Integers
from catalog.properties.index_properties import SAMPLE_FRACTIONS
from catalog.properties.lifecycle_properties import CLUSTERING_ISOLATE_BYTES
from catalog.table.snapshot import TableSnapshot
from otree.packing import band_limits
from otree.weight import MAX_WEIGHT, MIN_WEIGHT
from procedures.groups.plan import InputFile
from procedures.selection.size_tiered_clustering import ISOLATE_BYTES, MIN_FILES, TIER_RATIO
from procedures.selection.size_tiers import TierPolicy
from procedures.selection.step_runs import StepFiles, widened

_BAND_DECADES = 9
# Cubes to whose borders boxes are widened, for each file.
_CUBES_PER_FILE = 8
_TEXTS = ("path", "deletion_vector", "partition")
_NUMBERS = (
    *("size", "rows", "revision", "first_time", "last_time"),
    *("tier", "band_first", "band_end", "level"),
)


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


@dataclass(frozen=True, eq=False)
class StepCandidates:
    """Files that may be taken, by the time of their first rows and path. One entry per file; see ``FileTable``.

    Attributes:
        level: level of the largest block; -1 when unindexed.
        with_vectors: how many files were left out since they have deletion vectors.
        low: lower corners of the files' boxes, coordinates in [0, 1] or values; None without boxes.
        high: upper corners.
        fractions: samples for which bands end.
    """

    path: NDArray[np.object_]
    deletion_vector: NDArray[np.object_]
    partition: NDArray[np.object_]
    size: Integers
    rows: Integers
    revision: Integers
    first_time: Integers
    last_time: Integers
    tier: Integers
    band_first: Integers
    band_end: Integers
    level: Integers
    with_vectors: int = 0
    low: Floats | None = None
    high: Floats | None = None
    fractions: tuple[float, ...] = ()

    @classmethod
    def of(cls, snapshot: TableSnapshot, scope: Scope) -> StepCandidates:
        """Reads the files of a version.

        Args:
            snapshot: the version.
            scope: which files are wanted.
        """
        values = _values(snapshot.file_table)
        order: Integers = np.argsort(values["first_time"], kind="stable")
        fractions = SAMPLE_FRACTIONS.value(snapshot.configuration)
        files = cls(**{name: column[order] for name, column in values.items()}, fractions=fractions)
        within = np.ones(len(files), np.bool_)
        if scope.revision_id is not None:
            within &= files.revision == scope.revision_id
        if scope.start is not None:
            within &= files.first_time >= scope.start
        if scope.end is not None:
            within &= files.last_time <= scope.end
        has_vector = files.deletion_vector != ""
        left_out = has_vector & within & (not scope.purge_deleted)
        isolated = _are_isolated(files, snapshot) & (files.rows != 0) & (not scope.isolated)
        return replace(files.where(within & ~left_out & ~isolated), with_vectors=int(left_out.sum()))

    def __len__(self) -> int:
        """The number of files."""
        return len(self.path)

    def where(self, keep: Flags) -> StepCandidates:
        """Returns some of the files.

        Args:
            keep: whether a file is kept.
        """
        columns: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        kept: dict[str, Any] = {n: c[keep] for n, c in columns.items() if isinstance(c, np.ndarray)}
        return replace(self, **kept)

    def with_boxes(self, snapshot: TableSnapshot, columns: str | None) -> StepCandidates:
        """The same with the ranges of values of some columns, from the statistics in the log.

        The space reaches from the smallest to the largest value. Boxes are widened to the borders of its cubes, of
        which there are about ``_CUBES_PER_FILE`` for each file.

        Args:
            snapshot: the version.
            columns: names separated by commas; None = the indexed ones.

        Raises:
            InvalidArgumentError: no columns are named, and the table has no index.
            UnknownNameError: there is no such column.
        """
        ranges = self.with_ranges(snapshot, _columns_of(snapshot, columns))
        low, high = ranges.low, ranges.high
        if low is None or high is None:
            return self
        known = np.isfinite(low) & np.isfinite(high)
        least = np.min(low, axis=0, where=known, initial=np.inf)
        span = np.max(high, axis=0, where=known, initial=-np.inf) - least
        scale = np.where(np.isfinite(span) & (span > 0), span, 1.0)
        level = int(np.ceil(np.log2(_CUBES_PER_FILE * max(len(self), 1)) / low.shape[1]))
        first, end = widened((low - least) / scale, (high - least) / scale, level)
        return replace(self, low=first, high=end)

    def with_ranges(self, snapshot: TableSnapshot, columns: Sequence[FoundColumn | None]) -> StepCandidates:
        """The same with the ranges of values of some columns as they are, from the statistics in the log.

        Args:
            snapshot: the version.
            columns: the columns; None for one that the table no longer has. At least one.
        """
        low, high = snapshot.ranges_of(self.path, columns)
        low, high = (np.where(np.isfinite(corner), corner, np.nan) for corner in (low, high))
        return replace(self, low=low, high=high)

    def places(self) -> Iterator[tuple[Place, Integers]]:
        """Each place with the positions of its files, in their order; places by revision, partition and band."""
        bands = _bands_of(self)
        members: dict[Place, list[int]] = {}
        for position, key in enumerate(zip(self.revision.tolist(), self.partition.tolist(), bands, strict=True)):
            members.setdefault(Place(*key), []).append(position)
        for place in sorted(members, key=lambda p: (p.revision_id, p.partition, p.band)):
            yield place, np.array(members[place], np.int64)

    def step_files(self, positions: Integers) -> StepFiles:
        """Some of the files as steps see them."""
        if self.low is None or self.high is None:
            return StepFiles(self.size[positions])
        return StepFiles(self.size[positions], self.low[positions], self.high[positions])

    def input_file(self, position: int) -> InputFile:
        """A file as a plan has it."""
        rows = int(self.rows[position])
        return InputFile(
            str(self.path[position]),
            str(self.deletion_vector[position]),
            int(self.size[position]),
            None if rows == UNKNOWN else rows,
            int(self.level[position]),
            int(self.first_time[position]),
            int(self.last_time[position]),
        )


def _bands_of(files: StepCandidates) -> list[tuple[int, int]]:
    """The ends of the band that each file was written for, from its smallest and largest weight.

    A band ends at a limit. It begins at one too, at a tenth of its end or above, unless it is the lowest one.
    """
    limits = np.array([*band_limits(_BAND_DECADES, files.fractions), MAX_WEIGHT + 1])
    has_band = (files.band_first != UNKNOWN) & (files.band_end != UNKNOWN) & (files.revision > 0)
    first, end = np.where(has_band, files.band_first, MIN_WEIGHT), np.where(has_band, files.band_end, MAX_WEIGHT + 1)
    upper = limits[np.clip(np.searchsorted(limits, end), 0, len(limits) - 1)]
    tenth = MIN_WEIGHT + (upper - MIN_WEIGHT) // 10 - 1
    lower = limits[np.clip(np.searchsorted(limits, first, side="right") - 1, 0, len(limits) - 1)]
    lower = np.where((first < tenth) | (lower > first), MIN_WEIGHT, lower)
    return list(zip(lower.tolist(), upper.tolist(), strict=True))


def _are_isolated(files: StepCandidates, snapshot: TableSnapshot) -> Flags:
    """Whether clustering never merges files again, by its property or its default."""
    isolate = CLUSTERING_ISOLATE_BYTES.optional_value(snapshot.configuration) or ISOLATE_BYTES
    top = TierPolicy(MIN_FILES, None, TIER_RATIO, isolate).tier(isolate - 1)
    flags: Flags = (files.size >= isolate) | (files.tier > top)
    return flags


def _values(files: FileTable) -> dict[str, Any]:
    level = np.where(files.revision == 0, -1, np.maximum(files.levels, 0))
    values = {name: getattr(files, name) for name in (*_TEXTS, *_NUMBERS) if name != "level"}
    return {**values, "level": level}


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
            raise UnknownNameError.of("column", name, snapshot.schema.names)
        columns.append(column)
    return columns
