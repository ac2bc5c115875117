"""``CALL use.vacuum``: deletes files that the table no longer references, with Delta's vacuum."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from catalog.errors import InvalidArgumentError, NotSupportedError, RetentionError, UseError
from catalog.history.event_store import record_failure, record_vacuum
from catalog.history.events import DELETED, FilesTotals, OptimizationEvent, event_of_vacuum
from catalog.jvm.java_errors import known_error
from catalog.jvm.session import described_jobs, work_session
from catalog.table.managed_table import ManagedTable
from procedures.application import application
from procedures.declaration import Call, Parameter, Procedure
from procedures.result_rows import VacuumRow, data_frame_of, ddl_of
from procedures.vacuuming.inventory import read_inventory
from procedures.vacuuming.reasons import KEPT
from procedures.vacuuming.vacuum_run import VacuumRun

MODES = ("full", "lite")
_TASKS_PER_CORE = 4


def _validate(arguments: Mapping[str, Any]) -> None:
    hours = arguments["retention_hours"]
    if hours is not None and (math.isnan(hours) or math.isinf(hours) or hours < 0):
        raise InvalidArgumentError.of("retention_hours", hours, "a number of hours of at least 0")
    if arguments["mode"].lower() not in MODES:
        raise InvalidArgumentError.of("mode", arguments["mode"], f"one of {', '.join(MODES)}")
    if arguments["parallelism"] is not None and arguments["parallelism"] < 1:
        raise InvalidArgumentError.of("parallelism", arguments["parallelism"], "a whole number of at least 1")
    rate = arguments["max_files_per_second"]
    if rate is not None and not 0 < rate < math.inf:
        raise InvalidArgumentError.of("max_files_per_second", rate, "a number above 0, or NULL for no limit")
    if arguments["inventory"] is not None and arguments["mode"].lower() != "full":
        raise InvalidArgumentError.of("mode", arguments["mode"], "an inventory needs mode => 'full'")


def _retention(call: Call, floor: float) -> float:
    """Returns the retention to use; rejects one that is too short for the table."""
    hours = call["retention_hours"]
    retention = floor if hours is None else float(hours)
    if retention < floor and not call["dry_run"] and not call["force"]:
        raise RetentionError(
            f"retention_hours = {retention:g} is below the table's {floor:g} hours: readers and time travel could lose "
            "files. Use force => true if no reader or writer is older than that, or dry_run => true."
        )
    return retention


def _run(call: Call) -> DataFrame:
    table = ManagedTable.find(call.spark, call["table"])
    if table.root.endswith("/"):
        raise NotSupportedError(f"{table.root} is the root of a file system; use Delta's VACUUM for a table there.")
    snapshot = table.snapshot()
    retention = _retention(call, snapshot.retention_hours)
    session = work_session(call.spark, snapshot.extent.log_bytes)
    tasks = call["parallelism"] or _TASKS_PER_CORE * session.sparkContext.defaultParallelism
    for key, value in _settings(tasks).items():
        session.conf.set(key, value)
    inventory = None if call["inventory"] is None else read_inventory(session, call["inventory"])
    run = VacuumRun(table, session, retention, call["mode"].upper(), tasks, inventory)
    with described_jobs(session, f"USE vacuum: {table.name}"), run:
        if call["dry_run"]:
            return data_frame_of(table.spark, VacuumRow, run.planned())
        table.check_writable()
        return data_frame_of(table.spark, VacuumRow, _deleted(call, table, run))


def _settings(tasks: int) -> dict[str, str]:
    """Returns the settings of Delta's vacuum; ``tasks`` list and delete files at the same time."""
    vacuum = "spark.databricks.delta.vacuum"
    return {
        # The check of the retention above replaces the first one. With the second one, Delta ignores a given retention.
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        f"{vacuum}.retentionWindowIgnore.enabled": "false",
        f"{vacuum}.logging.enabled": "true",
        # Spark's default of 10,000 listing tasks takes minutes on a small table.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(tasks),
        f"{vacuum}.parallelDelete.enabled": "true",
        f"{vacuum}.parallelDelete.parallelism": str(tasks),
    }


def _deleted(call: Call, table: ManagedTable, run: VacuumRun) -> list[VacuumRow]:
    """Deletes, records the vacuum as an event, and returns its rows."""
    started = application().clock.now()
    try:
        kept = run.kept()
        run.delete(call["max_files_per_second"])
    except BaseException as error:
        record_failure(table, _event(call, started, run), known_error(error))
        raise
    try:
        table_bytes = table.snapshot().bytes
    except (UseError, Py4JJavaError, PySparkException):
        # The files are deleted even if the table cannot be read now.
        table_bytes = None
    record_vacuum(table, replace(_event(call, started, run), table_bytes=table_bytes), run.version)
    rows = [VacuumRow(None, reason, total.files, total.bytes, DELETED) for reason, total in run.deleted.items()]
    return [*rows, VacuumRow(None, KEPT, kept.files, kept.bytes, "kept")]


def _event(call: Call, started: int, run: VacuumRun) -> OptimizationEvent:
    totals = run.deleted.values()
    removed = FilesTotals(sum(total.files for total in totals), sum(total.bytes for total in totals))
    reason = ", ".join(sorted(run.deleted)) or "NOTHING_TO_DO"
    times = started, application().clock.now()
    return event_of_vacuum(call.trigger, reason, _parameters(call), times, removed)


def _parameters(call: Call) -> dict[str, str]:
    """Returns the given arguments as text; booleans as in SQL."""
    given = {name: value for name, value in call.arguments.items() if name != "table" and value is not None}
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()}


VACUUM = Procedure(
    "vacuum",
    "Deletes files that the table no longer references and that are older than the retention.",
    (
        Parameter("table", "STRING", "Table name, delta.`path` or path."),
        Parameter(
            "retention_hours",
            "DOUBLE",
            "Keeps files deleted within this many hours. By default the table's retention, 7 days unless set.",
            None,
        ),
        Parameter(
            "dry_run",
            "BOOLEAN",
            "Lists the files that would be deleted, up to 1,000 by path, and deletes nothing.",
            False,
        ),
        Parameter("mode", "STRING", "full lists the directory; lite uses the log only.", "full"),
        Parameter(
            "inventory",
            "STRING",
            "Table, or path of a Delta or Parquet table, that lists the existing files; replaces the listing.",
            None,
        ),
        Parameter("force", "BOOLEAN", "Allows a retention below the table's own.", False),
        Parameter(
            "parallelism", "INT", "Number of concurrent tasks that list and delete files; 4 per core by default.", None
        ),
        Parameter("max_files_per_second", "DOUBLE", "Deletes at most this many files per second.", None),
    ),
    ddl_of(VacuumRow),
    _run,
    _validate,
)
