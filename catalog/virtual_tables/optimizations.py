"""``<table>.optimizations``: one row per optimization, read from the commits themselves."""

from __future__ import annotations

from pyspark.sql import DataFrame

from catalog.events import OPTIMIZATIONS_SCHEMA, read_events
from catalog.tables import ManagedTable
from catalog.virtual_tables.base import VirtualTable


def _rows(table: ManagedTable) -> DataFrame:
    path = table.location.replace("`", "``")
    return read_events(table.spark.sql(f"DESCRIBE HISTORY delta.`{path}`"))


OPTIMIZATIONS = VirtualTable("optimizations", OPTIMIZATIONS_SCHEMA, _rows)
