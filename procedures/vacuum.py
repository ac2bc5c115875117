"""``CALL use.vacuum``: deletes files that the table no longer references, with Delta's vacuum."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog.errors import InvalidArgumentError, NotSupportedError, RetentionError, UseError
from catalog.history.event_store import record_failure, record_vacuum
from catalog.history.events import DELETED, FilesTotals, event_of_vacuum
from catalog.jvm.files import file_size
from catalog.jvm.java_errors import known_error
from catalog.jvm.session import described_jobs, work_session
from catalog.table.managed_table import ManagedTable
from procedures.application import application
from procedures.declaration import Call, Parameter, Procedure
from procedures.result_rows import VacuumRow, data_frame_of, ddl_of

MODES = ("full", "lite")
_TASKS_PER_CORE = 4
MAX_PATHS_SHOWN = 1000
_UNREFERENCED = "UNREFERENCED"


def _validate(arguments: Mapping[str, Any]) -> None:
    hours = arguments["retention_hours"]
    if hours is not None and (math.isnan(hours) or math.isinf(hours) or hours < 0):
        raise InvalidArgumentError.of("retention_hours", hours, "a number of hours of at least 0")
    if arguments["mode"].lower() not in MODES:
        raise InvalidArgumentError.of("mode", arguments["mode"], f"one of {', '.join(MODES)}")
    if arguments["parallelism"] is not None and arguments["parallelism"] < 1:
        raise InvalidArgumentError.of("parallelism", arguments["parallelism"], "a whole number of at least 1")
    if arguments["inventory"] is not None:
        raise NotSupportedError(f"inventory = {arguments['inventory']} is not supported in this version; omit it.")


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
    retention = _retention(call, table.snapshot().retention_hours)
    session = work_session(call.spark)
    # The check above replaces the first one. Without the second setting, Delta ignores a given retention.
    session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    session.conf.set("spark.databricks.delta.vacuum.retentionWindowIgnore.enabled", "false")
    session.conf.set("spark.databricks.delta.vacuum.logging.enabled", "true")
    # Spark's default of 10,000 listing tasks takes minutes on a small table.
    tasks = call["parallelism"] or _TASKS_PER_CORE * session.sparkContext.defaultParallelism
    session.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", str(tasks))
    session.conf.set("spark.databricks.delta.vacuum.parallelDelete.enabled", "true")
    session.conf.set("spark.databricks.delta.vacuum.parallelDelete.parallelism", str(tasks))
    mode, handle = call["mode"].upper(), table.handle
    with described_jobs(session, f"USE vacuum: {table.name}"):
        if call["dry_run"]:
            return _candidates(session, handle.vacuum(session, retention, mode, True))
        table.check_writable()
        started = application().clock.now()
        try:
            handle.vacuum(session, retention, mode, False)
        except BaseException as error:
            _record_failure(table, call, started, known_error(error))
            raise
    outcome = _outcome(table)
    _record(table, call, started, outcome)
    row = VacuumRow(None, _UNREFERENCED, outcome.files, outcome.bytes, DELETED)
    return data_frame_of(table.spark, VacuumRow, [row])


def _record(table: ManagedTable, call: Call, started: int, outcome: _Outcome) -> None:
    try:
        table_bytes = table.snapshot().bytes
    except (UseError, Py4JJavaError, PySparkException):
        # The files are deleted even if the table cannot be read now.
        table_bytes = None
    removed = FilesTotals(outcome.files, outcome.bytes)
    times = started, application().clock.now()
    event = event_of_vacuum(call.trigger, _UNREFERENCED, _parameters(call), times, removed, table_bytes)
    record_vacuum(table, event, outcome.version)


def _record_failure(table: ManagedTable, call: Call, started: int, error: UseError) -> None:
    event = event_of_vacuum(call.trigger, _UNREFERENCED, _parameters(call), (started, application().clock.now()))
    record_failure(table, event, error)


def _parameters(call: Call) -> dict[str, str]:
    """Returns the given arguments as text; booleans as in SQL."""
    given = {name: value for name, value in call.arguments.items() if name != "table" and value is not None}
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()}


def _candidates(spark: SparkSession, paths: DataFrame) -> DataFrame:
    """Returns a row per path to delete, up to a limit; a last row without path counts the rest."""
    shown = [row[0] for row in paths.limit(MAX_PATHS_SHOWN).collect()]
    rows = [_candidate(spark, path) for path in shown]
    rest = paths.count() - len(shown) if len(shown) == MAX_PATHS_SHOWN else 0
    if rest:
        rows.append(VacuumRow(None, _UNREFERENCED, rest, None, "planned"))
    return data_frame_of(spark, VacuumRow, rows)


def _candidate(spark: SparkSession, path: str) -> VacuumRow:
    """Returns the row of a path to delete; directories and files that no longer exist have no size."""
    try:
        size = file_size(spark, path)
    except (Py4JJavaError, PySparkException):
        size = None
    return VacuumRow(path, _UNREFERENCED, 0 if size is None else 1, size or 0, "planned")


@dataclass(frozen=True)
class _Outcome:
    """What Delta noted of a vacuum; None = it did not.

    Attributes:
        version: of the commit that records its end.
        files: removed files.
        bytes: their bytes.
    """

    version: int | None
    files: int | None
    bytes: int | None


def _outcome(table: ManagedTable) -> _Outcome:
    """Returns what Delta recorded about the last vacuum."""
    metric = F.col("operationMetrics")
    entries = (
        table.history(10).where(F.col("operation").isin("VACUUM START", "VACUUM END")).orderBy(F.col("version").desc())
    )
    rows = entries.select(
        "version",
        "operation",
        metric["numDeletedFiles"].try_cast("bigint").alias("files"),
        metric["sizeOfDataToDelete"].try_cast("bigint").alias("bytes"),
    ).take(2)
    by_operation = {r.operation: r for r in rows}
    start, end = by_operation.get("VACUUM START"), by_operation.get("VACUUM END")
    return _Outcome(
        None if end is None else end.version,
        None if end is None else end.files,
        None if start is None else start["bytes"],
    )


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
        Parameter("inventory", "STRING", "Table that lists the files. Not supported yet.", None),
        Parameter("force", "BOOLEAN", "Allows a retention below the table's own.", False),
        Parameter(
            "parallelism", "INT", "Number of concurrent tasks that list and delete files; 4 per core by default.", None
        ),
    ),
    ddl_of(VacuumRow),
    _run,
    _validate,
)
