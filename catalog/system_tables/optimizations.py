"""``optimizations`` of all tables: the rows of each ``<table>.optimizations``, with the table's name."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from catalog.errors import UseError
from catalog.event_store import EVENTS_FOLDER, optimizations
from catalog.events import OPTIMIZATIONS_SCHEMA
from catalog.system_tables.base import SystemTable, error_text, listed_tables
from catalog.tables import ManagedTable
from otree.revision import last_revision_id

logger = logging.getLogger(__name__)


def _rows(spark: SparkSession, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    of_event = [name for name in columns if name != "table"]
    for listed in listed_tables(spark):
        try:
            table = ManagedTable.find(spark, listed.lookup)
            # A table that was never optimized need not be asked for its history.
            if not table.list_state(EVENTS_FOLDER) and not last_revision_id(table.snapshot().configuration):
                continue
            events = optimizations(table).select("write_id", *of_event).collect()
        except (UseError, Py4JError, PySparkException) as error:
            logger.warning("%s: its optimizations cannot be read: %s", listed.lookup, error_text(error))
            continue
        for event in events:
            yield {"table": table.name, **{name: event[name] for name in of_event}}


OPTIMIZATIONS = SystemTable("optimizations", f"table string, {OPTIMIZATIONS_SCHEMA}", _rows)
