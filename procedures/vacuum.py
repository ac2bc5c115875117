"""``CALL use.vacuum``: deletes files that the table's log no longer needs, with Delta's own vacuum."""

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
        raise NotSupportedError(f"inventory = {arguments['inventory']} is not available in this version; leave it out.")


def _retention(call: Call, floor: float) -> float:
    """Returns the retention to use; refuses one that is too short for the table."""
    hours = call["retention_hours"]
    retention = floor if hours is None else float(hours)
    if retention < floor and not call["dry_run"] and not call["force"]:
        raise RetentionError(
            f"retention_hours = {retention:g} is below the table's {floor:g} hours: readers and time travel of that "
            "time would lose their files. Use force => true if no reader or writer can be older, or dry_run => true."
        )
    return retention


def _run(call: Call) -> DataFrame:
    table = ManagedTable.find(call.spark, call["table"])
    retention = _retention(call, table.snapshot().retention_hours)
    session = work_session(call.spark)
    # Our own check above stands in for these; without the second, this Delta ignores a retention that is given.
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
        begun = application().clock.now()
        try:
            handle.vacuum(session, retention, mode, False)
        except BaseException as error:
            _record_failure(table, call, begun, known_error(error))
            raise
    outcome = _outcome(table)
    _record(table, call, begun, outcome)
    row = VacuumRow(None, _UNREFERENCED, outcome.files, outcome.bytes, DELETED)
    return data_frame_of(table.spark, VacuumRow, [row])


def _record(table: ManagedTable, call: Call, begun: int, outcome: _Outcome) -> None:
    try:
        table_bytes = table.snapshot().bytes
    except (UseError, Py4JJavaError, PySparkException):
        # The files are deleted, whatever becomes of the table now.
        table_bytes = None
    removed = FilesTotals(outcome.files, outcome.bytes)
    times = begun, application().clock.now()
    event = event_of_vacuum(call.trigger, _UNREFERENCED, _parameters(call), times, removed, table_bytes)
    record_vacuum(table, event, outcome.version)


def _record_failure(table: ManagedTable, call: Call, begun: int, error: UseError) -> None:
    event = event_of_vacuum(call.trigger, _UNREFERENCED, _parameters(call), (begun, application().clock.now()))
    record_failure(table, event, error)


def _parameters(call: Call) -> dict[str, str]:
    """What was asked for, as text; as booleans are written in SQL."""
    given = {name: value for name, value in call.arguments.items() if name != "table" and value is not None}
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()}


def _candidates(spark: SparkSession, paths: DataFrame) -> DataFrame:
    """A row per path that would be deleted, up to a limit; one more row without path counts the rest."""
    found = [row[0] for row in paths.limit(MAX_PATHS_SHOWN).collect()]
    rows = [_candidate(spark, path) for path in found]
    rest = paths.count() - len(found) if len(found) == MAX_PATHS_SHOWN else 0
    if rest:
        rows.append(VacuumRow(None, _UNREFERENCED, rest, None, "planned"))
    return data_frame_of(spark, VacuumRow, rows)


def _candidate(spark: SparkSession, path: str) -> VacuumRow:
    """One row per path that would be deleted; directories and files gone meanwhile have no size."""
    try:
        size = file_size(spark, path)
    except (Py4JJavaError, PySparkException):
        size = None
    return VacuumRow(path, _UNREFERENCED, 0 if size is None else 1, size or 0, "planned")


@dataclass(frozen=True)
class _Outcome:
    """What Delta noted of a vacuum; None = it did not.

    Attributes:
        version: of the commit that notes its end.
        files: removed files.
        bytes: their bytes.
    """

    version: int | None
    files: int | None
    bytes: int | None


def _outcome(table: ManagedTable) -> _Outcome:
    """What Delta recorded about the vacuum that just ran."""
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
    found = {r.operation: r for r in rows}
    start, end = found.get("VACUUM START"), found.get("VACUUM END")
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
            "Keeps files deleted within these hours; the table's own retention (7 days unless set) when left out.",
            None,
        ),
        Parameter(
            "dry_run",
            "BOOLEAN",
            "List the files that would be deleted, by path up to 1,000, and delete nothing.",
            False,
        ),
        Parameter("mode", "STRING", "full lists the directory; lite uses the log only.", "full"),
        Parameter("inventory", "STRING", "Table that lists the files. Not available yet.", None),
        Parameter("force", "BOOLEAN", "Allow a retention below the table's own.", False),
        Parameter("parallelism", "INT", "Tasks that list and delete at the same time; 4 per core when left out.", None),
    ),
    ddl_of(VacuumRow),
    _run,
    _validate,
)
