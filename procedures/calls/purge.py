"""``CALL use.purge``: deletes the history of a table that is older than a limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from catalog.errors import InvalidArgumentError, RetentionError, VersionError
from catalog.properties.lifecycle_properties import COMPACTION_DELETED_RATIO
from catalog.properties.retention_properties import RETENTION_HOURS
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from procedures.declare.declaration import Call, Parameter, Procedure
from procedures.declare.result_rows import PurgeRow, data_frame_of, ddl_of
from procedures.lifecycle.purge.older_than import (
    ACCEPTED,
    NAME,
    PYTHON_TYPES,
    Age,
    Version,
    millis_of,
    parse_older_than,
)
from procedures.lifecycle.purge.reclamation import Reclamation, ReclamationSettings
from procedures.lifecycle.vacuum.cutoff import Cutoff
from procedures.process.application import application

_MILLIS_PER_HOUR = 3_600_000


def _validate(arguments: Mapping[str, Any]) -> None:
    if arguments[NAME] is not None:
        parse_older_than(arguments[NAME])


def _cutoff(call: Call, table: ManagedTable, snapshot: TableSnapshot) -> Cutoff:
    """Returns what may be deleted; rejects a limit that is too short for the table.

    Raises:
        InvalidArgumentError: a time in the future.
        VersionError: a version that does not exist.
        RetentionError: the limit is below the retention of the table, without ``force``.
    """
    now, floor = application().clock.now(), snapshot.retention_hours
    older_than = call[NAME]
    limit = Age(round(_hours(snapshot) * _MILLIS_PER_HOUR)) if older_than is None else parse_older_than(older_than)
    if isinstance(limit, Version):
        versions = table.handle.versions(call.spark)
        oldest = versions.oldest()
        if not oldest <= limit.version <= snapshot.version:
            raise VersionError.missing(limit.version, oldest, snapshot.version, NAME)
        cutoff = Cutoff.of_version(limit.version, now, floor)
        is_short = limit.version > max(versions.at(cutoff.unreferenced_before), oldest)
    else:
        before = now - limit.millis if isinstance(limit, Age) else millis_of(call.spark, limit)
        if before > now:
            raise InvalidArgumentError.of(NAME, str(older_than), f"{ACCEPTED}; this is in the future")
        hours = (now - before) / _MILLIS_PER_HOUR
        cutoff, is_short = Cutoff.of_retention(hours, now, floor), hours < floor
    if is_short and not call["force"] and not call["dry_run"]:
        shown = f"{_hours(snapshot):g} hours" if older_than is None else older_than
        raise RetentionError(
            f"{NAME} = {shown} reclaims history within the table's retention of {floor:g} hours: readers and writers "
            "that are older than that could fail. See what is lost with dry_run => true, and use force => true to go "
            "below it."
        )
    return cutoff


def _hours(snapshot: TableSnapshot) -> float:
    hours = RETENTION_HOURS.optional_value(snapshot.configuration)
    return snapshot.retention_hours if hours is None else hours


def _run(call: Call) -> DataFrame:
    table = ManagedTable.find(call.spark, call["table"])
    snapshot = table.snapshot()
    ratio = COMPACTION_DELETED_RATIO.optional_value(snapshot.configuration)
    cutoff = _cutoff(call, table, snapshot)
    settings = ReclamationSettings(
        cutoff, 0.0 if ratio is None else ratio, dry_run=call["dry_run"], whole_log=call["force"]
    )
    parameters = {name: str(value) for name, value in call.arguments.items() if name != "table" and value is not None}
    rows = Reclamation(table, settings, call.trigger, parameters).run()
    return data_frame_of(call.spark, PurgeRow, rows)


PURGE = Procedure(
    "purge",
    "Deletes history that is older than a limit: deleted rows, files, log entries and events.",
    (
        Parameter("table", "STRING", "Table name, delta.`path` or path."),
        Parameter(
            NAME,
            "STRING",
            "An interval, a time or a version: that version, or the newest one at that time, and later ones stay. "
            "use.retention.hours or else the table's retention by default.",
            None,
            PYTHON_TYPES,
            ACCEPTED,
        ),
        Parameter("dry_run", "BOOLEAN", "Shows what would be deleted and lost, and changes nothing.", False),
        Parameter(
            "force",
            "BOOLEAN",
            "Allows a limit below the table's own retention, and deletes every log entry that no version needs.",
            False,
        ),
    ),
    ddl_of(PurgeRow),
    _run,
    _validate,
)
