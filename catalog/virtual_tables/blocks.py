"""``<table>.blocks``: one row per block of a live file."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from catalog.table.managed_table import ManagedTable
from catalog.virtual_tables.virtual_table import VirtualTable

_SCHEMA = "revision_id bigint, cube_id string, path string, min_weight int, max_weight int, element_count bigint"


def _rows(table: ManagedTable) -> DataFrame:
    return (
        table.snapshot()
        .blocks()
        .select(F.col("revision").alias("revision_id"), "cube_id", "path", "min_weight", "max_weight", "element_count")
    )


BLOCKS = VirtualTable("blocks", _SCHEMA, _rows)
