"""The consolidation plan of a table: its files by place, and groups that a rewrite can do, with what they become."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from pyspark.sql.types import DateType, NumericType, StringType, TimestampNTZType, TimestampType

from catalog.columns.column_names import FoundColumn, find_column, find_stored, split_names
from catalog.counted_nouns import agreeing, counted
from catalog.errors import InvalidArgumentError, UnknownNameError
from catalog.files.arrays import Floats, Integers
from catalog.files.file_table import FileTable
from catalog.properties.index_properties import SAMPLE_FRACTIONS
from catalog.pruning.file_conditions import files_that_may_match
from catalog.pruning.row_predicate import RowPredicate
from catalog.table.snapshot import TableSnapshot
from procedures.groups.boxes import Boxes, depths, has_overlap, sweep_dimension
from procedures.groups.consolidation_plan import SMALL_SHARE, FileSet, Reason, consolidation_plan
from procedures.groups.cutter import MAX_FILES_PER_GROUP, Limits, Parts, parts_of, pieces
from procedures.groups.group import Concatenate, Expectation, FileRun, InputFile
from procedures.groups.plan import Plan
from procedures.selection.file_division import are_large, parts_of_file, rows_per_part
from procedures.selection.file_places import Place, Scope, candidates, places, with_ranges, without_ranges

NAME = "ConsolidationPlan"
# A group has files of at most so many times the desired size.
MOST_FILES_OUT = 4
MOST_FILES = 10_000
_NO_PARTS = Parts((), 0, frozenset())
_WITH_RANGES = (NumericType, DateType, TimestampType, TimestampNTZType, StringType)
_NAMES = "column names separated by commas, each once; names with a comma, colon or dot in backquotes"


@dataclass(frozen=True)
class PlanSettings:
    """What a plan is for.

    Attributes:
        max_file_bytes: the size that files should have.
        columns: of the boxes, separated by commas; None = the indexed ones.
        where: only files that may have rows of it; None = all.
    """

    max_file_bytes: int
    columns: str | None = None
    where: RowPredicate | None = None


def column_names(text: str) -> list[str]:
    """The names in the parameter ``columns``.

    Raises:
        InvalidArgumentError: they cannot be read.
    """
    try:
        entries = split_names(text)
    except ValueError as error:
        raise InvalidArgumentError.of("columns", text, f"{_NAMES}; {error}") from error
    names = [name for name, kind in entries if name and not kind]
    if len(names) != len(entries) or len(set(names)) != len(names) or not names:
        raise InvalidArgumentError.of("columns", text, _NAMES)
    return names


def table_plan(snapshot: TableSnapshot, settings: PlanSettings) -> Plan:
    """Plans the groups of a table, place by place; reads metadata only.

    Files are grouped by the ranges of columns. In a table without an index and without ``columns`` small files that are
    neighbours in time are merged, and large files are divided.

    Args:
        snapshot: the table.
        settings: what the plan is for.

    Returns:
        Groups of the kind ``Concatenate``, numbered from 1, each with what is expected of it.

    Raises:
        InvalidArgumentError: a column has no ranges, or ``where`` is no condition over the table's columns.
        UnknownNameError: there is no such column.
    """
    columns = _columns(snapshot, settings.columns)
    if settings.where is not None:
        settings.where.check(snapshot.spark, snapshot.schema)
        matching = files_that_may_match(snapshot.spark, snapshot.schema, snapshot.partition_columns, settings.where)
        snapshot = snapshot.only(matching)
    # A file without live rows is nothing to merge; StepConsolidation and use.compact remove it.
    files, _ = candidates(snapshot, Scope(None, True, None, None, isolated=True))
    files = files.take(np.flatnonzero(files.rows != 0))
    files = with_ranges(files, snapshot, columns) if columns and len(files) else without_ranges(files)
    names = [column.plain_name for column in columns]
    limits = Limits(MOST_FILES_OUT * settings.max_file_bytes, MOST_FILES)
    groups = planned_groups(files, settings.max_file_bytes, limits, names, SAMPLE_FRACTIONS.value(snapshot.settings))
    return Plan(snapshot.version, tuple(groups), committed_at=snapshot.committed_at)


def planned_groups(
    files: FileTable, desired_bytes: int, limits: Limits, names: Sequence[str], fractions: Sequence[float] = ()
) -> Iterator[Concatenate]:
    """The groups of a plan, none of which is larger than the limits allow; pure.

    Large files of a set are groups of their own. A file that would be alone in its run and is not large is left as it
    is. So each group has fewer files after it than before, or divides a large file.

    Args:
        files: the files in the order of time, with ranges or without. A file of which the log does not count the rows
            cannot be divided.
        desired_bytes: size that files should have.
        limits: of a group.
        names: of the columns of the ranges.
        fractions: samples for which bands end.
    """
    numbers = count(1)
    for place, positions in places(files, fractions):
        planner = _PlacePlanner(files, positions, place, desired_bytes, names, numbers)
        for file_set in consolidation_plan(planner.boxes, desired_bytes):
            yield from planner.bounded(file_set, limits)


class _PlacePlanner:
    """Makes groups of the sets of files of one place.

    Args:
        files: see ``planned_groups``.
        positions: of the files of the place. Sets and runs hold positions among these.
        place: the place.
        desired_bytes: see ``planned_groups``.
        names: likewise.
        numbers: of the groups to come.
    """

    def __init__(
        self,
        files: FileTable,
        positions: Integers,
        place: Place,
        desired_bytes: int,
        names: Sequence[str],
        numbers: Iterator[int],
    ) -> None:
        self.boxes = _boxes(files, positions, desired_bytes)
        self._files, self._positions, self._place = files, positions, place
        self._desired_bytes, self._names, self._numbers = desired_bytes, names, numbers
        self._rows = files.rows[positions]

    def bounded(self, file_set: FileSet, limits: Limits) -> Iterator[Concatenate]:
        """The groups of a set.

        Args:
            file_set: the set.
            limits: of a group.
        """
        files = self.boxes
        members: Integers = np.array(file_set.files, np.int64)
        is_large = are_large(files.size[members], self._rows[members], self._desired_bytes)
        large, rest = members[is_large], members[~is_large]
        cut = parts_of(files.size[rest], files.low[rest], files.high[rest], limits) if len(rest) else _NO_PARTS
        runs_of_parts = [_runs(files, rest[part], self._desired_bytes) for part in cut.members]
        divided = {
            n: parts_of_file(int(files.size[n]), int(self._rows[n]), self._desired_bytes) for n in large.tolist()
        }
        boxes = [run for runs in runs_of_parts for run in runs] + [(n,) for n in divided for _ in range(divided[n])]
        # The parts of a large file count as if each had the values of the whole file.
        depth_after = _depth(files, boxes)
        for runs in runs_of_parts:
            merged = [run for run in runs if len(run) > 1]
            if merged:
                reason = _reason(file_set, files, merged, is_cut=len(cut.members) > 1)
                expected = Expectation(self._place.partition, len(merged), file_set.depth, depth_after)
                yield self._group(reason, merged, expected, self._cut_note(cut) if reason is Reason.OVERLAP_CUT else "")
        for position, number in divided.items():
            expected = Expectation(self._place.partition, number, file_set.depth, depth_after)
            yield self._group(Reason.LARGE, [(position,)], expected)

    def _group(
        self, reason: Reason, runs: Sequence[tuple[int, ...]], expected: Expectation, more: str = ""
    ) -> Concatenate:
        inputs = InputFile.of(self._files, self._positions[[position for run in runs for position in run]])
        where = f" of partition {expected.partition}" if expected.partition else ""
        become = f"{agreeing(len(inputs), 'becomes', 'become')} {expected.files}"
        return Concatenate(
            NAME,
            self._place.revision_id,
            reason.value,
            inputs,
            f"{counted(len(inputs), 'file')}{where} {become}{more}",
            runs=tuple(FileRun.of(self._files, self._positions[list(run)]) for run in runs),
            rows_per_file=rows_per_part(inputs[0].rows or 0, min(expected.files, MAX_FILES_PER_GROUP))
            if reason is Reason.LARGE
            else None,
            plan_group=next(self._numbers),
            expected=expected,
        )

    def _cut_note(self, cut: Parts) -> str:
        names = self._names
        along = [names[n] if n >= 0 and names else "time" for n in sorted(cut.dimensions, reverse=True)]
        return (
            f"; one of {len(cut.members)} parts of a set of overlapping files, which is cut along {', '.join(along)}; "
            f"{counted(cut.crossing, 'file')} {agreeing(cut.crossing, 'reaches', 'reach')} across the cuts"
        )


def _boxes(files: FileTable, positions: Integers, desired_bytes: int) -> Boxes:
    if files.low.shape[1]:
        return Boxes.of(files, positions)
    ranks = _ranks(files.size[positions], desired_bytes)
    return Boxes(files.size[positions], ranks, ranks)


def _ranks(size: Integers, desired_bytes: int) -> Floats:
    """Places in the order of time, those of small files first: other files do not separate them."""
    order = np.argsort(size >= SMALL_SHARE * desired_bytes, kind="stable")
    ranks = np.empty(len(size), np.float64)
    ranks[order] = np.arange(len(size))
    return ranks.reshape(-1, 1)


def _columns(snapshot: TableSnapshot, text: str | None) -> list[FoundColumn]:
    if text is None:
        revision = snapshot.latest_revision
        stored = [] if revision is None else [find_stored(snapshot.schema, column) for column in revision.columns]
        return [column for column in stored if column is not None]
    columns = []
    for name in column_names(text):
        column = find_column(snapshot.schema, name)
        if column is None:
            raise UnknownNameError.of("column", name, snapshot.schema.names, "columns")
        if not isinstance(column.data_type, _WITH_RANGES):
            accepted = "columns of numbers, dates, timestamps or strings, which have ranges in the statistics"
            raise InvalidArgumentError.of("columns", f"{name} of type {column.type_name}", accepted)
        if not column.is_nested and column.path[0] in snapshot.partition_columns:
            raise InvalidArgumentError.of("columns", name, "no partition columns; each partition has its own groups")
        columns.append(column)
    return columns


def _reason(file_set: FileSet, files: Boxes, runs: Sequence[tuple[int, ...]], *, is_cut: bool) -> Reason:
    """Why these files of a set are rewritten: those that overlap may be others of the set."""
    if file_set.reason is not Reason.OVERLAP:
        return file_set.reason
    members = [position for run in runs for position in run]
    if not has_overlap(files.low[members], files.high[members]):
        return Reason.SMALL
    return Reason.OVERLAP_CUT if is_cut else Reason.OVERLAP


def _runs(files: Boxes, members: Integers, desired_bytes: int) -> list[tuple[int, ...]]:
    """Divides files into runs of at most the desired size, each of neighbours; a larger file is alone."""
    if int(files.size[members].sum()) > desired_bytes:
        low, high = files.low[members], files.high[members]
        members = members[np.argsort(low[:, sweep_dimension(low, high)], kind="stable")]
    return [tuple(members[first:end].tolist()) for first, end in pieces(files.size[members], Limits(desired_bytes))]


def _depth(files: Boxes, runs: Sequence[tuple[int, ...]]) -> int:
    """How many of the boxes around runs a point lies in, at most: the smallest number over the dimensions."""
    corners = _around(files.low, runs, np.min), _around(files.high, runs, np.max)
    if np.isnan(corners[0]).any() or np.isnan(corners[1]).any():
        return len(runs)
    one: Integers = np.zeros(len(runs), np.int64)
    low, high = corners
    return min(int(depths(one, 1, low[:, n], high[:, n])[0]) for n in range(low.shape[1]))


def _around(corners: Floats, runs: Sequence[tuple[int, ...]], bound: Callable[..., Floats]) -> Floats:
    return np.array([bound(corners[list(run)], axis=0) for run in runs])
