"""What one run of ``optimize`` remembers while it selects files: its selectors, and the files it was restricted to."""

from __future__ import annotations

from collections.abc import Iterator

from catalog.pruning.file_conditions import files_that_may_match
from catalog.table.named_files import find_files
from catalog.table.snapshot import TableSnapshot
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.selection import Selector, Strategy


class RunSelection:
    """The selectors of one run, one per strategy, in the order in which they are asked for files."""

    def __init__(self, settings: OptimizeSettings) -> None:
        """Begins a selector for each strategy.

        Args:
            settings: what the run was asked to do.
        """
        self._settings = settings
        self._selectors = [(s, s.begin(settings.selection[s.name])) for s in settings.strategies]
        self._named_paths: tuple[str, ...] | None = None

    def __iter__(self) -> Iterator[tuple[Strategy, Selector]]:
        """Each strategy with its selector."""
        return iter(self._selectors)

    def limit_batches(self, most_bytes: int | None) -> None:
        """Makes batches smaller, for the strategies that make progress with any number of files.

        Args:
            most_bytes: bytes of files that an iteration takes, at most; the crossing file is taken too. None lifts the
                limit.
        """
        for _, selector in self._selectors:
            selector.limit_batches(most_bytes)

    def restricted(self, snapshot: TableSnapshot) -> TableSnapshot:
        """The snapshot with the files that may be chosen.

        Raises:
            UnknownNameError: ``files`` names one that the table did not have when the run began, or ``where`` a column
                that it does not have.
            InvalidArgumentError: ``where`` is no condition over the table's columns.
        """
        files, where = self._settings.files, self._settings.where
        if files is not None:
            if self._named_paths is None:  # Later snapshots no longer have the files that this run has rewritten.
                self._named_paths = find_files(snapshot, files)
            snapshot = snapshot.only_paths(self._named_paths)
        if where is not None:
            spark, schema = snapshot.spark, snapshot.schema
            where.check(spark, schema)
            snapshot = snapshot.only(files_that_may_match(spark, schema, snapshot.partition_columns, where))
        return snapshot
