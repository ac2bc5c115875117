"""``<table>.optimizations``: one row per optimization, read from the commits themselves."""

from __future__ import annotations

from pyspark.sql import DataFrame

from catalog.events import OPTIMIZATIONS_SCHEMA
from catalog.tables import ManagedTable
from catalog.virtual_tables.base import VirtualTable


def _rows(table: ManagedTable) -> DataFrame:
    return table.events()


OPTIMIZATIONS = VirtualTable("optimizations", OPTIMIZATIONS_SCHEMA, _rows)
