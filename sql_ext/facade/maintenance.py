"""``table.maintenance``: methods that change a table."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from catalog.errors import UseError
from catalog.settings.strategy_options import DEFAULT_FILE_BYTES
from procedures.calls.cancel import CANCEL, CancelRow
from procedures.calls.check import CHECK
from procedures.calls.compact import COMPACT
from procedures.calls.consolidate_log import CONSOLIDATE_LOG
from procedures.calls.drop_index import DROP_INDEX
from procedures.calls.index import INDEX, IndexRow
from procedures.calls.optimize import OPTIMIZE
from procedures.calls.plan import PLAN, PlanRow
from procedures.calls.protect import PROTECT
from procedures.calls.purge import PURGE
from procedures.calls.quantiles import QUANTILES_PROCEDURE, QuantilesRow
from procedures.calls.resume import RESUME
from procedures.calls.suspend import SUSPEND
from procedures.calls.unprotect import UNPROTECT
from procedures.calls.vacuum import VACUUM
from procedures.insight.checking.problem import CheckRow
from procedures.lifecycle.log.consolidation import ConsolidateLogRow
from sql_ext.facade.operation_methods import operation_method, rows_of, with_arguments_of
from sql_ext.facade.session_access import status_rows

_UNKNOWN_RUN = "USE_UNKNOWN_RUN"


@dataclass(frozen=True)
class Maintenance:
    """Operations on a table, which return typed rows.

    Each method looks up the table and raises ``UseError`` if it does not exist.

    Attributes:
        spark: session that it uses.
        name: full name of the table.
    """

    spark: SparkSession
    name: str

    @with_arguments_of(INDEX)
    def index(
        self,
        columns: str,
        *,
        cube_size: int | None = None,
        target_file_bytes: int | None = None,
        column_stats: str | None = None,
    ) -> IndexRow:
        """Sets the index properties of the table. No data file changes; ``optimize`` indexes the existing files.

        Raises:
            UseError: a column does not exist or cannot be indexed, or a concurrent commit conflicts; no property was
                set.
        """
        return rows_of(
            self.spark,
            INDEX,
            self.name,
            columns,
            cube_size=cube_size,
            target_file_bytes=target_file_bytes,
            column_stats=column_stats,
        )

    drop_index = operation_method(DROP_INDEX)
    optimize = operation_method(OPTIMIZE)
    compact = operation_method(COMPACT)
    vacuum = operation_method(VACUUM)
    purge = operation_method(PURGE)
    protect = operation_method(PROTECT)
    unprotect = operation_method(UNPROTECT)

    @with_arguments_of(CONSOLIDATE_LOG)
    def consolidate_log(
        self,
        *,
        modes: list[str] | tuple[str, ...] | None = None,
        timestamp_start: str | None = None,
        timestamp_end: str | None = None,
        dry_run: bool = False,
    ) -> list[ConsolidateLogRow]:
        """Makes the log quick to load: a checkpoint, statistics and tags of files, old revisions, events.

        Returns:
            A row per mode, with what a new session reads to load the table before and after.

        Raises:
            UseError: an argument is invalid, or another run optimizes the table; modes before are done.
        """
        return rows_of(
            self.spark,
            CONSOLIDATE_LOG,
            self.name,
            modes=modes,
            timestamp_start=timestamp_start,
            timestamp_end=timestamp_end,
            dry_run=dry_run,
        )

    @with_arguments_of(CHECK)
    def repair(self, *, deep: bool = False) -> list[CheckRow]:
        """Removes the index tags of files with errors: ``use.check`` with ``repair``.

        This is one commit without data change. ``optimize`` then indexes these files again.

        Returns:
            The problems, as in ``inspect.check``, and a summary.

        Raises:
            UseError: a concurrent commit conflicts, or the table does not exist.
        """
        return rows_of(self.spark, CHECK, self.name, deep=deep, repair=True)

    @with_arguments_of(PLAN)
    def store_consolidation_plan(
        self, *, max_file_bytes: int = DEFAULT_FILE_BYTES, columns: str | None = None, where: str | None = None
    ) -> list[PlanRow]:
        """Plans which files to rewrite together, and stores the plan below the table, for ``optimize(plan=…)``.

        Returns:
            A row per group, each with the id of the plan.

        Raises:
            UseError: an argument is invalid, or nothing can be written below the table.
        """
        return rows_of(
            self.spark, PLAN, self.name, max_file_bytes=max_file_bytes, columns=columns, where=where, store=True
        )

    @with_arguments_of(QUANTILES_PROCEDURE)
    def store_quantiles(self, column: str, *, n: int = 50, relative_error: float = 0.01) -> list[QuantilesRow]:
        """Estimates quantiles and stores them in ``use.index.columnStats``: ``use.quantiles`` with ``store``.

        Raises:
            UseError: an argument is invalid, or a concurrent commit conflicts; nothing was stored.
        """
        return rows_of(
            self.spark, QUANTILES_PROCEDURE, self.name, column, n=n, relative_error=relative_error, store=True
        )

    def cancel(self, id: str | None = None) -> list[CancelRow]:  # noqa: A002, as SQL names it
        """Asks runs on this table to stop at their next boundary between groups. Committed groups stay.

        Args:
            id: id of the run, as in ``inspect.status``; all runs on this table by default, in all processes.

        Returns:
            The runs that were asked to stop, possibly none.

        Raises:
            UseError: this table has no such run, or a process that has it cannot be asked.
        """
        if id is not None:
            return rows_of(self.spark, CANCEL, id, self.name)
        runs = [row.run_id for row in status_rows(self.spark, self.name) if row.run_id and row.current is not None]
        return [row for run in runs for row in self._cancel_if_running(run)]

    suspend = operation_method(SUSPEND)
    resume = operation_method(RESUME)

    def _cancel_if_running(self, run: str) -> list[CancelRow]:
        try:
            return rows_of(self.spark, CANCEL, run, self.name)
        except UseError as error:
            if error.code != _UNKNOWN_RUN:
                raise
            return []  # the run has ended in the meantime
