"""``<table>.optimizations``: one row per optimization, from the commits and from the stored events."""

from __future__ import annotations

from pyspark.sql import DataFrame

from catalog.history.event_store import optimizations
from catalog.history.events import OPTIMIZATIONS_SCHEMA
from catalog.table.managed_table import ManagedTable
from catalog.virtual_tables.virtual_table import VirtualTable


def _rows(table: ManagedTable) -> DataFrame:
    return optimizations(table)


OPTIMIZATIONS = VirtualTable("optimizations", OPTIMIZATIONS_SCHEMA, _rows)
