"""A vacuum in the JVM: the steps of Delta's vacuum, and the deletion of single files with the same checks."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from catalog.jvm.java_values import JavaValue, data_frame, java_data, java_list


class TableVacuum:
    """The shim's ``TableVacuum``. Paths are absolute and not URL-encoded.

    DataFrames of files have the columns of Delta's inventories: ``path``, ``length``, ``isDir`` and
    ``modificationTime``.

    Args:
        spark: session of the work.
        java: the shim's object.
    """

    def __init__(self, spark: SparkSession, java: JavaValue) -> None:
        self.spark = spark
        self._java = java

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
        return data_frame(self._java.candidates(mode, None if files is None else java_data(files)), self.spark)

    def deletable(self, paths: DataFrame, parallelism: int) -> DataFrame:
        """Returns the existing files older than the retention, and the empty folders; Spark tasks look at each path."""
        return data_frame(self._java.deletable(java_data(paths), parallelism), self.spark)

    def removals(self) -> DataFrame:
        """Returns the files that commits in the log removed; ``modificationTime`` is the time of the removal."""
        return data_frame(self._java.removals(), self.spark)

    def tombstones(self) -> DataFrame:
        """Returns ``path``, ``size`` and ``deletionTimestamp`` of the removed files that the newest version names."""
        return data_frame(self._java.tombstones(), self.spark)

    def delete_all(self, mode: str, files: DataFrame) -> None:
        """Deletes files by Delta's vacuum, which checks them against the newest version.

        Args:
            mode: ``FULL`` or ``LITE``.
            files: the files that may be deleted.
        """
        self._java.deleteAll(mode, java_data(files))

    def delete(self, paths: Sequence[str], threads: int) -> list[int]:
        """Deletes files and empty folders, except those that the newest version needs and those that are too young.

        Args:
            paths: up to some thousands.
            threads: number of concurrent requests.

        Returns:
            For each path the bytes that were deleted, -1 if nothing was.
        """
        return list(self._java.delete(java_list(self.spark, paths), threads))

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
        return int(self._java.coveredVersion())

    def cover(self, version: int) -> None:
        """Notes for the next vacuum in mode ``LITE`` which version is covered."""
        self._java.cover(version)
