"""``metastore_summary``: one row per table, with its index and its automatic optimization."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import functions as F

from catalog.errors import UseError
from catalog.history.event_store import newest_event
from catalog.history.events import FAILED
from catalog.history.moments import moment
from catalog.jvm.session import described_jobs
from catalog.properties.optimization_properties import TYPE_KEY, effective_type
from catalog.state.automation import RUNNING, SCHEDULED, SUSPENDED
from catalog.state.lease import holder_of
from catalog.state.suspension import suspension_of
from catalog.system_tables.system_table import Listed, SystemQuery, SystemTable, error_text, listed_tables
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot

logger = logging.getLogger(__name__)

_SCHEMA = (
    "catalog string, namespace string, name string, location string, provider string, "
    "table_properties map<string,string>, index_columns array<string>, last_version bigint, unindexed_files bigint, "
    "unindexed_bytes bigint, state string, last_run timestamp, next_run timestamp, last_error string, message string"
)
_OF_LISTING = frozenset({"catalog", "namespace", "name", "location", "provider"})
_OF_FILES = frozenset({"unindexed_files", "unindexed_bytes"})
_OF_RUNS = frozenset({"state", "last_run", "next_run", "last_error", "message"})
_UNKNOWN: Mapping[str, Any] = dict.fromkeys(
    ("table_properties", "index_columns", "last_version", *_OF_FILES, *_OF_RUNS)
)


def _rows(query: SystemQuery) -> Iterator[Mapping[str, Any]]:
    wanted = frozenset(query.columns)
    for listed in listed_tables(query):
        row = {**_UNKNOWN, **listed.shown}
        mistakes: list[UseError] = []
        if wanted - _OF_LISTING:
            try:
                mistakes = _look(query, listed, wanted, row)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with one table is shown in its row
                logger.info("%s cannot be read: %s", listed.lookup, error_text(error))
                row["last_error"] = error_text(error)
            _add_automation(listed, row)
        if mistakes and row["last_error"] is None:
            row["last_error"] = "; ".join(map(error_text, mistakes))
        yield row


def _look(query: SystemQuery, listed: Listed, wanted: frozenset[str], row: dict[str, Any]) -> list[UseError]:
    """Fills in what the table itself tells, as far as it is asked for, until something cannot be read.

    Returns:
        Mistakes in the table's properties.
    """
    spark = query.spark
    table = ManagedTable.find(spark, listed.lookup)
    snapshot = table.snapshot()
    row["last_version"], row["table_properties"] = snapshot.version, snapshot.configuration
    if wanted & _OF_RUNS:
        _add_last_run(table, snapshot, row)
        suspension = suspension_of(table)
        if suspension is not None:
            row["state"], row["message"] = SUSPENDED, suspension.note
        elif holder_of(table, query.now) is not None:
            row["state"] = RUNNING
    if wanted & _OF_FILES:
        with described_jobs(spark, f"USE metastore_summary: unindexed files of {table.name}"):
            found = snapshot.files.where("revision = 0").agg(
                F.count(F.lit(1)).alias("files"), F.coalesce(F.sum("size"), F.lit(0)).alias("bytes")
            )
            row["unindexed_files"], row["unindexed_bytes"] = found.collect()[0]
    effective = effective_type(snapshot.configuration)
    others = {key: value for key, value in snapshot.configuration.items() if key != TYPE_KEY}
    row["table_properties"] = others if effective is None else {**others, TYPE_KEY: effective}
    if effective is not None and row["state"] is None:
        row["state"] = SCHEDULED
    index = snapshot.index_configuration
    row["index_columns"] = None if index is None else list(index.logical_columns)
    return snapshot.property_errors


def _add_last_run(table: ManagedTable, snapshot: TableSnapshot, row: dict[str, Any]) -> None:
    event = newest_event(table, snapshot.table_id)
    if event is not None:
        row["last_run"] = moment(event.shown["finished_at"])
        if event.state == FAILED:
            told = [text for text in (event.shown["error_code"], event.shown["error"]) if text]
            row["last_error"] = ": ".join(told) or "the last optimization failed"


def _add_automation(listed: Listed, row: dict[str, Any]) -> None:
    """What the service of this process knows is newer than what the table's folder tells."""
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
