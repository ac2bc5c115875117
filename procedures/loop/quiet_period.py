"""The quiet period of a run: it leaves files alone that statements of other sessions have read or written lately."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from catalog.clock import Clock
from catalog.columns.column_names import FoundColumn, find_stored
from catalog.counted_nouns import agreeing, counted
from catalog.errors import ConcurrentChangeError
from catalog.files.file_table import FileTable
from catalog.insights.recent_statements import Statement, recent_statements
from catalog.insights.statement_pace import longest_pause
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from procedures.declare.runs import Run
from procedures.groups.active_files import active_files, conflicts_anywhere
from procedures.groups.group import Group, SkippedGroup
from procedures.groups.plan import CHANGED
from procedures.layout.step import Step
from procedures.loop.commit_gate import LEAST_PAUSE_MILLIS, CommitGate
from procedures.rewrite.results import RewriteContext

T = TypeVar("T")


class QuietPeriod:
    """Finds the files of a table that are to be left alone.

    Args:
        table: the table.
        millis: how long there must have been no statement near a file.
        run: whose request to stop ends a wait.
        clock: the time.
    """

    def __init__(self, table: ManagedTable, millis: int, run: Run, clock: Clock) -> None:
        self._table = table
        self._millis = millis
        self._run = run
        self._clock = clock

    def active_paths(self, snapshot: TableSnapshot) -> frozenset[str]:
        """Returns the paths of the files that are to be left alone; no Spark job, if the table has been indexed.

        Args:
            snapshot: the newest version, with all its files.
        """
        statements = self._statements(snapshot)
        return self._active_among(snapshot, statements) if statements else frozenset()

    def _active_among(self, snapshot: TableSnapshot, statements: tuple[Statement, ...]) -> frozenset[str]:
        if conflicts_anywhere(statements, snapshot.partition_columns):
            pause = longest_pause([statement.span for statement in statements])
            if pause is not None and pause < LEAST_PAUSE_MILLIS:
                return frozenset(snapshot.file_table.path.tolist())
        columns = _columns(snapshot)
        files = _with_ranges(snapshot, columns)
        names = [column.path[0] if column is not None else "" for column in columns]
        active = active_files(files, statements, names, snapshot.partition_columns)
        return frozenset(files.path[active].tolist())

    def skipped(self, files: FileTable, active: frozenset[str]) -> SkippedGroup | None:
        """The files that a run leaves alone, for its report; None without any.

        Args:
            files: those that it may choose from.
            active: see ``active_paths``.
        """
        sizes = files.size[files.with_paths(active)]
        count = len(sizes)
        if not count:
            return None
        cause = f"changed {agreeing(count, 'it', 'them')} or files in the same range"
        if count == len(files):
            cause += ", or leave no pause in which a rewrite fails none"
        note = (
            f"{counted(count, 'file')} {agreeing(count, 'is', 'are')} left: statements of the last "
            f"{self._millis / 1000:g} s {cause}"
        )
        return SkippedGroup("", CHANGED, count, int(sizes.sum()), note)

    def guarded(self, group: Group, context: RewriteContext) -> RewriteContext:
        """The context of a rewrite that waits with its commit until it fails no statement.

        Args:
            group: that is rewritten.
            context: of the rewrite.
        """
        gate: CommitGate | None = None

        def observe(step: Step) -> None:
            nonlocal gate
            context.observe(step)
            if step is Step.COMMIT and (gate := self._gate(group)) is not None:
                self._waiting(gate.wait_for_statement)

        def hold(version: int) -> int:
            return version if gate is None else self._waiting(partial(gate.wait_for_pause, version))

        return replace(context, observe=observe, hold=hold)

    def _gate(self, group: Group) -> CommitGate | None:
        """What the commit of a group has to wait for.

        Raises:
            ConcurrentChangeError: statements have come near the files of the group since it was planned.
        """
        snapshot = self._table.snapshot()
        statements = self._statements(snapshot)
        if not statements:
            return None
        if not self._active_among(snapshot, statements).isdisjoint(file.path for file in group.files):
            raise ConcurrentChangeError("Statements changed files near those of the group while it was written")
        if not conflicts_anywhere(statements, snapshot.partition_columns):
            return None
        return CommitGate(snapshot, statements, self._millis, self._run, self._clock)

    def _waiting(self, wait: Callable[[], T]) -> T:
        before, self._run.current = self._run.current, "waiting for the end of a statement of another session"
        try:
            return wait()
        finally:
            self._run.current = before

    def _statements(self, snapshot: TableSnapshot) -> tuple[Statement, ...]:
        return recent_statements(snapshot, _columns(snapshot), self._clock.now() - self._millis)


def _columns(snapshot: TableSnapshot) -> list[FoundColumn | None]:
    """The columns whose ranges tell which files a statement reads."""
    names = snapshot.reader.ranged_columns
    if not names and (configuration := snapshot.index_configuration) is not None:
        names = tuple(transformer.column for transformer in configuration.transformers)
    return [find_stored(snapshot.schema, name) for name in names]


def _with_ranges(snapshot: TableSnapshot, columns: list[FoundColumn | None]) -> FileTable:
    files = snapshot.file_table
    if files.low.shape[1] == len(columns) or not len(files):
        return files
    # Before the first indexing, the list of files has no ranges.
    low, high = snapshot.ranges_of(files.path, columns)
    return replace(files, low=low, high=high)
