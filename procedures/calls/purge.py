"""``CALL use.purge``: deletes the history of a table that is older than a limit."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Annotated, Any, TypeAlias

from catalog.errors import InvalidArgumentError, RetentionError, VersionError
from catalog.properties.lifecycle_properties import COMPACTION_DELETED_RATIO
from catalog.properties.retention_properties import RETENTION_HOURS
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from procedures.declare.declaration import Call
from procedures.declare.operation import Constraint, TableName, operation
from procedures.lifecycle.purge.older_than import (
    ACCEPTED,
    NAME,
    Age,
    Version,
    millis_of,
    parse_older_than,
)
from procedures.lifecycle.purge.reclamation import PurgeRow, Reclamation, ReclamationSettings
from procedures.lifecycle.vacuum.cutoff import Cutoff
from procedures.process.application import application

_MILLIS_PER_HOUR = 3_600_000
_Written: TypeAlias = str | int | timedelta | datetime | date | None


def _validate(arguments: Mapping[str, Any]) -> None:
    if arguments[NAME] is not None:
        parse_older_than(arguments[NAME])


def _cutoff(table: ManagedTable, snapshot: TableSnapshot, older_than: _Written, *, may_be_short: bool) -> Cutoff:
    """Returns what may be deleted; rejects a limit that is too short for the table.

    Raises:
        InvalidArgumentError: a time in the future.
        VersionError: a version that does not exist.
        RetentionError: the limit is below the retention of the table, without ``force``.
    """
    now, floor = application().clock.now(), snapshot.retention_hours
    limit = Age(round(_hours(snapshot) * _MILLIS_PER_HOUR)) if older_than is None else parse_older_than(older_than)
    if isinstance(limit, Version):
        versions = table.handle.versions(table.spark)
        oldest = versions.oldest()
        if not oldest <= limit.version <= snapshot.version:
            raise VersionError.missing(limit.version, oldest, snapshot.version, NAME)
        cutoff = Cutoff.of_version(limit.version, now, floor)
        is_short = limit.version > max(versions.at(cutoff.unreferenced_before), oldest)
    else:
        before = now - limit.millis if isinstance(limit, Age) else millis_of(table.spark, limit)
        if before > now:
            raise InvalidArgumentError.of(NAME, str(older_than), f"{ACCEPTED}; this is in the future")
        hours = (now - before) / _MILLIS_PER_HOUR
        cutoff, is_short = Cutoff.of_retention(hours, now, floor), hours < floor
    if is_short and not may_be_short:
        shown = f"{_hours(snapshot):g} hours" if older_than is None else older_than
        raise RetentionError(
            f"{NAME} = {shown} reclaims history within the table's retention of {floor:g} hours: readers and writers "
            "that are older than that could fail. See what is lost with dry_run => true, and use force => true to go "
            "below it."
        )
    return cutoff


def _hours(snapshot: TableSnapshot) -> float:
    hours = RETENTION_HOURS.optional_value(snapshot.settings)
    return snapshot.retention_hours if hours is None else hours


def purge(
    call: Call,
    table: TableName,
    *,
    older_than: Annotated[_Written, Constraint(accepted=ACCEPTED)] = None,
    dry_run: bool = False,
    force: bool = False,
) -> list[PurgeRow]:
    """Deletes history that is older than a limit: deleted rows, files, log entries and events.

    Args:
        older_than: An interval, a time or a version: that version, or the newest one at that time, and later ones stay.
            use.retention.hours or else the table's retention by default.
        dry_run: Shows what would be deleted and lost, and changes nothing.
        force: Allows a limit below the table's own retention, and deletes every log entry that no version needs.

    Returns:
        A row per step, a row per protected version, and a last row with the versions that are lost.

    Raises:
        UseError: an argument is invalid, the limit is too short, a protection cannot be read, or the table is being
            optimized; no file was deleted.
    """
    found = ManagedTable.find(call.spark, table)
    snapshot = found.snapshot()
    ratio = COMPACTION_DELETED_RATIO.optional_value(snapshot.settings)
    cutoff = _cutoff(found, snapshot, older_than, may_be_short=dry_run or force)
    settings = ReclamationSettings(cutoff, 0.0 if ratio is None else ratio, dry_run=dry_run, whole_log=force)
    parameters = {name: str(value) for name, value in call.arguments.items() if name != "table" and value is not None}
    return list(Reclamation(found, settings, call.trigger, parameters).run())


PURGE = operation(purge, validate=_validate)
