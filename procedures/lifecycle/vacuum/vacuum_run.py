"""One vacuum of a table: Delta decides what may be deleted, and each file gets a reason."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType

from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog.state.plan_expiry import ExpiredPlan, delete_plans, expired_plans
from catalog.state.plan_files import PLANS_FOLDER
from catalog.state.protection import Protection
from catalog.state.reclaimed import record_reclaimed
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import FilesTotal
from procedures.declare.result_rows import ShownRow
from procedures.lifecycle.vacuum.aborted_rewrites import AbortedRewrites
from procedures.lifecycle.vacuum.cutoff import Cutoff
from procedures.lifecycle.vacuum.paced_deletion import DeletableFile, PacedDeletion
from procedures.lifecycle.vacuum.reasons import (
    ABORTED_REWRITE,
    EMPTY_FOLDER,
    STORED_PLAN,
    UNREFERENCED,
    kept_total,
    totals_by_reason,
    with_reasons,
)
from procedures.lifecycle.vacuum.retained import RetainedVersions, kept_totals
from procedures.loop.progress import Progress
from procedures.process.application import application

MAX_PATHS_SHOWN = 1000


@dataclass(frozen=True)
class VacuumRow(ShownRow):
    """A total of a vacuum, or in a dry run a file that it would delete.

    Attributes:
        path: file or empty folder of a dry run; None in a total.
        reason: ``EXPIRED``, ``UNREFERENCED``, ``ABORTED_REWRITE``, ``EMPTY_FOLDER``, ``STORED_PLAN``, ``PROTECTED``,
            ``CLONED`` or ``KEPT``.
        files: number of files; of folders in a total of ``EMPTY_FOLDER``.
        bytes: their size; 0 for ``STORED_PLAN``, whose small files are not measured.
        state: ``planned``, ``deleted`` or ``kept``.
    """

    path: str | None
    reason: str
    files: int
    bytes: int
    state: str


class VacuumRun:
    """One vacuum of a table; a context manager that releases the lists of files.

    Args:
        table: the table.
        session: session of the work, with the settings of Delta's vacuum.
        cutoff: limits of the files that may be deleted.
        mode: ``FULL`` or ``LITE``.
        tasks: number of concurrent tasks and requests.
        inventory: the files that exist, None if they are to be listed.

    Attributes:
        deleted: totals of the files deleted so far, by reason.
        version: of the commit in which Delta's history records the end; None without one.
        retained: the versions whose files stay.
    """

    def __init__(
        self,
        table: ManagedTable,
        session: SparkSession,
        cutoff: Cutoff,
        mode: str,
        tasks: int,
        inventory: DataFrame | None,
    ) -> None:
        self._table = table
        self._session = session
        self._delete_before = cutoff.delete_before
        self._unreferenced_before = cutoff.unreferenced_before
        self.retained = RetainedVersions(table, session, cutoff)
        self._mode = mode
        self._tasks = tasks
        self._inventory = inventory
        self._vacuum = table.handle.vacuum(session, self._delete_before, cutoff.retention_hours)
        self._cached: list[DataFrame] = []
        self.deleted: dict[str, FilesTotal] = {}
        self.version: int | None = None

    def __enter__(self) -> VacuumRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for files in self._cached:
            files.unpersist()
        self.retained.release()

    @cached_property
    def _unneeded(self) -> DataFrame:
        """The files that Delta's vacuum would delete: an inventory with reasons."""
        files = self._existing
        if files is not None:
            # Delta reads its inventory more than once.
            files = self._cache(files)
        paths = self._vacuum.candidates(self._mode, files)
        if files is None:
            # The log does not name them.
            paths = paths.select("path").union(self._aborted.paths(self._session)).distinct()
        # An inventory may be wrong or outdated, and a log does not know which files exist.
        deletable = self._vacuum.deletable(paths, self._tasks)
        files = with_reasons(self._vacuum, deletable, self._delete_before)
        # The names of files that USE has written look alike in all tables.
        return self._cache(self._vacuum.outside_of_other_tables(files, (UNREFERENCED, ABORTED_REWRITE)))

    @cached_property
    def _aborted(self) -> AbortedRewrites:
        return AbortedRewrites(self._table, self._unreferenced_before)

    @cached_property
    def protected(self) -> tuple[Protection, ...]:
        """The protections that count.

        Raises:
            ProtectionError: one of them cannot be read, or the log no longer has its version.
        """
        return self.retained.protected()

    @cached_property
    def _split(self) -> DataFrame:
        """The files of ``_unneeded`` that no retained version needs; see ``RetainedVersions.split``."""
        return self.retained.split(self._unneeded, self.protected)

    @property
    def _candidates(self) -> DataFrame:
        """The files to delete: an inventory with reasons."""
        return self._split.where("kept IS NULL").drop("kept", "key")

    @cached_property
    def kept_by_reason(self) -> dict[str, FilesTotal]:
        """Totals of the files that only protected versions, or clones, keep."""
        return kept_totals(self._split)

    @cached_property
    def oldest_left(self) -> int | None:
        """The oldest version that can be read after the vacuum, apart from protected ones; None if all can."""
        return self.retained.oldest_without(self._split.where("kept IS NULL")) if self.totals else None

    def _record_reclaimed(self) -> None:
        """Records the oldest version left, and looks for protections that were made since.

        A protection that is made later sees the record, and fails if its version is about to be reclaimed.
        """
        while self.oldest_left is not None:
            table_id = self._table.state().facts().table_id
            record_reclaimed(self._table, table_id, self.oldest_left, application().clock.now())
            if self.retained.protected() == self.protected:
                return
            for name in ("protected", "_split", "totals", "kept_by_reason", "oldest_left"):
                self.__dict__.pop(name, None)

    def _cache(self, files: DataFrame) -> DataFrame:
        self._cached.append(files.persist(StorageLevel.MEMORY_AND_DISK))
        return self._cached[-1]

    @property
    def _existing(self) -> DataFrame | None:
        if self._inventory is not None:
            return self._vacuum.below(self._inventory)
        return None if self._mode == "LITE" else self._vacuum.listing(self._tasks)

    @cached_property
    def totals(self) -> dict[str, FilesTotal]:
        """Totals of the files to delete, by reason."""
        return totals_by_reason(self._candidates)

    def planned(self) -> list[VacuumRow]:
        """Returns a row per file that may be deleted, up to a limit; a last row per reason counts the others."""
        shown = self._candidates.orderBy("path").limit(MAX_PATHS_SHOWN).collect()
        rows = [VacuumRow(f.path, f.reason, 0 if f.isDir else 1, f.length, "planned") for f in shown]
        folder = f"{self._table.state_folder}/{PLANS_FOLDER}"
        rows += [
            VacuumRow(f"{folder}/{plan.plan_id}", STORED_PLAN, len(plan.files), 0, "planned") for plan in self._plans
        ]
        if len(shown) < MAX_PATHS_SHOWN:
            return [*rows, *self.kept_rows()]
        for reason, total in self.totals.items():
            files = total.files - sum(file.reason == reason for file in shown)
            size = total.bytes - sum(file.length for file in shown if file.reason == reason)
            if files:
                rows.append(VacuumRow(None, reason, files, size, "planned"))
        return [*rows, *self.kept_rows()]

    def kept_rows(self) -> list[VacuumRow]:
        """Returns a row for the files that only protected versions keep, and one for those that only clones keep."""
        return [VacuumRow(None, reason, t.files, t.bytes, "kept") for reason, t in self.kept_by_reason.items()]

    def total_kept(self) -> FilesTotal:
        """Returns the total of the live files and of those removed within the retention."""
        live = self._table.state(self._session).files().select("path", "size")
        return kept_total(self._vacuum, live, self._delete_before)

    def delete(self, rate: float | None) -> None:
        """Deletes the files that may be deleted.

        Args:
            rate: files per second, None for no limit.
        """
        # Removals that are committed later are within the retention.
        covered = self._vacuum.covered_version() if self._mode == "LITE" else None
        self._record_reclaimed()
        if self.totals:
            if rate is None:
                self._delete_by_delta()
            else:
                self._delete_at(rate)
        if self._inventory is None:
            self._aborted.forget(self._session)
        self._delete_plans()
        # A covered file that is kept now would never be found again.
        if covered is not None and not self.kept_by_reason:
            self._vacuum.cover(covered)

    @cached_property
    def _plans(self) -> list[ExpiredPlan]:
        return expired_plans(self._table, self.retained.begins_at, application().clock.now())

    def _delete_plans(self) -> None:
        files = delete_plans(self._table, self._plans)
        if files:
            self.deleted = {**self.deleted, STORED_PLAN: FilesTotal(files, 0)}

    def _delete_by_delta(self) -> None:
        # A list without folders keeps those that become empty.
        self._vacuum.delete_all("FULL", self._candidates.drop("reason"))
        self.version, count = self._end()
        self.deleted = self.totals
        if count != sum(total.files for total in self.totals.values()):
            left = self._vacuum.deletable(self._candidates.select("path"), self._tasks).select("path")
            self.deleted = totals_by_reason(self._candidates.join(left, "path", "left_anti"))

    def _delete_at(self, rate: float) -> None:
        size = sum(total.bytes for total in self.totals.values())
        self._vacuum.started(self._candidates.select("path"), size)
        with Progress(self._session, f"vacuum {self._table.name}") as progress:
            progress.planned(size, f"{sum(total.files for total in self.totals.values()):,} files")
            deletion = PacedDeletion(self._vacuum, rate, self._tasks, application().clock, progress)
            self.deleted = deletion.deleted
            try:
                rows = self._candidates.select("path", "length", "reason").toLocalIterator()
                deletion.run(DeletableFile(row.path, row.length, row.reason) for row in rows)
            except BaseException:
                # The first error is the one to report.
                with suppress(Py4JJavaError, PySparkException):
                    self._vacuum.failed()
                raise
        folders = self.deleted[EMPTY_FOLDER].files if EMPTY_FOLDER in self.deleted else 0
        self._vacuum.ended(sum(total.files for total in self.deleted.values()), folders)
        self.version, _ = self._end()

    def _end(self) -> tuple[int | None, int | None]:
        """Returns version and number of deleted files and folders of the last end of a vacuum in Delta's history."""
        count = F.col("operationMetrics")["numDeletedFiles"].try_cast("bigint")
        ends = self._table.history(10).where("operation = 'VACUUM END'").orderBy(F.col("version").desc())
        row = ends.select("version", count).first()
        return (None, None) if row is None else (row[0], row[1])
