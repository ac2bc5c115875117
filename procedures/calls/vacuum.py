"""``CALL use.vacuum``: deletes files that the table no longer references, with Delta's vacuum."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

from catalog.errors import InvalidArgumentError, RetentionError
from catalog.history.events import DELETED
from catalog.jvm.session import described_jobs, work_session
from catalog.properties.retention_properties import MOST_HOURS
from catalog.table.managed_table import ManagedTable
from procedures.declare.declaration import Call
from procedures.declare.operation import AT_LEAST_ONE, Constraint, Int, TableName, operation
from procedures.lifecycle.vacuum.cutoff import Cutoff
from procedures.lifecycle.vacuum.inventory import read_inventory
from procedures.lifecycle.vacuum.reasons import KEPT
from procedures.lifecycle.vacuum.recorded_vacuum import TASKS_PER_CORE, check_place, deleted, vacuum_settings
from procedures.lifecycle.vacuum.vacuum_run import VacuumRow, VacuumRun
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
    if _mode(arguments["mode"]) not in MODES:
        other = _OTHER_MODES.get(arguments["mode"].lower())
        accepted = f"one of {', '.join((*MODES, _FRAGMENTS))}" + (f"; {other}" if other else "")
        raise InvalidArgumentError.of("mode", arguments["mode"], accepted)
    rate = arguments["max_files_per_second"]
    if rate is not None and not 0 < rate < math.inf:
        raise InvalidArgumentError.of("max_files_per_second", rate, "a number above 0, or NULL for no limit")
    if arguments["inventory"] is not None and _mode(arguments["mode"]) != "full":
        raise InvalidArgumentError.of("mode", arguments["mode"], "an inventory needs mode => 'full'")


def _mode(name: str) -> str:
    mode = name.lower()
    return "full" if mode == _FRAGMENTS else mode


def _retention(hours: float | None, floor: float, *, may_be_short: bool) -> float:
    """Returns the retention to use; rejects one that is too short for the table."""
    retention = floor if hours is None else hours
    if retention < floor and not may_be_short:
        raise RetentionError(
            f"retention_hours = {retention:g} is below the table's {floor:g} hours: readers and time travel could lose "
            "files. Use force => true if no reader or writer is older than that, or dry_run => true."
        )
    return retention


def vacuum(
    call: Call,
    table: TableName,
    *,
    retention_hours: float | None = None,
    dry_run: bool = False,
    mode: str = "full",
    inventory: Annotated[str | None, Constraint(not_blank="a table or a path")] = None,
    force: bool = False,
    parallelism: Annotated[Int | None, AT_LEAST_ONE] = None,
    max_files_per_second: float | None = None,
) -> list[VacuumRow]:
    """Deletes files that the table no longer references and that are older than the retention.

    Args:
        retention_hours: Keeps files deleted within this many hours. By default the table's retention, 7 days unless
            set.
        dry_run: Lists the files that would be deleted, up to 1,000 by path, and deletes nothing.
        mode: full, or fragments, lists the directory; lite uses the log only.
        inventory: Table, or path of a Delta or Parquet table, that lists the existing files; replaces the listing.
        force: Allows a retention below the table's own.
        parallelism: Number of concurrent tasks that list and delete files; 4 per core by default.
        max_files_per_second: Deletes at most this many files per second.

    Returns:
        A row per reason with the totals, and a row with what is kept; in a dry run, a row per file.

    Raises:
        UseError: an argument is invalid, or the retention is too short; nothing was deleted.
    """
    found = ManagedTable.find(call.spark, table)
    check_place(found)
    snapshot = found.snapshot()
    retention = _retention(retention_hours, snapshot.retention_hours, may_be_short=dry_run or force)
    session = work_session(call.spark, snapshot.extent.log_bytes)
    tasks = parallelism or TASKS_PER_CORE * session.sparkContext.defaultParallelism
    for key, value in vacuum_settings(tasks).items():
        session.conf.set(key, value)
    listed = None if inventory is None else read_inventory(session, inventory)
    cutoff = Cutoff.of_retention(retention, application().clock.now())
    run = VacuumRun(found, session, cutoff, _mode(mode).upper(), tasks, listed)
    with described_jobs(session, f"USE vacuum: {found.name}"), run:
        if dry_run:
            return list(run.planned())
        found.check_writable()
        kept = deleted(found, run, call.trigger, _parameters(call), max_files_per_second)
        rows = [VacuumRow(None, reason, total.files, total.bytes, DELETED) for reason, total in run.deleted.items()]
        total = VacuumRow(None, KEPT, kept.files, kept.bytes, "kept")
        return [*rows, *run.kept_rows(), total]


def _parameters(call: Call) -> dict[str, str]:
    """Returns the given arguments as text; booleans as in SQL."""
    arguments = {name: value for name, value in call.arguments.items() if name != "table" and value is not None}
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in arguments.items()}


VACUUM = operation(vacuum, validate=_validate)
