"""The overview of a table, read in a session."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F

from catalog.jvm.session import described_jobs
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from procedures.process.application import application
from sql_ext.commands.output import Row
from sql_ext.commands.overview import overview_row, small_bytes


def overview(table: ManagedTable) -> Row:
    """Returns one row about the table, its index, its files and its automatic optimization; reads only metadata.

    Args:
        table: the table.
    """
    snapshot = table.snapshot()
    return overview_row(table, snapshot, _files(table, snapshot), application().clock.now())


def _files(table: ManagedTable, snapshot: TableSnapshot) -> dict[str, Any]:
    none = F.lit(0)
    small = small_bytes(snapshot.settings)
    unindexed = F.col("revision") == 0
    with described_jobs(table.spark, f"USE inspect: {table.name}"):
        totals = snapshot.file_rows.agg(
            F.count(F.lit(1)).alias("files"),
            F.count_if(unindexed).alias("unindexed_files"),
            F.coalesce(F.sum("rows"), none).alias("rows"),
            F.coalesce(F.sum(F.when(unindexed, F.col("rows"))), none).alias("unindexed_rows"),
            F.count_if(F.col("rows").isNull()).alias("files_without_rows"),
            F.coalesce(F.sum("size"), none).alias("bytes"),
            F.coalesce(F.sum(F.when(unindexed, F.col("size"))), none).alias("unindexed_bytes"),
            F.count_if(F.col("size") < small).alias("small_files"),
            F.count_if(F.col("deletion_vector") != "").alias("files_with_deleted_rows"),
            F.coalesce(F.sum("deleted"), none).alias("deleted_rows"),
        )
        return totals.collect()[0].asDict()
