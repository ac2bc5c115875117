"""``<table>.optimizations``: one row per optimization, from the commits and from what is stored beside them."""

from __future__ import annotations

from pyspark.sql import DataFrame

from catalog.event_store import optimizations
from catalog.events import OPTIMIZATIONS_SCHEMA
from catalog.tables import ManagedTable
from catalog.virtual_tables.base import VirtualTable


def _rows(table: ManagedTable) -> DataFrame:
    return optimizations(table)


OPTIMIZATIONS = VirtualTable("optimizations", OPTIMIZATIONS_SCHEMA, _rows)
