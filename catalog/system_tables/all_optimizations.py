"""``optimizations`` of all tables: the rows of each ``<table>.optimizations``, with the table's name."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from catalog.epoch_millis import moment
from catalog.history.event_store import optimizations
from catalog.history.events import EVENTS_FOLDER, OPTIMIZATIONS_SCHEMA
from catalog.system_tables.system_table import SystemQuery, SystemTable, error_code, error_text, listed_tables
from catalog.table.managed_table import ManagedTable
from otree.revision import last_revision_id

logger = logging.getLogger(__name__)


# Computed here: a timestamp from Spark has no zone, and is ambiguous in an hour that occurs twice.
_MOMENTS = {"started_time": "started_at", "finished_time": "finished_at"}
_UNREADABLE = "unreadable"


def _rows(query: SystemQuery) -> Iterator[Mapping[str, Any]]:
    wanted = [name for name in query.columns if name != "table"]
    of_event = list(dict.fromkeys(_MOMENTS.get(name, name) for name in wanted))
    for listed in listed_tables(query):
        try:
            rows = _rows_of(query.spark, listed.lookup, of_event)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one table is shown in its row
            text = error_text(error)
            logger.warning("%s: its optimizations cannot be read: %s", listed.lookup, text)
            problem = {"state": _UNREADABLE, "error": text, "error_code": error_code(error)}
            yield {"table": listed.lookup, **dict.fromkeys(wanted), **problem}
            continue
        for row in rows:
            moments = {name: moment(row[_MOMENTS[name]]) for name in wanted if name in _MOMENTS}
            yield {**row, **moments}


def _rows_of(spark: SparkSession, lookup: str, of_event: Sequence[str]) -> list[dict[str, Any]]:
    table = ManagedTable.find(spark, lookup)
    # The history of a table that was never optimized need not be read.
    if not table.list_state(EVENTS_FOLDER) and not last_revision_id(table.snapshot().configuration):
        return []
    events = optimizations(table).select("write_id", *of_event).collect()
    return [{"table": table.name, **{name: event[name] for name in of_event}} for event in events]


OPTIMIZATIONS = SystemTable("optimizations", f"table string, {OPTIMIZATIONS_SCHEMA}", _rows)
