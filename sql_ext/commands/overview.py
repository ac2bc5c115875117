"""The overview of a table."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F

from catalog.epoch_millis import moment
from catalog.history.event_files import StoredEvent
from catalog.history.recent_events import newest_event
from catalog.jvm.session import described_jobs
from catalog.properties.optimization_properties import effective_type
from catalog.state.automation import RUNNING, SCHEDULED, SUSPENDED
from catalog.state.lease import holder_of
from catalog.state.suspension import suspension_of
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from procedures.process.application import application
from sql_ext.commands.output import Row

OFF = "off"
_SHOWN = ("optimization_name", "state", "trigger", "finished_at", "version", "error_code", "error")


def overview(table: ManagedTable) -> Row:
    """Returns one row about the table, its index, its files and its automatic optimization; reads only metadata.

    Args:
        table: the table.
    """
    snapshot = table.snapshot()
    index = snapshot.index_configuration
    latest = snapshot.latest_revision
    return {
        "name": table.name,
        "location": table.location,
        "version": snapshot.version,
        "index_columns": None if index is None else list(index.logical_columns),
        "newest_revision": None if latest is None else latest.revision_id,
        "revisions": len([number for number in snapshot.revisions if number > 0]),
        **_files(table, snapshot),
        "last_optimization": _last(newest_event(table, snapshot.table_id)),
        "automatic": {"type": effective_type(snapshot.settings), "state": _state(table, snapshot)},
    }


def _files(table: ManagedTable, snapshot: TableSnapshot) -> dict[str, Any]:
    none = F.lit(0)
    unindexed = F.col("revision") == 0
    with described_jobs(table.spark, f"USE inspect: {table.name}"):
        totals = snapshot.files.agg(
            F.count(F.lit(1)).alias("files"),
            F.count_if(unindexed).alias("unindexed_files"),
            F.coalesce(F.sum("rows"), none).alias("rows"),
            F.coalesce(F.sum(F.when(unindexed, F.col("rows"))), none).alias("unindexed_rows"),
            F.coalesce(F.sum("size"), none).alias("bytes"),
            F.coalesce(F.sum(F.when(unindexed, F.col("size"))), none).alias("unindexed_bytes"),
            F.count_if(F.col("rows").isNull()).alias("without_rows"),
        ).collect()[0]
    return {
        "files": totals.files,
        "indexed_files": totals.files - totals.unindexed_files,
        "unindexed_files": totals.unindexed_files,
        "rows": totals.rows,
        "indexed_rows": totals.rows - totals.unindexed_rows,
        "unindexed_rows": totals.unindexed_rows,
        "rows_known": totals.without_rows == 0,
        "bytes": totals.bytes,
        "unindexed_bytes": totals.unindexed_bytes,
    }


def _last(event: StoredEvent | None) -> dict[str, Any] | None:
    if event is None:
        return None
    shown = {name: event.shown.get(name) for name in _SHOWN} | {"state": event.state}
    finished = moment(shown["finished_at"])
    shown["finished_at"] = None if finished is None else finished.isoformat(timespec="seconds")
    return shown


def _state(table: ManagedTable, snapshot: TableSnapshot) -> str:
    """Returns the state from the table's folder, which does not contain the schedules of other processes."""
    if suspension_of(table) is not None:
        return SUSPENDED
    if holder_of(table, application().clock.now()) is not None:
        return RUNNING
    return SCHEDULED if effective_type(snapshot.settings) is not None else OFF
