"""``CALL use.vacuum``: deletes files that the table no longer references, with Delta's vacuum."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from catalog.errors import InvalidArgumentError, RetentionError
from catalog.history.events import DELETED
from catalog.jvm.session import described_jobs, work_session
from catalog.properties.retention_properties import MOST_HOURS
from catalog.table.managed_table import ManagedTable
from procedures.declare.declaration import Call, Parameter, Procedure
from procedures.declare.result_rows import VacuumRow, data_frame_of, ddl_of
from procedures.lifecycle.vacuum.cutoff import Cutoff
from procedures.lifecycle.vacuum.inventory import read_inventory
from procedures.lifecycle.vacuum.reasons import KEPT
from procedures.lifecycle.vacuum.recorded_vacuum import TASKS_PER_CORE, check_place, deleted, vacuum_settings
from procedures.lifecycle.vacuum.vacuum_run import VacuumRun
from procedures.process.application import application

MODES = ("full", "lite")
# TileDB's modes, and what does the same here.
_FRAGMENTS = "fragments"
_OTHER_MODES: Mapping[str, str] = {
    "commits": "use.purge deletes log files that no kept version needs",
    "fragment_meta": "statistics are part of the log; use.purge deletes log files that no kept version needs",
    "array_meta": "properties are part of the log; use.purge deletes log files that no kept version needs",
    "group_meta": "properties are part of the log; use.purge deletes log files that no kept version needs",
}


def _validate(arguments: Mapping[str, Any]) -> None:
    hours = arguments["retention_hours"]
    if hours is not None and not 0 <= hours <= MOST_HOURS:  # NaN neither
        raise InvalidArgumentError.of("retention_hours", hours, f"a number of hours from 0 to {MOST_HOURS}")
    if _mode(arguments) not in MODES:
        other = _OTHER_MODES.get(arguments["mode"].lower())
        accepted = f"one of {', '.join(MODES)}" + (f"; {other}" if other else "")
        raise InvalidArgumentError.of("mode", arguments["mode"], accepted)
    if arguments["parallelism"] is not None and arguments["parallelism"] < 1:
        raise InvalidArgumentError.of("parallelism", arguments["parallelism"], "a whole number of at least 1")
    rate = arguments["max_files_per_second"]
    if rate is not None and not 0 < rate < math.inf:
        raise InvalidArgumentError.of("max_files_per_second", rate, "a number above 0, or NULL for no limit")
    if arguments["inventory"] is not None and _mode(arguments) != "full":
        raise InvalidArgumentError.of("mode", arguments["mode"], "an inventory needs mode => 'full'")


def _mode(arguments: Mapping[str, Any]) -> str:
    mode = str(arguments["mode"]).lower()
    return "full" if mode == _FRAGMENTS else mode


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
    check_place(table)
    snapshot = table.snapshot()
    retention = _retention(call, snapshot.retention_hours)
    session = work_session(call.spark, snapshot.extent.log_bytes)
    tasks = call["parallelism"] or TASKS_PER_CORE * session.sparkContext.defaultParallelism
    for key, value in vacuum_settings(tasks).items():
        session.conf.set(key, value)
    inventory = None if call["inventory"] is None else read_inventory(session, call["inventory"])
    cutoff = Cutoff.of_retention(retention, application().clock.now())
    run = VacuumRun(table, session, cutoff, _mode(call.arguments).upper(), tasks, inventory)
    with described_jobs(session, f"USE vacuum: {table.name}"), run:
        if call["dry_run"]:
            return data_frame_of(table.spark, VacuumRow, run.planned())
        table.check_writable()
        kept = deleted(table, run, call.trigger, _parameters(call), call["max_files_per_second"])
        rows = [VacuumRow(None, reason, total.files, total.bytes, DELETED) for reason, total in run.deleted.items()]
        total = VacuumRow(None, KEPT, kept.files, kept.bytes, "kept")
        return data_frame_of(table.spark, VacuumRow, [*rows, *run.kept_rows(), total])


def _parameters(call: Call) -> dict[str, str]:
    """Returns the given arguments as text; booleans as in SQL."""
    arguments = {name: value for name, value in call.arguments.items() if name != "table" and value is not None}
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in arguments.items()}


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
        Parameter("mode", "STRING", "full, or fragments, lists the directory; lite uses the log only.", "full"),
        Parameter(
            "inventory",
            "STRING",
            "Table, or path of a Delta or Parquet table, that lists the existing files; replaces the listing.",
            None,
            not_blank="a table or a path",
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
