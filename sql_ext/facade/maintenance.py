"""``table.maintenance``: methods that change a table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from pyspark.sql import SparkSession

from catalog.errors import UnknownNameError, UseError
from procedures.calls.cancel import CANCEL
from procedures.calls.resume import RESUME
from procedures.calls.suspend import SUSPEND
from procedures.declare.result_rows import (
    CancelRow,
    CheckRow,
    ConsolidateLogRow,
    DropIndexRow,
    IndexRow,
    OptimizeRow,
    PlanRow,
    ProtectRow,
    PurgeRow,
    QuantilesRow,
    UnprotectRow,
    VacuumRow,
)
from sql_ext.facade.operation_methods import operation_method
from sql_ext.facade.session_access import consolidation_plan, report, status_rows

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

    def index(
        self,
        columns: str,
        *,
        cube_size: int | None = None,
        target_file_bytes: int | None = None,
        column_stats: str | None = None,
    ) -> IndexRow:
        """Sets the index properties of the table. No data file changes; ``optimize`` indexes the existing files.

        Args:
            columns: column names separated by commas, such as ``a,b:hashing``.
            cube_size: rows per inner cube; None does not change the property.
            target_file_bytes: target size of data files; None does not change the property.
            column_stats: known ranges as JSON, such as ``{"a_min": 0, "a_max": 100}``; None does not change the
                property.

        Raises:
            UseError: a column does not exist or cannot be indexed, or a concurrent commit conflicts; no property was
                set.
        """
        return report(
            self.spark,
            IndexRow,
            "index",
            table=self.name,
            columns=columns,
            cube_size=cube_size,
            target_file_bytes=target_file_bytes,
            column_stats=column_stats,
            convert=False,
        )[0]

    def drop_index(self) -> DropIndexRow:
        """Removes the index: its properties and the tags of the files. Rows and files stay as they are.

        Raises:
            UseError: the table has no index.
        """
        return report(self.spark, DropIndexRow, "drop_index", table=self.name)[0]

    def optimize(
        self,
        *,
        strategy: str | None = None,
        revision_id: int | None = None,
        bytes_per_iter: int | None = None,
        max_iterations: int | None = None,
        max_bytes: int | None = None,
        max_duration: str | None = None,
        where: str | None = None,
        files: list[str] | tuple[str, ...] | None = None,
        revision_rewrite: bool = False,
        parallelism: int = 1,
        dry_run: bool = False,
        options: dict[str, str] | None = None,
        plan: str | None = None,
        groups: list[int] | tuple[int, ...] | None = None,
    ) -> list[OptimizeRow]:
        """Indexes unindexed files and merges fragmented cubes, group by group, each in one commit.

        In the driver, Ctrl-C lets the current groups commit and starts no further group.

        Args:
            strategy: one or more strategies, separated by commas, in order of priority; UnindexedFiles,
                LeveledCompaction, SortedRunCompaction by default.
            revision_id: revision to compact or to rewrite; 0 for unindexed files only. The newest by default.
            bytes_per_iter: an iteration takes files until their total size exceeds this number of bytes, including the
                last file; 1,000,000,000 by default, and ``batch_bytes`` for the strategies that have this option.
            max_iterations: maximum number of groups to commit.
            max_bytes: starts no further group after this many bytes were rewritten.
            max_duration: starts no further group after this time, such as ``10 minutes``.
            where: rewrites only files that may contain rows that match this predicate.
            files: rewrites only these files, with paths as in ``inspect.index_files``.
            revision_rewrite: first indexes the files of ``revision_id``, or of every older revision, again.
            parallelism: groups rewritten at the same time.
            dry_run: shows the next groups and changes nothing, like ``inspect.plan``.
            options: options of the strategies, such as ``{"batch_bytes": "500000000"}``.
            plan: rewrites groups of this stored plan, in place of what strategies choose.
            groups: with ``plan``: only these groups; all unfinished ones by default.

        Returns:
            A row per group and outcome.

        Raises:
            UseError: an argument is invalid or the table cannot be optimized, before any data is read; or a group
                failed for a reason other than a conflict. Earlier commits stay.
        """
        return report(
            self.spark,
            OptimizeRow,
            "optimize",
            table=self.name,
            strategy=strategy,
            revision_id=revision_id,
            bytes_per_iter=bytes_per_iter,
            max_iterations=max_iterations,
            max_bytes=max_bytes,
            max_duration=max_duration,
            where=where,
            files=files,
            revision_rewrite=revision_rewrite,
            parallelism=parallelism,
            dry_run=dry_run,
            options=options,
            plan=plan,
            groups=groups,
        )

    def compact(
        self,
        *,
        min_deleted_ratio: float = 0.05,
        min_deleted_rows: int | None = None,
        primary_key: list[str] | tuple[str, ...] | None = None,
        order_by: str | None = None,
        ties: str = "all",
        where: str | None = None,
        bytes_per_iter: int | None = None,
        max_iterations: int | None = None,
        max_bytes: int | None = None,
        max_duration: str | None = None,
        parallelism: int = 1,
        dry_run: bool = False,
    ) -> list[OptimizeRow]:
        """Rewrites files without their deleted rows; with ``primary_key``, only the latest row of each key stays.

        Tables need no index for it.

        Args:
            min_deleted_ratio: rewrites a file if deletion vectors hide more than this share of its rows.
            min_deleted_rows: also rewrites a file if so many of its rows are hidden.
            primary_key: columns that together name a row. Of the rows of one key only the latest stays.
            order_by: with ``primary_key``, the column whose greatest value is the latest.
            ties: with ``primary_key``, whether ``all`` rows with the greatest value of a key stay, or ``any`` one.
            where: rewrites only files that may contain rows that match this predicate.
            bytes_per_iter: bytes of files rewritten in a commit; 1,000,000,000 by default.
            max_iterations: maximum number of commits.
            max_bytes: starts no further group after this many bytes were rewritten.
            max_duration: starts no further group after this time, such as ``10 minutes``.
            parallelism: groups rewritten at the same time.
            dry_run: shows what would be read, written and freed, and changes nothing.

        Returns:
            A row per group and outcome.

        Raises:
            UseError: an argument is invalid, before any data is read; or a group failed for a reason other than a
                conflict. Earlier commits stay.
        """
        return report(
            self.spark,
            OptimizeRow,
            "compact",
            table=self.name,
            min_deleted_ratio=min_deleted_ratio,
            min_deleted_rows=min_deleted_rows,
            primary_key=primary_key,
            order_by=order_by,
            ties=ties,
            where=where,
            bytes_per_iter=bytes_per_iter,
            max_iterations=max_iterations,
            max_bytes=max_bytes,
            max_duration=max_duration,
            parallelism=parallelism,
            dry_run=dry_run,
        )

    def vacuum(
        self,
        *,
        retention_hours: float | None = None,
        dry_run: bool = False,
        mode: str = "full",
        inventory: str | None = None,
        force: bool = False,
        parallelism: int | None = None,
        max_files_per_second: float | None = None,
    ) -> list[VacuumRow]:
        """Deletes files that the table no longer references and that are older than the retention.

        Args:
            retention_hours: keeps files deleted within this many hours; by default the table's own retention.
            dry_run: lists the files that would be deleted, and deletes nothing.
            mode: ``full`` lists the directory; ``lite`` uses the log only.
            inventory: table, or path of a Delta or Parquet table, that lists the existing files; replaces the listing.
            force: allows a retention below the table's own.
            parallelism: number of concurrent tasks that list and delete files; 4 per core by default.
            max_files_per_second: deletes at most this many files per second; by default without a limit.

        Returns:
            A row per reason with the totals, and a row with what is kept; in a dry run, a row per file.

        Raises:
            UseError: an argument is invalid, or the retention is too short; nothing was deleted.
        """
        return report(
            self.spark,
            VacuumRow,
            "vacuum",
            table=self.name,
            retention_hours=retention_hours,
            dry_run=dry_run,
            mode=mode,
            inventory=inventory,
            force=force,
            parallelism=parallelism,
            max_files_per_second=max_files_per_second,
        )

    def purge(
        self,
        *,
        older_than: str | int | timedelta | datetime | date | None = None,
        dry_run: bool = False,
        force: bool = False,
    ) -> list[PurgeRow]:
        """Deletes history that is older than a limit: deleted rows, files, log entries and events.

        Args:
            older_than: an interval, a time, or the number of a version: that version, or the newest one at that time,
                and later ones stay; ``use.retention.hours`` or else the table's own retention by default.
            dry_run: shows what would be deleted and lost, and changes nothing.
            force: allows a limit below the table's own retention.

        Returns:
            A row per step, a row per protected version, and a last row with the versions that are lost.

        Raises:
            UseError: an argument is invalid, the limit is too short, a protection cannot be read, or the table is
                being optimized; no file was deleted.
        """
        return report(
            self.spark, PurgeRow, "purge", table=self.name, older_than=older_than, dry_run=dry_run, force=force
        )

    def protect(self, version: int, name: str) -> ProtectRow:
        """Keeps a version readable: ``purge`` and ``vacuum`` keep its files until ``unprotect``.

        Args:
            version: the version.
            name: of the protection: letters, digits, ``.``, ``_`` and ``-``, used once per table.

        Raises:
            UseError: the version does not exist or was reclaimed, or the name is invalid or used already.
        """
        return report(self.spark, ProtectRow, "protect", table=self.name, version=version, name=name)[0]

    def unprotect(self, name: str) -> UnprotectRow:
        """Ends the protection of a version.

        Args:
            name: of the protection.

        Raises:
            UseError: there is no protection of this name.
        """
        return report(self.spark, UnprotectRow, "unprotect", table=self.name, name=name)[0]

    def consolidate_log(
        self,
        *,
        modes: list[str] | tuple[str, ...] | None = None,
        timestamp_start: str | None = None,
        timestamp_end: str | None = None,
        dry_run: bool = False,
    ) -> list[ConsolidateLogRow]:
        """Makes the log quick to load: a checkpoint, statistics and tags of files, old revisions, events.

        Args:
            modes: any of ``table_metadata``, ``file_metadata``, ``events`` and ``commits``; the last two by default.
            timestamp_start: considers files and events of this time or later.
            timestamp_end: considers files and events of this time or earlier, and writes a checkpoint of the version at
                this time.
            dry_run: shows what would be done, and changes nothing.

        Returns:
            A row per mode, with what a new session reads to load the table before and after.

        Raises:
            UseError: an argument is invalid, or another run optimizes the table; modes before are done.
        """
        return report(
            self.spark,
            ConsolidateLogRow,
            "consolidate_log",
            table=self.name,
            modes=modes,
            timestamp_start=timestamp_start,
            timestamp_end=timestamp_end,
            dry_run=dry_run,
        )

    def repair(self, *, deep: bool = False) -> list[CheckRow]:
        """Removes the index tags of files with errors: ``use.check`` with ``repair``.

        This is one commit without data change. ``optimize`` then indexes these files again.

        Args:
            deep: whether to read the indexed columns of every indexed file and place each row.

        Returns:
            The problems, as in ``inspect.check``, and a summary.

        Raises:
            UseError: a concurrent commit conflicts, or the table does not exist.
        """
        return report(self.spark, CheckRow, "check", table=self.name, deep=deep, repair=True)

    def store_consolidation_plan(
        self, *, max_file_bytes: int = 1_073_741_824, columns: str | None = None, where: str | None = None
    ) -> list[PlanRow]:
        """Plans which files to rewrite together, and stores the plan below the table, for ``optimize(plan=…)``.

        Args:
            max_file_bytes: bytes that a file should have.
            columns: columns by whose ranges files overlap, separated by commas; the indexed ones by default.
            where: only files that may contain rows that match this predicate.

        Returns:
            A row per group, each with the id of the plan.

        Raises:
            UseError: an argument is invalid, or nothing can be written below the table.
        """
        return consolidation_plan(self.spark, self.name, max_file_bytes, columns, where, store=True)

    def store_quantiles(self, column: str, *, n: int = 50, relative_error: float = 0.01) -> list[QuantilesRow]:
        """Estimates quantiles and stores them in ``use.index.columnStats``: ``use.quantiles`` with ``store``.

        Args:
            column: of numbers, dates, timestamps or strings; a nested one as ``a.b``.
            n: number of quantiles, 2 to 10,000, including the smallest and the largest value.
            relative_error: maximum error of a quantile's rank, as a share of the rows: 0.0001 to 0.5.

        Returns:
            The quantiles.

        Raises:
            UseError: an argument is invalid, or a concurrent commit conflicts; nothing was stored.
        """
        return report(
            self.spark,
            QuantilesRow,
            "quantiles",
            table=self.name,
            column=column,
            n=n,
            relative_error=relative_error,
            store=True,
        )

    def cancel(self, id: str | None = None) -> list[CancelRow]:  # noqa: A002, as SQL names it
        """Asks runs on this table to stop at their next boundary between groups. Committed groups stay.

        Args:
            id: id of the run, as in ``inspect.status``; all runs of this driver on this table by default.

        Returns:
            The runs that were asked to stop, possibly none. Runs of other processes, of which only the lease is
            visible, cannot be cancelled.

        Raises:
            UseError: the driver has no such run on this table.
        """
        run_id = None if id is None else CANCEL.checked({"id": id})["id"].strip()
        # Only runs of this driver have a current step.
        runs = [row.run_id for row in status_rows(self.spark, self.name) if row.run_id and row.current is not None]
        if run_id is None:
            return [row for run in runs for row in self._cancel_if_running(run)]
        if run_id not in runs:
            raise UnknownNameError.of("run", run_id, runs)
        return report(self.spark, CancelRow, "cancel", id=run_id)

    suspend = operation_method(SUSPEND)
    resume = operation_method(RESUME)

    def _cancel_if_running(self, run: str) -> list[CancelRow]:
        try:
            return report(self.spark, CancelRow, "cancel", id=run)
        except UseError as error:
            if error.code != _UNKNOWN_RUN:
                raise
            return []  # the run has ended in the meantime
