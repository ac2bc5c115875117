"""``<table>.index_files``: one row per live file, indexed or not."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from catalog.files.block_rows import file_levels
from catalog.table.managed_table import ManagedTable
from catalog.virtual_tables.virtual_table import VirtualTable

_SCHEMA = (
    "path string, revision_id bigint, size bigint, rows bigint, level int, blocks int, min_weight int, "
    "max_weight int, modification_time bigint, deletion_vector boolean, partition_values map<string,string>"
)


def _rows(table: ManagedTable) -> DataFrame:
    snapshot = table.snapshot()
    filled = F.filter("blocks", lambda block: block["elementCount"] > 0)
    return snapshot.files.join(file_levels(snapshot.blocks()), "path", "left").select(
        "path",
        F.col("revision").alias("revision_id"),
        "size",
        "rows",
        F.when(F.col("revision") > 0, F.coalesce("level", F.lit(0))).otherwise(F.lit(-1)).alias("level"),
        F.coalesce(F.size("blocks"), F.lit(0)).alias("blocks"),
        F.array_min(F.transform(filled, lambda block: block["minWeight"])).alias("min_weight"),
        F.array_max(F.transform(filled, lambda block: block["maxWeight"])).alias("max_weight"),
        "modification_time",
        (F.col("deletion_vector") != "").alias("deletion_vector"),
        "partition_values",
    )


INDEX_FILES = VirtualTable("index_files", _SCHEMA, _rows)
