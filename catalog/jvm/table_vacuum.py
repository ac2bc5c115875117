"""A vacuum in the JVM: the steps of Delta's vacuum, and the deletion of single files with the same checks."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog.jvm.java_values import JavaValue, data_frame, java_data, java_list
from catalog.jvm.table_versions import TableVersions


class TableVacuum:
    """The shim's ``TableVacuum``. Paths are absolute and not URL-encoded.

    DataFrames of files have the columns of Delta's inventories: ``path``, ``length``, ``isDir`` and
    ``modificationTime``.

    Args:
        spark: session of the work.
        java: the shim's object.
        versions: the versions of the table.
        delete_before: epoch milliseconds; files that are younger, or were removed later, are kept.
    """

    def __init__(self, spark: SparkSession, java: JavaValue, versions: TableVersions, delete_before: int) -> None:
        self.spark = spark
        self._java = java
        self._versions = versions
        self._delete_before = delete_before

    def listing(self, parallelism: int) -> DataFrame:
        """Returns the files and folders below the table, without hidden ones; Spark tasks list them."""
        return data_frame(self._java.listing(parallelism), self.spark)

    def below(self, inventory: DataFrame) -> DataFrame:
        """Returns the rows of an inventory that a listing could return; drops paths that lead out of the table."""
        return data_frame(self._java.below(java_data(inventory)), self.spark)

    def candidates(self, mode: str, files: DataFrame | None) -> DataFrame:
        """Returns the ``path`` of what Delta's vacuum would delete.

        Args:
            mode: ``FULL`` or ``LITE``.
            files: what exists; None if Delta is to find out.
        """
        inventory = None if files is None else java_data(files)
        return data_frame(self._java.run(mode, inventory, True), self.spark)

    def deletable(self, paths: DataFrame, parallelism: int) -> DataFrame:
        """Returns the existing files older than the retention, and the empty folders; Spark tasks look at each path."""
        is_old = F.col("isDir") | (F.col("modificationTime") < self._delete_before)
        return self._versions.existing(paths, parallelism).where(is_old)

    def outside_of_other_tables(self, files: DataFrame, reasons: Sequence[str]) -> DataFrame:
        """Returns the files without those of other Delta tables whose folders are below the table.

        Args:
            files: files with the column ``reason``.
            reasons: those of files that may be another table's.
        """
        return data_frame(self._java.outsideOfOtherTables(java_data(files), java_list(self.spark, reasons)), self.spark)

    def removals(self) -> DataFrame:
        """Returns ``path`` and ``removed_at`` of the files that commits in the log removed, as ``changes`` has them."""
        changes = self._versions.changes(None, self._versions.newest())
        return changes.where("removed_at IS NOT NULL").select("path", "removed_at")

    def tombstones(self) -> DataFrame:
        """Returns ``path``, ``size`` and ``deletionTimestamp`` of the removed files that the newest version names."""
        actions = self._versions.state(self._versions.newest()).actions()
        return actions.where("remove IS NOT NULL").select("remove.path", "remove.size", "remove.deletionTimestamp")

    def delete_all(self, mode: str, files: DataFrame) -> None:
        """Deletes files by Delta's vacuum, which checks them against the newest version.

        Args:
            mode: ``FULL`` or ``LITE``.
            files: the files that may be deleted.
        """
        self._java.run(mode, java_data(files), False)

    def delete(self, paths: Sequence[str], threads: int) -> list[int]:
        """Deletes files and empty folders, except those that the newest version needs and those that are too young.

        Args:
            paths: up to some thousands.
            threads: number of concurrent requests.

        Returns:
            For each path the bytes that were deleted, -1 if nothing was.
        """
        needed = self._versions.needed(self._delete_before).where(F.col("path").isin(list(paths)))
        unneeded = sorted(set(paths) - {row.path for row in needed.collect()})
        sizes = dict(zip(unneeded, self._java.delete(java_list(self.spark, unneeded), threads), strict=True))
        return [sizes.get(path, -1) for path in paths]

    def started(self, paths: DataFrame, size: int) -> None:
        """Records the start in the log, as Delta does.

        Args:
            paths: what is to be deleted.
            size: its bytes.
        """
        self._java.started(java_data(paths), size)

    def ended(self, deleted: int, folders: int) -> None:
        """Records the end in the log, as Delta does.

        Args:
            deleted: number of files and folders.
            folders: number of folders among them.
        """
        self._java.ended(deleted, folders)

    def failed(self) -> None:
        """Records in the log that the vacuum failed, as Delta does."""
        self._java.failed()

    def covered_version(self) -> int:
        """Returns the newest version that a vacuum in mode ``LITE`` covers; -1 if all are within the retention."""
        return self._versions.at(self._delete_before, or_oldest=False)

    def cover(self, version: int) -> None:
        """Notes for the next vacuum in mode ``LITE`` which version is covered."""
        self._java.cover(version)
