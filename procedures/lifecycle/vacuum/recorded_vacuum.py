"""A vacuum with its settings, which deletes files and leaves an event in the history of the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from catalog.errors import NotSupportedError, UseError
from catalog.history.event_store import record_failure, record_vacuum
from catalog.history.events import FilesTotals, OptimizationEvent, event_of_vacuum
from catalog.jvm.java_errors import known_error
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import FilesTotal
from procedures.lifecycle.vacuum.vacuum_run import VacuumRun
from procedures.process.application import application

TASKS_PER_CORE = 4


def check_place(table: ManagedTable) -> None:
    """Refuses a table whose files Delta's vacuum cannot distinguish from other files.

    Raises:
        NotSupportedError: it is the root of a file system.
    """
    if table.root.endswith("/"):
        raise NotSupportedError(f"{table.root} is the root of a file system; use Delta's VACUUM for a table there.")


def vacuum_settings(tasks: int) -> dict[str, str]:
    """Returns the settings of Delta's vacuum; ``tasks`` list and delete files at the same time."""
    vacuum = "spark.databricks.delta.vacuum"
    return {
        # The check of the retention by the caller replaces the first one. With the second one, Delta ignores a given
        # retention.
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        f"{vacuum}.retentionWindowIgnore.enabled": "false",
        f"{vacuum}.logging.enabled": "true",
        # Spark's default of 10,000 listing tasks takes minutes on a small table.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(tasks),
        # Delta's default of 50 tasks per version takes seconds on a small table.
        "spark.databricks.delta.snapshotPartitions": str(tasks),
        f"{vacuum}.parallelDelete.enabled": "true",
        f"{vacuum}.parallelDelete.parallelism": str(tasks),
    }


def deleted(
    table: ManagedTable, run: VacuumRun, trigger: str, parameters: Mapping[str, str], rate: float | None = None
) -> FilesTotal:
    """Deletes the files of a run and records the vacuum as an event.

    Args:
        table: the table.
        run: the vacuum.
        trigger: what started it: ``call``, ``manual``, ``automatic`` or ``cli``.
        parameters: arguments of the call, for the event.
        rate: files per second, None for no limit.

    Returns:
        The total of the live files and of those removed within the retention.
    """
    started = application().clock.now()

    def event() -> OptimizationEvent:
        totals = run.deleted.values()
        removed = FilesTotals(sum(total.files for total in totals), sum(total.bytes for total in totals))
        reason = ", ".join(sorted(run.deleted)) or "NOTHING_TO_DO"
        return event_of_vacuum(trigger, reason, parameters, (started, application().clock.now()), removed)

    try:
        kept = run.total_kept()
        run.delete(rate)
    except BaseException as error:
        record_failure(table, event(), known_error(error))
        raise
    try:
        table_bytes = table.snapshot().bytes
    except (UseError, Py4JJavaError, PySparkException):
        # The files are deleted even if the table cannot be read now.
        table_bytes = None
    record_vacuum(table, replace(event(), table_bytes=table_bytes), run.version)
    return kept
