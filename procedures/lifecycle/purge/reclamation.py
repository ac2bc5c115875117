"""Reclamation of a table's history: deleted rows, then files, then the log, then events; see decision 066."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from catalog.epoch_millis import moment
from catalog.errors import ConcurrentChangeError
from catalog.history.event_expiry import delete_expired, expired_files
from catalog.jvm.session import described_jobs, interrupted, work_session
from catalog.jvm.table_versions import TableVersions
from catalog.state.lease import acquire, holder_of, renewed
from catalog.state.protection import protections
from catalog.state.reclaimed import oldest_left, record_reclaimed
from catalog.table.managed_table import ManagedTable
from procedures.declare.result_rows import ShownRow
from procedures.declare.runs import Run
from procedures.lifecycle.purge.lease_wait import LeaseWait
from procedures.lifecycle.purge.log_cleanup import LogCleanup
from procedures.lifecycle.purge.old_deletes import compact_old_deletes, files_with_old_deletes
from procedures.lifecycle.vacuum.cutoff import Cutoff
from procedures.lifecycle.vacuum.reasons import EMPTY_FOLDER
from procedures.lifecycle.vacuum.recorded_vacuum import TASKS_PER_CORE, check_place, deleted, vacuum_settings
from procedures.lifecycle.vacuum.retained import RetainedVersions
from procedures.lifecycle.vacuum.vacuum_run import VacuumRun
from procedures.loop.report import COMMITTED, LEASE_HELD, PLANNED, OptimizeRow
from procedures.process.application import application

COMPACTION, FILES, LOG, EVENTS, PROTECTED, VERSIONS = "compaction", "files", "log", "events", "protected", "versions"
# Times that the compaction is planned while other runs take the lease between its plan and its rewrite.
_MOST_PLANS = 5


@dataclass(frozen=True)
class PurgeRow(ShownRow):
    """A step of a purge, or a protected version.

    Attributes:
        step: ``compaction``, ``files``, ``log``, ``events``, ``protected`` or ``versions``.
        files: number of files that the step rewrote, deleted or kept; of a dry run, that it would.
        bytes: their size; None if it is unknown.
        lost_from: first version that can no longer be read; None except in the row ``versions``.
        lost_to: last version that can no longer be read.
        oldest_version: oldest version left, apart from protected ones; the version of a protected one.
        message: one-sentence summary.
    """

    step: str
    files: int
    bytes: int | None
    lost_from: int | None
    lost_to: int | None
    oldest_version: int | None
    message: str


@dataclass(frozen=True)
class ReclamationSettings:
    """The settings of a reclamation.

    Attributes:
        cutoff: limits of the files that it may delete.
        min_deleted_ratio: files with more old deleted rows than this share are rewritten.
        whole: whether deleted rows, the log and events are reclaimed too, and not only files.
        dry_run: plans only.
        whole_log: whether every log entry goes that no version needs, even if a checkpoint costs more than it saves.
        quiet_millis: files near statements of other sessions within this time are not rewritten; 0 = all may be.
    """

    cutoff: Cutoff
    min_deleted_ratio: float = 0.0
    whole: bool = True
    dry_run: bool = False
    whole_log: bool = False
    quiet_millis: int = 0


class Reclamation:
    """One reclamation of a table.

    Args:
        table: the table.
        settings: of the reclamation.
        trigger: what started it: ``call``, ``manual``, ``automatic`` or ``cli``.
        parameters: arguments of the call, for events.
        observe: called with the name of each step before it begins.
        part_of: the run that asks for it. A request to stop that run, like an interrupt of the calling thread, ends
            the reclamation before its next group or step; the next reclamation does the rest.
    """

    def __init__(
        self,
        table: ManagedTable,
        settings: ReclamationSettings,
        trigger: str,
        parameters: Mapping[str, str],
        observe: Callable[[str], None] = lambda _: None,
        part_of: Run | None = None,
    ) -> None:
        check_place(table)
        clock = application().clock
        self._parameters = dict(parameters)
        self._run = Run.of(table, trigger, self._parameters, clock, part_of)
        self._wait = LeaseWait(table.name, clock, self._is_stopped)
        self._table = table
        self._settings = settings
        self._trigger = trigger
        self._observe = observe
        self._tasks = TASKS_PER_CORE * table.spark.sparkContext.defaultParallelism
        snapshot = table.snapshot()
        self._table_id = snapshot.table_id
        self._session: SparkSession = work_session(table.spark, snapshot.extent.log_bytes)
        for key, value in vacuum_settings(self._tasks).items():
            self._session.conf.set(key, value)
        self._versions: TableVersions = table.handle.versions(self._session)
        self._first = max(self._versions.oldest(), oldest_left(table, self._table_id))
        self._left = self._first

    def run(self) -> list[PurgeRow]:
        """Reclaims, and returns a row per step.

        Raises:
            ProtectionError: it is unknown which version is protected; nothing was deleted.
            ConcurrentChangeError: another run holds the lease of the table for longer than a reclamation waits; no file
                was deleted.
        """
        # An unreadable protection stops everything, before the first commit.
        protections(self._table)
        rows = []
        with described_jobs(self._session, f"USE reclamation: {self._table.name}"):
            if self._settings.dry_run:
                return [*self._compaction(), *self._files(), *self._rest()]
            self._table.check_writable()
            rows += self._compaction()
            if self._is_stopped():
                return [*rows, self._lost_versions()]
            with self._lease():
                self._check_same_table()
                rows += self._files()
                rows += self._rest()
        return rows

    def _rest(self) -> Iterator[PurgeRow]:
        for step in (self._log, self._events) if self._settings.whole else ():
            if not self._is_stopped():
                yield step()
        yield self._lost_versions()

    def _check_same_table(self) -> None:
        """The limits are for the versions of one table, and another one may have taken its place meanwhile."""
        if self._table.snapshot().table_id != self._table_id:
            raise ConcurrentChangeError("The table was replaced since the reclamation began; no file was deleted.")

    def _is_stopped(self) -> bool:
        return self._run.stop_reason is not None or interrupted(self._table.spark)

    # ------------------------------------------------------------------------------------------------------- steps

    def _compaction(self) -> list[PurgeRow]:
        if not self._settings.whole:
            return []
        is_dry_run, clock = self._settings.dry_run, application().clock
        rows: list[OptimizeRow] = []
        plans, version, is_held = 0, 0, True
        while is_held and plans < _MOST_PLANS:
            if not is_dry_run:
                self._wait.until_free(lambda: holder_of(self._table, clock.now()))
            self._observe(COMPACTION)
            retained = RetainedVersions(self._table, self._session, self._settings.cutoff)
            version = retained.version
            paths = files_with_old_deletes(self._versions, version, retained.newest)
            part = compact_old_deletes(
                self._table,
                paths,
                self._settings.min_deleted_ratio,
                self._run,
                is_stopped=self._is_stopped,
                dry_run=is_dry_run,
                quiet_millis=self._settings.quiet_millis,
            )
            rows += part
            plans, is_held = plans + 1, any(row.reason == LEASE_HELD for row in part)
        done = [row for row in rows if row.state in (COMMITTED, PLANNED)]
        files, size = sum(row.input_files for row in done), sum(row.input_bytes for row in done)
        message = (
            f"files whose deleted rows no version from {version} on can show; the files before stay as long "
            "as versions that need them"
        )
        return [self._row(COMPACTION, files, size, message)]

    def _files(self) -> Iterator[PurgeRow]:
        self._observe(FILES)
        run = VacuumRun(self._table, self._session, self._settings.cutoff, "FULL", self._tasks, None)
        with run:
            if self._settings.dry_run:
                totals = run.totals
            else:
                deleted(self._table, run, self._trigger, self._parameters)
                totals = run.deleted
            if run.oldest_left is not None:
                self._left = max(self._left, run.oldest_left)
            kept = {reason: total for reason, total in run.kept_by_reason.items() if total.files}
            self._keep = min([run.retained.version, *(p.version for p in run.protected)])
            data = [total for reason, total in totals.items() if reason != EMPTY_FOLDER]
            texts = [f"{reason}: {total.files}" for reason, total in totals.items()]
            texts += [f"kept as {reason}: {total.files}" for reason, total in kept.items()]
            yield self._row(FILES, sum(t.files for t in data), sum(t.bytes for t in data), "; ".join(texts))
            for protection in run.protected:
                yield PurgeRow(PROTECTED, 0, None, None, None, protection.version, protection.text)

    def _log(self) -> PurgeRow:
        self._observe(LOG)
        while True:
            cleanup = LogCleanup(self._versions, self._keep, whole=self._settings.whole_log)
            if cleanup.guard:
                return self._row(LOG, 0, 0, f"the log is left to Delta: {cleanup.guard}")
            if cleanup.boundary is None:
                return self._row(LOG, 0, 0, "no entry can be deleted")
            self._left = max(self._left, cleanup.boundary.version)
            files = cleanup.planned
            if self._settings.dry_run:
                break
            self._record()
            # A protection that is made later sees the record, and fails if its version is about to be reclaimed.
            keep = min([self._keep, *(protection.version for protection in protections(self._table))])
            if keep == self._keep:
                self._observe("log entries")
                files = cleanup.run()
                break
            self._keep = keep
        return self._row(LOG, files.files, files.bytes, f"the log begins with version {cleanup.boundary.version}")

    def _events(self) -> PurgeRow:
        self._observe(EVENTS)
        cutoff = self._settings.cutoff
        before = cutoff.delete_before if cutoff.version is None else self._versions.time_of(max(self._keep, 0))
        if self._settings.dry_run:
            count = len(expired_files(self._table, before))
        else:
            count = delete_expired(self._table, before)
        time = moment(before)
        return self._row(EVENTS, count, None, f"events that began before {time.isoformat() if time else before}")

    def _lost_versions(self) -> PurgeRow:
        # Versions that Delta has removed from the log count as well.
        left = self._left
        is_lost = left > self._first
        text = f"version {left} is the oldest one left"
        if is_lost:
            text = f"versions {self._first} to {left - 1} cannot be read any more, apart from protected ones; {text}"
        return PurgeRow(
            VERSIONS, 0, None, self._first if is_lost else None, left - 1 if is_lost else None, left, f"{text}."
        )

    # ------------------------------------------------------------------------------------------------------- parts

    def _record(self) -> None:
        record_reclaimed(self._table, self._table_id, self._left, application().clock.now())

    def _row(self, step: str, files: int, size: int | None, message: str) -> PurgeRow:
        verb = "planned" if self._settings.dry_run else "done"
        return PurgeRow(step, files, size, None, None, None, f"{verb}: {message or 'nothing to do'}.")

    @contextmanager
    def _lease(self) -> Iterator[None]:
        """Holds the lease: an optimization that reads a version must not lose its files."""
        clock, run_id = application().clock, uuid.uuid4().hex
        self._wait.until_acquired(lambda: acquire(self._table, run_id, self._trigger, clock.now()))
        with renewed(self._table, run_id, self._trigger, clock):
            yield
