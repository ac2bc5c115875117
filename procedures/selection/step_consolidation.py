"""StepConsolidation: runs of files that are neighbours in time become one file, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from catalog.columns.column_names import split_names
from catalog.counted_nouns import agreeing, counted
from catalog.errors import InvalidArgumentError
from catalog.files.file_table import Integers
from catalog.table.snapshot import TableSnapshot
from procedures.declare.declaration import Parameter
from procedures.groups.plan import FileGroup, FileRun, Selection
from procedures.groups.selection_strategy import (
    MAX_FILES_PER_GROUP,
    SelectionSettings,
    Selector,
    Strategy,
    check_least,
)
from procedures.selection.consolidation_steps import consolidation
from procedures.selection.file_division import division, is_large
from procedures.selection.named_files import FILES, NamedFilesSelector
from procedures.selection.step_candidates import Place, Scope, StepCandidates
from procedures.selection.step_runs import MOST_FILES_WITH_BOXES, StepPolicy
from procedures.selection.timestamps import WrittenTime, instant

NAME = "StepConsolidation"
MAX_FILE_BYTES = 1024 * 1024 * 1024
_START, _END = "timestamp_start", "timestamp_end"
_WITH_NAMED_FILES = ("columns", "max_file_bytes")
_TIME = "epoch milliseconds, or 'yyyy-MM-dd HH:mm:ss' in the session's time zone unless one follows."


class StepConsolidation(Strategy):
    """Consolidates the files of a place, which are of one revision, partition and band; see ``consolidation_steps``.

    A merged file has the rows of its files in the order in which they were written, without deleted rows. Indexed files
    keep their revision.
    """

    name: ClassVar[str] = NAME
    doc: ClassVar[str] = "Merges runs of files that are neighbours in time, step by step; any table has use for it."
    needs_index_columns: ClassVar[bool] = False
    options: ClassVar[tuple[Parameter, ...]] = (
        Parameter("steps", "INT", "Steps in each partition and band, at most.", None),
        Parameter("step_min_files", "INT", "Files that a step takes, at least 2.", 2),
        Parameter("step_max_files", "INT", "Files that a step takes, at most.", None),
        Parameter(
            "step_size_ratio", "DOUBLE", "Size of a file in proportion to that of a larger neighbour, at least.", 0.0
        ),
        Parameter(
            "amplification",
            "DOUBLE",
            "Volume of the box around the files of a step, at most, in multiples of the sum of their volumes; a step "
            f"takes at most {MOST_FILES_WITH_BOXES} files then.",
            None,
        ),
        Parameter(
            "purge_deleted", "BOOLEAN", "Whether to take files with deletion vectors, without deleted rows.", True
        ),
        Parameter(
            "max_file_bytes",
            "BIGINT",
            f"Bytes of a merged file, at most; {MAX_FILE_BYTES} by default. If it is set, a file of more than 1.5 "
            "times as many bytes is divided.",
            None,
        ),
        Parameter(_START, "STRING", f"Takes only files whose rows were written at this time or later: {_TIME}", None),
        Parameter(_END, "STRING", f"Takes only files whose rows were written at this time or earlier: {_TIME}", None),
        Parameter(
            "columns",
            "STRING",
            "Columns of the boxes, separated by commas; the indexed ones by default. Only with amplification or files.",
            None,
        ),
    )

    def check_options(self, options: Mapping[str, Any]) -> None:
        """See ``Strategy.check_options``."""
        policy_of(options)
        for name in (_START, _END):
            if options[name] is not None:
                WrittenTime.of(name, options[name])
        if options["columns"] is not None:
            if options["amplification"] is None:
                raise InvalidArgumentError.of(
                    "columns", options["columns"], "columns only together with amplification or files"
                )
            _check_columns(options["columns"])

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
        if options["columns"] is not None:
            _check_columns(options["columns"])

    def begin(self, settings: SelectionSettings) -> Selector:
        """See ``Strategy.begin``."""
        return (
            _StepSelector(settings)
            if settings.named_files is None
            else NamedFilesSelector(settings, NAME, settings.options["max_file_bytes"] or MAX_FILE_BYTES)
        )


def policy_of(options: Mapping[str, Any]) -> StepPolicy:
    """The policy that options ask for.

    Args:
        options: values of the strategy's options, all of them.

    Raises:
        InvalidArgumentError: a value out of its range.
    """
    check_least(options, {"steps": 1, "step_min_files": 2, "max_file_bytes": 1})
    least, most = options["step_min_files"], options["step_max_files"]
    if most is not None and most < least:
        raise InvalidArgumentError.of("step_max_files", most, f"a whole number of at least step_min_files = {least}")
    ratio, amplification = options["step_size_ratio"], options["amplification"]
    if not 0.0 <= ratio <= 1.0:
        raise InvalidArgumentError.of("step_size_ratio", ratio, "a number from 0 to 1")
    if amplification is not None and not 0.0 < amplification < float("inf"):
        raise InvalidArgumentError.of("amplification", amplification, "a finite number above 0")
    return StepPolicy(options["steps"], least, most, ratio, amplification, options["max_file_bytes"] or MAX_FILE_BYTES)


def _check_columns(text: str) -> None:
    try:
        entries = split_names(text)
    except ValueError as error:
        raise InvalidArgumentError.of("columns", text, f"names separated by commas; {error}") from error
    if not all(name and not kind for name, kind in entries):
        raise InvalidArgumentError.of("columns", text, "names of columns, separated by commas")


@dataclass(frozen=True)
class PlannedRun:
    """Files that become one.

    Attributes:
        place: their place.
        positions: of the files, in their order.
    """

    place: Place
    positions: tuple[int, ...]


def runs_of(files: StepCandidates, policy: StepPolicy, done: dict[Place, int]) -> Iterator[PlannedRun]:
    """The files that become one, place by place; pure but for ``done``.

    Args:
        files: files that may be taken; those without rows are left out.
        policy: which runs qualify.
        done: steps that were taken in each place before; those that are planned here are added.
    """
    for place, positions in files.places():
        of_place: Integers = positions[files.rows[positions] != 0]
        left = None if policy.steps is None else policy.steps - done.get(place, 0)
        consolidated = consolidation(files.step_files(of_place), replace(policy, steps=left))
        done[place] = done.get(place, 0) + len(consolidated.steps)
        for first, end in consolidated.results:
            for start in range(first, end, MAX_FILES_PER_GROUP):
                run = of_place[start : min(start + MAX_FILES_PER_GROUP, end)]
                if len(run) > 1:
                    yield PlannedRun(place, tuple(run.tolist()))


def groups_of(
    files: StepCandidates,
    policy: StepPolicy,
    most_bytes: int,
    done: dict[Place, int],
    retention_hours: float = 0.0,
    *,
    divided: StepCandidates | None = None,
) -> Iterator[FileGroup]:
    """The groups to rewrite; first those files that have no rows left, which are not read.

    Args:
        files: files that may be taken.
        policy: which runs qualify.
        most_bytes: bytes after which a group takes no further run.
        done: see ``runs_of``.
        retention_hours: how long the table keeps removed files, for people.
        divided: files of which the large ones are divided, at last; None if none is.
    """
    for revision in np.unique(files.revision).tolist():
        empty = np.flatnonzero((files.rows == 0) & (files.revision == revision))
        for start in range(0, len(empty), MAX_FILES_PER_GROUP):
            yield _removal(files, revision, empty[start : start + MAX_FILES_PER_GROUP], retention_hours)
    taken: list[PlannedRun] = []
    size = count = 0
    for run in runs_of(files, policy, done):
        is_elsewhere = bool(taken) and _commit_of(taken[0].place) != _commit_of(run.place)
        if taken and (is_elsewhere or size >= most_bytes or count + len(run.positions) > MAX_FILES_PER_GROUP):
            yield _group(files, taken)
            taken, size, count = [], 0, 0
        taken.append(run)
        size += int(files.size[list(run.positions)].sum())
        count += len(run.positions)
    if taken:
        yield _group(files, taken)
    if divided is not None and policy.max_bytes is not None:
        for position in range(len(divided)):
            if is_large(divided, position, policy.max_bytes):
                yield division(divided, position, policy.max_bytes, NAME)


def _commit_of(place: Place) -> tuple[int, str]:
    """Runs of one revision and partition are rewritten in one commit."""
    return place.revision_id, place.partition


def _removal(files: StepCandidates, revision_id: int, positions: Integers, retention_hours: float) -> FileGroup:
    chosen = tuple(files.input_file(int(position)) for position in positions)
    note = (
        f"removes {counted(len(chosen), 'file')} without a live row, which need not be read; vacuum deletes them after "
        f"{retention_hours:g} hours"
    )
    return FileGroup(NAME, revision_id, f"NO_ROWS_{len(chosen)}", chosen, note, runs=())


def _group(files: StepCandidates, taken: list[PlannedRun]) -> FileGroup:
    place = taken[0].place
    chosen = tuple(files.input_file(position) for run in taken for position in run.positions)
    runs = tuple(
        FileRun(
            tuple(str(files.path[position]) for position in run.positions),
            int(files.tier[list(run.positions)].max()) or None,
        )
        for run in taken
    )
    where = f" of partition {place.partition}" if place.partition else ""
    note = f"{counted(len(chosen), 'file')}{where} become {len(runs)}{_left_out(files.with_vectors)}"
    return FileGroup(NAME, place.revision_id, f"FILES_{len(chosen)}_TO_{len(runs)}", chosen, note, runs=runs)


def _left_out(files: int) -> str:
    if not files:
        return ""
    return f"; {counted(files, 'file')} with deletion vectors {agreeing(files, 'stays as it is', 'stay as they are')}"


class _StepSelector(Selector):
    """Looks at the table once, gives the groups one by one, and looks again when all are rewritten."""

    def __init__(self, settings: SelectionSettings) -> None:
        super().__init__(settings)
        self._policy = policy_of(settings.options)
        self._done: dict[Place, int] = {}
        self._version = -1
        self._groups: Iterator[FileGroup] = iter(())
        self._left_out = 0

    def select(self, snapshot: TableSnapshot) -> Selection:
        """See ``Selector.select``."""
        group = next(self._groups, None)
        if group is None and snapshot.version != self._version:
            self._version = snapshot.version
            files = self._candidates(snapshot)
            self._left_out = files.with_vectors
            limits = self.settings.bytes_per_iter, self._done, snapshot.retention_hours
            # Files that clustering never merges again are divided too.
            divides = self.settings.options["max_file_bytes"] is not None
            divided = StepCandidates.of(snapshot, self._scope(snapshot, isolated=True)) if divides else None
            self._groups = groups_of(files, self._policy, *limits, divided=divided)
            group = next(self._groups, None)
        if group is not None:
            return Selection(group)
        return Selection(note=f"{NAME}: no run of neighbours qualifies for a step{_left_out(self._left_out)}")

    def _candidates(self, snapshot: TableSnapshot) -> StepCandidates:
        files = StepCandidates.of(snapshot, self._scope(snapshot))
        return (
            files
            if self._policy.amplification is None
            else files.with_boxes(snapshot, self.settings.options["columns"])
        )

    def _scope(self, snapshot: TableSnapshot, *, isolated: bool = False) -> Scope:
        options = self.settings.options
        start, end = (
            None if options[name] is None else instant(snapshot.spark, name, options[name]).millis
            for name in (_START, _END)
        )
        if start is not None and end is not None and start > end:
            raise InvalidArgumentError.of(_END, options[_END], f"a time from {_START} = {options[_START]} on")
        return Scope(self.settings.revision_id, options["purge_deleted"], start, end, isolated)
