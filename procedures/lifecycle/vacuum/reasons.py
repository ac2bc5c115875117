"""Why a vacuum deletes or keeps files."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from catalog.jvm.table_vacuum import TableVacuum
from catalog.state.write_records import FILE_NAME
from catalog.table.snapshot import FilesTotal

EXPIRED, UNREFERENCED, EMPTY_FOLDER, KEPT = "EXPIRED", "UNREFERENCED", "EMPTY_FOLDER", "KEPT"
ABORTED_REWRITE, STORED_PLAN = "ABORTED_REWRITE", "STORED_PLAN"


def with_reasons(vacuum: TableVacuum, files: DataFrame, delete_before: int) -> DataFrame:
    """Returns files and empty folders with the column ``reason``; leaves out files that a commit removed too recently.

    Delta forgets which files were removed once the retention of the table is over. If a vacuum keeps files for longer,
    the commits in the log have the time of the removal.

    Args:
        vacuum: the vacuum of the table.
        files: files and empty folders that Delta's vacuum would delete, in the form of an inventory.
        delete_before: epoch milliseconds.
    """
    removed = vacuum.removals().groupBy("path").agg(F.max("removed_at").alias("removed_at"))
    reason = (
        F.when(F.col("isDir"), EMPTY_FOLDER)
        .when(F.col("removed_at").isNotNull(), EXPIRED)
        .when(F.col("path").rlike(FILE_NAME), ABORTED_REWRITE)
        .otherwise(UNREFERENCED)
        .alias("reason")
    )
    is_recent = F.coalesce(F.col("removed_at") >= delete_before, F.lit(False))
    return files.join(removed, "path", "left").where(~is_recent).select(*files.columns, reason)


def totals_by_reason(files: DataFrame) -> dict[str, FilesTotal]:
    """Returns the totals of files with a reason, sorted by reason."""
    rows = files.groupBy("reason").agg(F.count("*").alias("files"), F.sum("length").alias("bytes")).collect()
    return {row.reason: FilesTotal(row.files, row.bytes) for row in sorted(rows, key=lambda row: str(row.reason))}


def kept_total(vacuum: TableVacuum, live: DataFrame, delete_before: int) -> FilesTotal:
    """Returns the total of the live files and of the files that a commit removed within the retention.

    Args:
        vacuum: the vacuum of the table.
        live: ``path`` and ``size`` of the live files.
        delete_before: epoch milliseconds.
    """
    removed = vacuum.tombstones().where(F.col("deletionTimestamp") >= delete_before).select("path", "size")
    # A commit that only changes the deletion vector of a file removes the file and adds it again.
    files = live.union(removed).groupBy("path").agg(F.max("size").alias("size"))
    row = files.agg(F.count("*"), F.sum("size")).first()
    return FilesTotal(0, 0) if row is None else FilesTotal(row[0], row[1] or 0)
