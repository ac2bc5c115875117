"""The consolidation plan of a table: its files by place, and what the groups of each place read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from pyspark.sql.types import DateType, NumericType, StringType, TimestampNTZType, TimestampType

from catalog.columns.column_names import FoundColumn, find_column, find_stored, split_names
from catalog.counted_nouns import agreeing, counted
from catalog.errors import InvalidArgumentError, UnknownNameError
from catalog.files.file_table import FileTable, Floats, Integers
from catalog.properties.index_properties import SAMPLE_FRACTIONS
from catalog.pruning.file_conditions import files_that_may_match
from catalog.pruning.row_predicate import RowPredicate
from catalog.state.plan_files import StoredGroup
from catalog.table.snapshot import TableSnapshot
from procedures.groups.boxes import Boxes
from procedures.groups.consolidation_plan import SMALL_SHARE
from procedures.groups.cutter import Limits
from procedures.groups.rewrite_groups import MOST_FILES, MOST_FILES_OUT, RewriteGroup, rewrite_groups
from procedures.selection.file_places import Place, Scope, candidates, places, with_ranges, without_ranges

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


@dataclass(frozen=True)
class PlannedGroup:
    """A group with a sentence for people."""

    stored: StoredGroup
    message: str


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


def planned_groups(snapshot: TableSnapshot, settings: PlanSettings) -> Iterator[PlannedGroup]:
    """The groups of a plan, place by place; reads metadata only.

    Files are grouped by the ranges of columns. In a table without an index and without ``columns`` small files that are
    neighbours in time are merged, and large files are divided.

    Args:
        snapshot: the table.
        settings: what the plan is for.

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
    number = 0
    for place, positions in places(files, SAMPLE_FRACTIONS.value(snapshot.configuration)):
        boxes = _boxes(files, positions, settings.max_file_bytes)
        limits = Limits(MOST_FILES_OUT * settings.max_file_bytes, MOST_FILES)
        for group in rewrite_groups(boxes, files.rows[positions], settings.max_file_bytes, limits):
            number += 1
            yield PlannedGroup(_stored(files, positions, place, group, number), _message(group, place, names))


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
            raise UnknownNameError.of("column", name, snapshot.schema.names)
        if not isinstance(column.data_type, _WITH_RANGES):
            accepted = "columns of numbers, dates, timestamps or strings, which have ranges in the statistics"
            raise InvalidArgumentError.of("columns", f"{name} of type {column.type_name}", accepted)
        if not column.is_nested and column.path[0] in snapshot.partition_columns:
            raise InvalidArgumentError.of("columns", name, "no partition columns; each partition has its own groups")
        columns.append(column)
    return columns


def _stored(files: FileTable, positions: Integers, place: Place, group: RewriteGroup, number: int) -> StoredGroup:
    chosen = [int(positions[position]) for run in group.runs for position in run]
    return StoredGroup(
        group_id=number,
        reason=group.reason,
        revision_id=place.revision_id,
        partition=place.partition,
        paths=tuple(str(files.path[position]) for position in chosen),
        vectors=tuple(str(files.deletion_vector[position]) for position in chosen),
        run_ends=tuple(np.cumsum([len(run) for run in group.runs]).tolist()),
        bytes=group.bytes,
        files_out=group.files_out,
        depth_before=group.depth_before,
        depth_after=group.depth_after,
    )


def _message(group: RewriteGroup, place: Place, names: Sequence[str]) -> str:
    where = f" of partition {place.partition}" if place.partition else ""
    count = sum(len(run) for run in group.runs)
    text = f"{counted(count, 'file')}{where} {agreeing(count, 'becomes', 'become')} {group.files_out}"
    if group.reason != "OVERLAP_CUT":
        return text
    along = [names[n] if n >= 0 and names else "time" for n in sorted(group.dimensions, reverse=True)]
    return (
        f"{text}; one of {group.parts} parts of a set of overlapping files, which is cut along {', '.join(along)}; "
        f"{counted(group.crossing, 'file')} {agreeing(group.crossing, 'reaches', 'reach')} across the cuts"
    )
