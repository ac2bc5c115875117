"""``table.maintenance``: acting on a table."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from catalog.errors import UnknownNameError, UseError
from procedures.cancel import CANCEL
from sql_ext.facade.reach import report, status_rows
from sql_ext.facade.rows import (
    CancelRow,
    CheckRow,
    DropIndexRow,
    IndexRow,
    OptimizeRow,
    QuantilesRow,
    ResumeRow,
    SuspendRow,
    VacuumRow,
)

_UNKNOWN_RUN = "USE_UNKNOWN_RUN"


@dataclass(frozen=True)
class Maintenance:
    """What is done to a table, once per call; answers are typed rows.

    Each method looks the table up anew and raises ``UseError`` when it is gone.

    Attributes:
        spark: session that acts.
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
        """Makes the table an indexed one by its properties; no data file is touched, ``optimize`` indexes them.

        Args:
            columns: separated by commas, such as ``a,b:hashing``.
            cube_size: rows that an inner cube holds; the property stays when left out.
            target_file_bytes: size that data files should have; likewise.
            column_stats: known ranges as JSON, such as ``{"a_min": 0, "a_max": 100}``; likewise.

        Raises:
            UseError: a column does not exist or cannot be indexed, or another writer was first; nothing was set.
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
        """Removes the index: its properties, and the tags of the files. Rows and files stay as they are.

        Raises:
            UseError: there is no index.
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
    ) -> list[OptimizeRow]:
        """Indexes unindexed files and merges fragmented cubes, group by group, each in one commit.

        In the driver, Ctrl-C lets the current groups commit and starts no further group.

        Args:
            strategy: a strategy, or several separated by commas, asked in this order; UnindexedFiles,
                LeveledCompaction when left out.
            revision_id: revision to compact, or to rewrite: 0 for unindexed files only; the newest when left out.
            bytes_per_iter: an iteration takes files until their bytes cross this, the crossing file included;
                1,000,000,000 when left out, and ``batch_bytes`` for the strategies that have this option.
            max_iterations: commits at most this many groups.
            max_bytes: starts no further group once this many bytes were rewritten.
            max_duration: starts no further group after this time, such as ``10 minutes``.
            where: only files that may hold rows of this predicate over the table's columns.
            files: only these files, by their paths as ``inspect.index_files`` shows them.
            revision_rewrite: first index the files of ``revision_id``, or of every older revision, again.
            parallelism: groups rewritten at the same time.
            dry_run: show the next groups and change nothing, as ``inspect.plan`` does.
            options: options of the strategies, such as ``{"batch_bytes": "500000000"}``.

        Returns:
            A row per group and outcome.

        Raises:
            UseError: an argument or the table does not allow it, before anything is touched; or a group failed for
                another reason than a lost race. What was committed before stays.
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
    ) -> list[VacuumRow]:
        """Deletes files that the table no longer references and that are older than the retention.

        Args:
            retention_hours: keeps files deleted within these hours; the table's own retention when left out.
            dry_run: list the files that would be deleted, and delete nothing.
            mode: ``full`` lists the directory; ``lite`` uses the log only.
            inventory: not available yet.
            force: allow a retention below the table's own.
            parallelism: tasks that list and delete at the same time; 4 per core when left out.

        Returns:
            One row with what was deleted; in a dry run, a row per file.

        Raises:
            UseError: an argument is not accepted, or the retention is too short; nothing was deleted.
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
        )

    def repair(self, *, deep: bool = False) -> list[CheckRow]:
        """Takes the index tags off the files that ``check`` finds errors in: ``use.check`` with ``repair``.

        It is one commit without data change. ``optimize`` then indexes these files again.

        Args:
            deep: whether to read the indexed columns of every indexed file and place each row.

        Returns:
            The problems found, as ``inspect.check`` shows them, and a summary.

        Raises:
            UseError: another writer was first, or the table is gone.
        """
        return report(self.spark, CheckRow, "check", table=self.name, deep=deep, repair=True)

    def store_quantiles(self, column: str, *, n: int = 50, relative_error: float = 0.01) -> list[QuantilesRow]:
        """Estimates quantiles and keeps them in ``use.index.columnStats``: ``use.quantiles`` with ``store``.

        Args:
            column: of numbers, dates, timestamps or strings; a nested one as ``a.b``.
            n: number of quantiles, 2 to 10,000, the smallest and the largest value included.
            relative_error: how far a quantile's rank may be off, as a share of the rows: 0.0001 to 0.5.

        Returns:
            The quantiles.

        Raises:
            UseError: an argument is not accepted, or another writer was first; nothing was kept.
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
        """Asks runs on this table to stop at their next boundary between groups; what they committed stays.

        Args:
            id: the run, as ``inspect.status`` shows it; every run of the driver on this table when left out.

        Returns:
            The runs that were asked: none when nothing runs. Runs of other processes, of which only the lease is seen
            here, cannot be asked.

        Raises:
            UseError: the driver has no such run on this table.
        """
        wanted = None if id is None else CANCEL.checked({"id": id})["id"].strip()
        # What a run does right now is known of the driver's own ones only.
        runs = [row.run_id for row in status_rows(self.spark, self.name) if row.run_id and row.current is not None]
        if wanted is None:
            return [row for run in runs for row in self._cancel_if_running(run)]
        if wanted not in runs:
            raise UnknownNameError.of("run", wanted, runs)
        return report(self.spark, CancelRow, "cancel", id=wanted)

    def suspend(self) -> SuspendRow:
        """Keeps automatic optimization off the table, for every process, until ``resume``.

        Raises:
            UseError: the table is gone.
        """
        return report(self.spark, SuspendRow, "suspend", table=self.name)[0]

    def resume(self) -> ResumeRow:
        """Ends the suspension of the table.

        Raises:
            UseError: the table is gone.
        """
        return report(self.spark, ResumeRow, "resume", table=self.name)[0]

    def _cancel_if_running(self, run: str) -> list[CancelRow]:
        try:
            return report(self.spark, CancelRow, "cancel", id=run)
        except UseError as error:
            if error.code != _UNKNOWN_RUN:
                raise
            return []  # it has ended meanwhile
