"""Consolidation of the logs of tables, several at a time, with the cost of loading a table before and after."""

from __future__ import annotations

import queue
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from pyspark import InheritableThread
from pyspark.sql import SparkSession

from catalog.errors import UseError
from catalog.jvm.java_errors import known_error
from catalog.jvm.session import activate, described_jobs, work_session
from catalog.jvm.table_versions import LogLoad
from catalog.state.lease import exclusive_lease
from catalog.table.managed_table import ManagedTable
from procedures.declare.result_rows import ShownRow
from procedures.lifecycle.log.log_mode import DONE, FAILED, LogMode, LogTask, ModeOutcome
from procedures.process.application import application
from procedures.selection.timestamps import Instant


@dataclass(frozen=True)
class ConsolidateLogRow(ShownRow):
    """One mode for the log of one table.

    Attributes:
        table: full name.
        mode: ``commits``, ``file_metadata``, ``table_metadata`` or ``events``.
        state: ``done``, ``planned``, ``skipped`` if there was nothing to do, or ``failed``.
        files_before: number of log files that a new session reads to load the table; for ``events``, files of events.
        files_after: the same afterwards; NULL in a dry run.
        bytes_before: bytes of these log files.
        bytes_after: the same afterwards.
        load_ms_before: milliseconds that it takes to load the table without any cache.
        load_ms_after: the same afterwards.
        version: the version that was committed, or of which a checkpoint was written.
        message: one-sentence summary, or the error.
    """

    table: str
    mode: str
    state: str
    files_before: int | None
    files_after: int | None
    bytes_before: int | None
    bytes_after: int | None
    load_ms_before: int | None
    load_ms_after: int | None
    version: int | None
    message: str


@dataclass(frozen=True)
class LogRequest:
    """The settings of a consolidation.

    Attributes:
        modes: the modes, in the order in which they run.
        start: considers files and events of this time or later.
        end: considers files and events of this time or earlier.
        dry_run: plans only.
        trigger: what started it: ``call``, ``manual``, ``automatic`` or ``cli``.
        measures: whether the time to load the table is measured, which takes that time twice.
    """

    modes: Sequence[LogMode]
    start: Instant | None = None
    end: Instant | None = None
    dry_run: bool = False
    trigger: str = "call"
    measures: bool = True


def consolidate_log(table: ManagedTable, request: LogRequest) -> list[ConsolidateLogRow]:
    """Consolidates the log of a table, and returns a row per mode.

    Args:
        table: the table.
        request: the settings.

    Raises:
        UseError: a mode failed; earlier ones are done.
    """
    return list(_rows(table, request, raises=True))


def consolidate_logs(
    spark: SparkSession, tables: Sequence[ManagedTable], request: LogRequest, parallelism: int
) -> list[ConsolidateLogRow]:
    """Consolidates the logs of several tables at a time; if a mode fails for one, the others continue.

    Args:
        spark: session of the caller.
        tables: the tables.
        request: the settings for each.
        parallelism: how many tables at a time.

    Returns:
        A row per table and mode, in the order of the tables.
    """
    rows: dict[int, list[ConsolidateLogRow]] = {}
    waiting: queue.SimpleQueue[tuple[int, ManagedTable]] = queue.SimpleQueue()
    for numbered in enumerate(tables):
        waiting.put(numbered)

    def work() -> None:
        activate(spark)
        while True:
            try:
                number, table = waiting.get_nowait()
            except queue.Empty:
                return
            rows[number] = _rows(table, request, raises=False)

    threads = [InheritableThread(target=work, name=f"use-log-{n}") for n in range(min(parallelism, len(tables)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [row for number in sorted(rows) for row in rows[number]]


def _rows(table: ManagedTable, request: LogRequest, *, raises: bool) -> list[ConsolidateLogRow]:
    rows: list[ConsolidateLogRow] = []
    try:
        session = work_session(table.spark, table.snapshot().extent.log_bytes)
        task = LogTask(table, session, request.start, request.end, request.dry_run, request.trigger)
        if not request.dry_run:
            table.check_writable()
        before = _load(task, request)
        for mode in request.modes:
            outcome = _outcome(task, mode, raises=raises)
            is_changed = outcome.state == DONE and outcome.version is not None
            after = _load(task, request) if is_changed else before
            rows.append(_row(table, mode, outcome, before, None if request.dry_run else after))
            before = after
    except Exception as error:
        if raises:
            raise
        rows += [_failed(table, mode, known_error(error)) for mode in request.modes[len(rows) :]]
    return rows


def _load(task: LogTask, request: LogRequest) -> LogLoad | None:
    if not request.measures:
        return None
    with described_jobs(task.session, f"USE consolidate_log: loading {task.table.name}"):
        return task.table.handle.versions(task.session).load()


def _outcome(task: LogTask, mode: LogMode, *, raises: bool) -> ModeOutcome:
    try:
        with described_jobs(task.session, f"USE consolidate_log ({mode.name}): {task.table.name}"), _lease(task, mode):
            return mode.run(task)
    except Exception as error:
        if raises:
            raise
        known = known_error(error)
        return ModeOutcome(FAILED, f"{known.code}: {known.message}")


def _lease(task: LogTask, mode: LogMode) -> AbstractContextManager[None]:
    if not mode.takes_lease or task.dry_run:
        return nullcontext()
    return exclusive_lease(task.table, uuid.uuid4().hex, task.trigger, application().clock)


def _failed(table: ManagedTable, mode: LogMode, error: UseError) -> ConsolidateLogRow:
    return _row(table, mode, ModeOutcome(FAILED, f"{error.code}: {error.message}"), None, None)


def _row(
    table: ManagedTable, mode: LogMode, outcome: ModeOutcome, before: LogLoad | None, after: LogLoad | None
) -> ConsolidateLogRow:
    message = outcome.message if outcome.message.endswith(".") else f"{outcome.message}."
    row = ConsolidateLogRow(
        table.name,
        mode.name,
        outcome.state,
        None if before is None else before.files,
        None if after is None else after.files,
        None if before is None else before.bytes,
        None if after is None else after.bytes,
        None if before is None else before.milliseconds,
        None if after is None else after.milliseconds,
        outcome.version,
        message,
    )
    if outcome.files is None:
        return row
    # Events are not part of the log.
    files_before, files_after = outcome.files
    return replace(
        row,
        files_before=files_before,
        files_after=files_after,
        bytes_before=None,
        bytes_after=None,
        load_ms_before=None,
        load_ms_after=None,
    )
