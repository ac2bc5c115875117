"""The quiet period of a run: it leaves files alone that statements of other sessions have read or written lately."""

from __future__ import annotations

from dataclasses import replace

from catalog.clock import Clock
from catalog.columns.column_names import FoundColumn, find_stored
from catalog.counted_nouns import agreeing, counted
from catalog.errors import ConcurrentChangeError
from catalog.files.file_table import FileTable
from catalog.insights.recent_statements import recent_statements
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from procedures.groups.active_files import active_files
from procedures.groups.group import Group, SkippedGroup
from procedures.groups.plan import CHANGED
from procedures.layout.step import Step, StepObserver


class QuietPeriod:
    """Finds the files of a table that are to be left alone.

    Args:
        table: the table.
        millis: how long there must have been no statement near a file; 0 = no file is left alone.
        clock: the time.
    """

    def __init__(self, table: ManagedTable, millis: int, clock: Clock) -> None:
        self._table = table
        self._millis = millis
        self._clock = clock

    def active_paths(self, snapshot: TableSnapshot) -> frozenset[str]:
        """Returns the paths of the files that are to be left alone; no Spark job, if the table has been indexed.

        Args:
            snapshot: the newest version, with all its files.
        """
        if not self._millis:
            return frozenset()
        columns = _columns(snapshot)
        statements = recent_statements(snapshot, columns, self._clock.now() - self._millis)
        if not statements:
            return frozenset()
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
        note = (
            f"{counted(count, 'file')} {agreeing(count, 'is', 'are')} left: in the last {self._millis / 1000:g} s, "
            "statements of other sessions changed files near"
        )
        return SkippedGroup("", CHANGED, count, int(sizes.sum()), note)

    def guarded(self, group: Group, observe: StepObserver) -> StepObserver:
        """An observer of a rewrite that ends it before its commit if statements have come near its files meanwhile.

        Args:
            group: that is rewritten.
            observe: the observer that is called first.
        """

        def observer(step: Step) -> None:
            observe(step)
            if step is Step.COMMIT and self._millis:
                active = self.active_paths(self._table.snapshot())
                if not active.isdisjoint(file.path for file in group.files):
                    raise ConcurrentChangeError("Statements changed files near those of the group while it was written")

        return observer


def _columns(snapshot: TableSnapshot) -> list[FoundColumn | None]:
    """The columns whose ranges tell which files a statement reads."""
    names = snapshot.ranged_columns
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
