"""``metastore_summary``: one row per table, with its index and its automatic optimization."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from catalog.epoch_millis import moment
from catalog.errors import UseError
from catalog.history.events import FAILED
from catalog.history.recent_events import newest_event
from catalog.jvm.session import described_jobs
from catalog.jvm.session_threads import in_threads
from catalog.properties.optimization_properties import TYPE_KEY, effective_type
from catalog.state.automation import RUNNING, SCHEDULED, SUSPENDED
from catalog.state.lease import holder_of
from catalog.state.suspension import suspension_of
from catalog.system_tables.system_table import Listed, SystemQuery, SystemTable, error_text, listed_tables
from catalog.table.file_table_reads import read_together
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from otree.overfull import is_overfull

logger = logging.getLogger(__name__)

_SCHEMA = (
    "catalog string, namespace string, name string, location string, provider string, "
    "table_properties map<string,string>, index_columns array<string>, last_version bigint, unindexed_files bigint, "
    "unindexed_bytes bigint, overfull_cubes bigint, health int, state string, last_run timestamp_ltz, "
    "next_run timestamp_ltz, last_error string, message string"
)
_OF_LISTING = frozenset({"catalog", "namespace", "name", "location", "provider"})
_OF_FILES = frozenset({"unindexed_files", "unindexed_bytes"})
_OF_CUBES = frozenset({"overfull_cubes"})
_OF_HEALTH = frozenset({"health"})
_OF_RUNS = frozenset({"state", "last_run", "next_run", "last_error", "message"})
# Their files are read in one Spark job.
_TABLES_READ_TOGETHER = 50
_UNKNOWN: Mapping[str, Any] = dict.fromkeys(
    ("table_properties", "index_columns", "last_version", *_OF_FILES, *_OF_CUBES, *_OF_HEALTH, *_OF_RUNS)
)


def _rows(query: SystemQuery) -> Iterator[Mapping[str, Any]]:
    tables = listed_tables(query)
    for first in range(0, len(tables), _TABLES_READ_TOGETHER):
        yield from _rows_of(query, tables[first : first + _TABLES_READ_TOGETHER])


def _rows_of(query: SystemQuery, tables: Sequence[Listed]) -> Iterator[Mapping[str, Any]]:
    wanted = frozenset(query.columns)
    if not wanted - _OF_LISTING:
        for listed in tables:
            yield {**_UNKNOWN, **listed.shown}
        return
    opened = in_threads(query.spark, partial(_open, query, wanted), tables)
    unlisted = [o.snapshot for o in opened if isinstance(o, _Opened) and o.needs_files]
    with described_jobs(query.spark, f"USE metastore_summary: files of {len(unlisted)} tables"):
        read_together(unlisted)
    yield from in_threads(query.spark, partial(_row, query, wanted), list(zip(tables, opened, strict=True)))


def _row(query: SystemQuery, wanted: frozenset[str], look: tuple[Listed, _Opened | Exception]) -> Mapping[str, Any]:
    listed, outcome = look
    row = {**_UNKNOWN, **listed.shown}
    mistakes: list[UseError] = []
    problem = outcome if isinstance(outcome, Exception) else None
    if isinstance(outcome, _Opened):
        try:
            mistakes = _look(query, outcome, wanted, row)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one table is shown in its row
            problem = error
    if problem is not None:
        logger.info("%s cannot be read: %s", listed.lookup, error_text(problem))
        row["last_error"] = error_text(problem)
    _add_automation(listed, row)
    if mistakes and row["last_error"] is None:
        row["last_error"] = "; ".join(map(error_text, mistakes))
    return row


@dataclass(frozen=True)
class _Opened:
    """A table, and its newest version.

    Attributes:
        table: the table.
        snapshot: its newest version.
        needs_files: whether its files are still to be read.
    """

    table: ManagedTable
    snapshot: TableSnapshot
    needs_files: bool


def _open(query: SystemQuery, wanted: frozenset[str], listed: Listed) -> _Opened | Exception:
    """The newest version of a table, or the reason why it cannot be read."""
    try:
        table = ManagedTable.find(query.spark, listed.lookup)
        snapshot = table.snapshot()
        # The unindexed files of a table without an index are counted beside its version.
        needs_files = bool(wanted & (_OF_CUBES | _OF_HEALTH)) or (bool(wanted & _OF_FILES) and snapshot.has_spaces)
        # Most tables have few files, which Delta lists beside the version.
        return _Opened(table, snapshot, needs_files and not snapshot.version_files.keep_listed())
    except Exception as error:  # noqa: BLE001 - see _rows_of
        return error


def _look(query: SystemQuery, opened: _Opened, wanted: frozenset[str], row: dict[str, Any]) -> list[UseError]:
    """Fills in the requested columns from the table itself, until something cannot be read.

    Returns:
        Mistakes in the table's properties.
    """
    table, snapshot = opened.table, opened.snapshot
    row["last_version"], row["table_properties"] = snapshot.version, snapshot.configuration
    if wanted & _OF_RUNS:
        _add_last_run(table, snapshot, row)
        suspension = suspension_of(table)
        if suspension is not None:
            row["state"], row["message"] = SUSPENDED, suspension.note
        elif holder_of(table, query.now) is not None:
            row["state"] = RUNNING
    if wanted & _OF_FILES:
        with described_jobs(query.spark, f"USE metastore_summary: unindexed files of {table.name}"):
            unindexed = snapshot.unindexed_total
        row["unindexed_files"], row["unindexed_bytes"] = unindexed.files, unindexed.bytes
    if wanted & _OF_CUBES:
        with described_jobs(query.spark, f"USE metastore_summary: cubes of {table.name}"):
            row["overfull_cubes"] = _overfull_cubes(snapshot)
    if wanted & _OF_HEALTH:
        row["health"] = query.health(table)
    effective = effective_type(snapshot.settings)
    others = {key: value for key, value in snapshot.configuration.items() if key != TYPE_KEY}
    row["table_properties"] = others if effective is None else {**others, TYPE_KEY: effective}
    if effective is not None and row["state"] is None:
        row["state"] = SCHEDULED
    index = snapshot.index_configuration
    row["index_columns"] = None if index is None else list(index.logical_columns)
    return snapshot.property_errors


def _overfull_cubes(snapshot: TableSnapshot) -> int:
    """How many cubes of the newest revision hold more than twice the desired rows."""
    latest = snapshot.latest_revision
    if latest is None:
        return 0
    states = snapshot.cube_states(latest).values()
    return sum(is_overfull(state.element_count, latest.desired_cube_size) for state in states)


def _add_last_run(table: ManagedTable, snapshot: TableSnapshot, row: dict[str, Any]) -> None:
    event = newest_event(table, snapshot.table_id)
    if event is not None:
        row["last_run"] = moment(event.shown["finished_at"])
        if event.state == FAILED:
            parts = [text for text in (event.shown["error_code"], event.shown["error"]) if text]
            row["last_error"] = ": ".join(parts) or "the last optimization failed"


def _add_automation(listed: Listed, row: dict[str, Any]) -> None:
    """The state in the service of this process is newer than that in the table's folder."""
    automation = listed.automation
    if automation is None:
        return
    row["state"] = automation.state
    row["next_run"] = moment(automation.next_run)
    if automation.last_run is not None:
        row["last_run"], row["last_error"] = moment(automation.last_run), automation.last_error
    row["last_error"] = automation.last_error or row["last_error"]
    row["message"] = "; ".join(note for note in (row["message"], automation.note) if note) or None


METASTORE_SUMMARY = SystemTable("metastore_summary", _SCHEMA, _rows)
