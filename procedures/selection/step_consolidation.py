"""StepConsolidation: runs of files that are neighbours in time become one file, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar

import numpy as np

from catalog.columns.column_names import split_names
from catalog.counted_nouns import agreeing, counted
from catalog.errors import InvalidArgumentError
from catalog.files.arrays import Integers
from catalog.files.file_table import FileTable
from catalog.properties.index_properties import SAMPLE_FRACTIONS
from catalog.settings.setting import TEXT, Setting
from catalog.settings.strategy_options import (
    AMPLIFICATION,
    BOX_COLUMNS,
    DEFAULT_FILE_BYTES,
    MAX_FILE_BYTES,
    PURGE_DELETED,
    STEP_MAX_FILES,
    STEP_MIN_FILES,
    STEP_OPTIONS,
    STEP_SIZE_RATIO,
    STEPS,
)
from catalog.table.snapshot import TableSnapshot
from procedures.declare.option import option
from procedures.declare.signature import Parameter
from procedures.groups.boxes import Boxes
from procedures.groups.cutter import Limits, pieces
from procedures.groups.group import Concatenate, FileRun, InputFile
from procedures.groups.strategy import Finding, SelectionSettings, Strategy, TableFiles
from procedures.selection.consolidation_steps import consolidation
from procedures.selection.file_division import division, large_files
from procedures.selection.file_places import Place, Scope, candidates, places, with_boxes, without_ranges
from procedures.selection.named_files import FILES, groups_of_named_files
from procedures.selection.step_runs import StepPolicy
from procedures.selection.timestamps import WrittenTime, instant

NAME = "StepConsolidation"
_WITH_NAMED_FILES = (BOX_COLUMNS.name, MAX_FILE_BYTES.name)
_TIME = "epoch milliseconds, or 'yyyy-MM-dd HH:mm:ss' in the session's time zone unless one follows."
_START = Setting(
    "timestamp_start",
    TEXT,
    f"Takes only files whose rows were written at this time or later: {_TIME}",
    check=WrittenTime.of,
)
_END = Setting(
    "timestamp_end",
    TEXT,
    f"Takes only files whose rows were written at this time or earlier: {_TIME}",
    check=WrittenTime.of,
)


class StepConsolidation(Strategy):
    """Consolidates the files of a place, which are of one revision, partition and band; see ``consolidation_steps``.

    A merged file has the rows of its files in the order in which they were written, without deleted rows. Indexed files
    keep their revision.
    """

    name: ClassVar[str] = NAME
    doc: ClassVar[str] = "Merges runs of files that are neighbours in time, step by step; any table has use for it."
    needs_index_columns: ClassVar[bool] = False
    options: ClassVar[tuple[Parameter, ...]] = (*map(option, STEP_OPTIONS), option(_START), option(_END))

    def check_options(self, options: Mapping[str, Any]) -> None:
        """See ``Strategy.check_options``."""
        policy_of(options)
        columns = options[BOX_COLUMNS.name]
        if columns is not None:
            if options[AMPLIFICATION.name] is None:
                raise InvalidArgumentError.of(
                    BOX_COLUMNS.name, columns, "columns only together with amplification or files"
                )
            _check_columns(columns)

    def check_named_files(self, names: Sequence[str], texts: Mapping[str, str], options: Mapping[str, Any]) -> None:
        """See ``Strategy.check_named_files``."""
        if len(names) < 2:
            raise InvalidArgumentError.of(FILES, f"array('{names[0]}')", f"two files or more, which {NAME} joins")
        for name in texts:
            if name not in _WITH_NAMED_FILES:
                counting = " and ".join(_WITH_NAMED_FILES)
                accepted = f"nothing together with files, all of which are joined; only {counting} count then"
                raise InvalidArgumentError.of(name, texts[name], accepted)
        policy_of(options)
        if options[BOX_COLUMNS.name] is not None:
            _check_columns(options[BOX_COLUMNS.name])

    def groups(self, table: TableFiles, settings: SelectionSettings) -> Iterator[Finding]:
        """See ``Strategy.groups``; with the option ``steps``, a place has so many steps in a run."""
        options, policy, snapshot = settings.options, policy_of(settings.options), table.snapshot
        if settings.named_files is not None:
            max_bytes = options[MAX_FILE_BYTES.name] or DEFAULT_FILE_BYTES
            yield from groups_of_named_files(table, settings, NAME, max_bytes)
            return
        files, left_out = candidates(snapshot, _scope(snapshot, settings))
        if policy.steps is not None and table.run.first is not None:
            # The steps of the other places are taken.
            files = files.take(np.flatnonzero(files.with_paths(table.run.failed)))
        has_boxes = policy.amplification is not None and len(files)
        files = with_boxes(files, snapshot, options[BOX_COLUMNS.name]) if has_boxes else without_ranges(files)
        yield from groups_of(
            files,
            policy,
            settings.bytes_per_iter,
            SAMPLE_FRACTIONS.value(snapshot.settings),
            snapshot.retention_hours,
            left_out,
        )
        if options[MAX_FILE_BYTES.name] is not None:
            # Files that clustering never merges again are divided too.
            files, _ = candidates(snapshot, _scope(snapshot, settings, isolated=True))
            for position in large_files(files, options[MAX_FILE_BYTES.name]).tolist():
                yield division(files, position, options[MAX_FILE_BYTES.name], NAME)
        yield f"{NAME}: no run of neighbours qualifies for a step{_left_out(left_out)}"


def _scope(snapshot: TableSnapshot, settings: SelectionSettings, *, isolated: bool = False) -> Scope:
    options = settings.options
    start, end = (
        None if options[name] is None else instant(snapshot.spark, name, options[name]).millis
        for name in (_START.name, _END.name)
    )
    if start is not None and end is not None and start > end:
        accepted = f"a time from {_START.name} = {options[_START.name]} on"
        raise InvalidArgumentError.of(_END.name, options[_END.name], accepted)
    return Scope(settings.revision_id, options[PURGE_DELETED.name], start, end, isolated)


def policy_of(options: Mapping[str, Any]) -> StepPolicy:
    """The policy that options ask for.

    Args:
        options: values of the strategy's options, all of them.

    Raises:
        InvalidArgumentError: the greatest number of files of a step is below the least.
    """
    least, most = options[STEP_MIN_FILES.name], options[STEP_MAX_FILES.name]
    if most is not None and most < least:
        accepted = f"a whole number of at least {STEP_MIN_FILES.name} = {least}"
        raise InvalidArgumentError.of(STEP_MAX_FILES.name, most, accepted)
    return StepPolicy(
        options[STEPS.name],
        least,
        most,
        options[STEP_SIZE_RATIO.name],
        options[AMPLIFICATION.name],
        options[MAX_FILE_BYTES.name] or DEFAULT_FILE_BYTES,
    )


def _check_columns(text: str) -> None:
    try:
        entries = split_names(text)
    except ValueError as error:
        raise InvalidArgumentError.of(BOX_COLUMNS.name, text, f"names separated by commas; {error}") from error
    if not all(name and not kind for name, kind in entries):
        raise InvalidArgumentError.of(BOX_COLUMNS.name, text, "names of columns, separated by commas")


@dataclass(frozen=True)
class PlannedRun:
    """Files that become one.

    Attributes:
        place: their place.
        positions: of the files, in their order.
    """

    place: Place
    positions: tuple[int, ...]


def runs_of(files: FileTable, policy: StepPolicy, fractions: Sequence[float] = ()) -> Iterator[PlannedRun]:
    """The files that become one, place by place; pure.

    Args:
        files: files that may be taken, by time; those without rows are left out.
        policy: which runs qualify.
        fractions: samples for which bands end.
    """
    for place, positions in places(files, fractions):
        of_place: Integers = positions[files.rows[positions] != 0]
        for first, end in consolidation(Boxes.of(files, of_place), policy).results:
            result = of_place[first:end]
            for start, stop in pieces(files.size[result], Limits(None)):
                run = result[start:stop]
                if len(run) > 1:
                    yield PlannedRun(place, tuple(run.tolist()))


def groups_of(
    files: FileTable,
    policy: StepPolicy,
    most_bytes: int,
    fractions: Sequence[float] = (),
    retention_hours: float = 0.0,
    left_out: int = 0,
) -> Iterator[Concatenate]:
    """The groups to rewrite; first those files that have no rows left, which are not read.

    Args:
        files: files that may be taken, by time.
        policy: which runs qualify.
        most_bytes: bytes after which a group takes no further run.
        fractions: samples for which bands end.
        retention_hours: how long the table keeps removed files, for people.
        left_out: files that may not be taken because they have deletion vectors, for people.
    """
    for revision in np.unique(files.revision).tolist():
        empty = np.flatnonzero((files.rows == 0) & (files.revision == revision))
        for first, end in pieces(files.size[empty], Limits(None)):
            yield _removal(files, revision, empty[first:end], retention_hours)
    for _, runs in groupby(runs_of(files, policy, fractions), key=lambda run: _commit_of(run.place)):
        of_commit = list(runs)
        size = np.array([files.size[list(run.positions)].sum() for run in of_commit], np.int64)
        counts = np.array([len(run.positions) for run in of_commit], np.int64)
        for first, end in pieces(size, Limits(most_bytes), crossing=True, files=counts):
            yield _group(files, of_commit[first:end], left_out)


def _commit_of(place: Place) -> tuple[int, str]:
    """Runs of one revision and partition are rewritten in one commit."""
    return place.revision_id, place.partition


def _removal(files: FileTable, revision_id: int, positions: Integers, retention_hours: float) -> Concatenate:
    chosen = InputFile.of(files, positions)
    note = (
        f"removes {counted(len(chosen), 'file')} without a live row, which need not be read; vacuum deletes them after "
        f"{retention_hours:g} hours"
    )
    return Concatenate(NAME, revision_id, f"NO_ROWS_{len(chosen)}", chosen, note, runs=())


def _group(files: FileTable, taken: Sequence[PlannedRun], left_out: int) -> Concatenate:
    place = taken[0].place
    chosen = InputFile.of(files, [position for run in taken for position in run.positions])
    runs = tuple(FileRun.of(files, run.positions) for run in taken)
    where = f" of partition {place.partition}" if place.partition else ""
    note = f"{counted(len(chosen), 'file')}{where} become {len(runs)}{_left_out(left_out)}"
    return Concatenate(NAME, place.revision_id, f"FILES_{len(chosen)}_TO_{len(runs)}", chosen, note, runs=runs)


def _left_out(files: int) -> str:
    if not files:
        return ""
    return f"; {counted(files, 'file')} with deletion vectors {agreeing(files, 'stays as it is', 'stay as they are')}"
