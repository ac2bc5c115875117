"""``ingestion`` of all tables: the rows of each ``<table>.ingestion``, with the table's name."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from catalog.insights.commit_rows import INGESTION_SCHEMA
from catalog.insights.ingestion import ingestion_rows
from catalog.system_tables.system_table import SystemQuery, SystemTable, error_text, listed_tables
from catalog.table.managed_table import ManagedTable

logger = logging.getLogger(__name__)


def _rows(query: SystemQuery) -> Iterator[Mapping[str, Any]]:
    for listed in listed_tables(query):
        try:
            table = ManagedTable.find(query.spark, listed.lookup)
            rows = ingestion_rows(table)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one table is shown in its row
            text = error_text(error)
            logger.warning("%s: its commits cannot be read: %s", listed.lookup, text)
            yield {**dict.fromkeys(query.columns), "table": listed.lookup, "error": text}
            continue
        for row in rows:
            yield {"table": table.name, "error": None, **row.shown}


INGESTION = SystemTable("ingestion", f"table string, {INGESTION_SCHEMA}, error string", _rows)
