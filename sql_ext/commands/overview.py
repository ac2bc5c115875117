"""The overview of a table: one row of facts, from a session or from the log alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from catalog.clock import SYSTEM_CLOCK, Clock
from catalog.epoch_millis import moment
from catalog.files.arrays import UNKNOWN
from catalog.files.file_table import FileTable
from catalog.history.event_files import StoredEvent
from catalog.history.recent_events import newest_event
from catalog.properties.names import declared_property
from catalog.properties.optimization_properties import effective_type
from catalog.properties.target_file_size import TARGET_FILE_BYTES
from catalog.state.automation import RUNNING, SCHEDULED, SUSPENDED
from catalog.state.lease import holder_of
from catalog.state.state_files import StateFolder
from catalog.state.suspension import suspension_of
from procedures.insight.health.version_facts import ViewedTable, ViewedVersion
from sql_ext.commands.output import Row
from sql_ext.from_log.log_table import LogTable

OFF = "off"
_SHOWN = ("optimization_name", "state", "trigger", "finished_at", "version", "error_code", "error")
# Files below this share of the desired size count as small.
_SMALL_SHARE = 0.25


def overview_row(table: ViewedTable, version: ViewedVersion, files: Mapping[str, int], now: int) -> Row:
    """Returns one row about a table, its index, its files and its automatic optimization.

    Args:
        table: the table.
        version: its newest version.
        files: numbers of files, rows and bytes, see ``file_totals``.
        now: epoch milliseconds.
    """
    index, latest = version.index_configuration, version.latest_revision
    return {
        "name": table.name,
        "location": table.location,
        "version": version.version,
        "index_columns": None if index is None else list(index.logical_columns),
        "newest_revision": None if latest is None else latest.revision_id,
        "revisions": len([number for number in version.revisions if number > 0]),
        "files": files["files"],
        "indexed_files": files["files"] - files["unindexed_files"],
        "unindexed_files": files["unindexed_files"],
        "small_files": files["small_files"],
        "rows": files["rows"],
        "indexed_rows": files["rows"] - files["unindexed_rows"],
        "unindexed_rows": files["unindexed_rows"],
        "rows_known": files["files_without_rows"] == 0,
        "files_with_deleted_rows": files["files_with_deleted_rows"],
        "deleted_rows": files["deleted_rows"],
        "bytes": files["bytes"],
        "unindexed_bytes": files["unindexed_bytes"],
        "properties": {
            key: text for key, text in sorted(version.settings.items()) if declared_property(key) is not None
        },
        "last_optimization": _last(newest_event(table, version.table_id)),
        "automatic": {"type": effective_type(version.settings), "state": _state(table, version, now)},
    }


def small_bytes(settings: Mapping[str, str]) -> float:
    """Returns the size below which a file counts as small.

    Args:
        settings: properties of the table.
    """
    return _SMALL_SHARE * TARGET_FILE_BYTES.value(settings)


def overview_of_log(table: LogTable, clock: Clock = SYSTEM_CLOCK) -> Row:
    """Returns the overview of a table from its log.

    Args:
        table: the table.
        clock: the time.

    Raises:
        UseError: a property is wrong, or the files cannot be read without Spark.
    """
    return overview_row(table, table, file_totals(table.file_table, small_bytes(table.settings)), clock.now())


def file_totals(files: FileTable, small: float) -> dict[str, int]:
    """Returns the numbers of files, rows and bytes.

    Args:
        files: the live files.
        small: bytes below which a file counts as small.
    """
    unindexed, known = files.revision == 0, files.rows != UNKNOWN
    return {
        "files": len(files),
        "unindexed_files": int(unindexed.sum()),
        "small_files": int((files.size < small).sum()),
        "rows": int(files.rows[known].sum()),
        "unindexed_rows": int(files.rows[known & unindexed].sum()),
        "files_without_rows": int(np.count_nonzero(~known)),
        "files_with_deleted_rows": int((files.deletion_vector != "").sum()),
        "deleted_rows": int(files.deleted.sum()),
        "bytes": int(files.size.sum()),
        "unindexed_bytes": int(files.size[unindexed].sum()),
    }


def _last(event: StoredEvent | None) -> dict[str, Any] | None:
    if event is None:
        return None
    shown = {name: event.shown.get(name) for name in _SHOWN} | {"state": event.state}
    finished = moment(shown["finished_at"])
    shown["finished_at"] = None if finished is None else finished.isoformat(timespec="seconds")
    return shown


def _state(table: StateFolder, version: ViewedVersion, now: int) -> str:
    """Returns the state from the table's folder, which does not contain the schedules of other processes."""
    if suspension_of(table) is not None:
        return SUSPENDED
    if holder_of(table, now) is not None:
        return RUNNING
    return SCHEDULED if effective_type(version.settings) is not None else OFF
