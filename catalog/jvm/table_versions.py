"""The versions of a table in the JVM: which the log can make, the files that each needs, and the log behind them."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog.jvm.java_values import JavaValue, data_frame, java_column, java_data
from catalog.jvm.session import same_active_session
from catalog.jvm.table_state import TableState


class LogFiles(NamedTuple):
    """A number of log files, and their bytes."""

    files: int
    bytes: int


class LogLoad(NamedTuple):
    """What a session that does not know a table reads to load its newest version.

    Attributes:
        milliseconds: how long it took.
        files: number of log files.
        bytes: their bytes.
    """

    milliseconds: int
    files: int
    bytes: int


class TableVersions:
    """The shim's ``TableVersions``. Paths are absolute, have a scheme, and are not URL-encoded.

    Args:
        spark: session of the work.
        java: the shim's object.
    """

    def __init__(self, spark: SparkSession, java: JavaValue) -> None:
        self.spark = spark
        self._java = java

    def oldest(self) -> int:
        """Returns the oldest version that the log can make."""
        return int(self._java.oldest())

    def newest(self) -> int:
        """Returns the newest version."""
        return int(self._java.newest())

    def at(self, millis: int, *, or_oldest: bool = True) -> int:
        """Returns the newest version at a time; -1 if all commits in the log are later.

        Args:
            millis: epoch milliseconds.
            or_oldest: returns the oldest version in the log, where there is one, in place of -1.
        """
        return int(self._java.at(millis, or_oldest))

    def time_of(self, version: int) -> int:
        """Returns the time of a version's commit in epoch milliseconds; the log must be able to make the version."""
        return int(self._java.timeOf(version))

    def state(self, version: int) -> TableState:
        """Returns a version; the log must be able to make it."""
        return TableState(self.spark, self._java.state(version))

    def files(self, version: int) -> DataFrame:
        """Returns ``path`` and ``size`` of the data files and deletion vectors that a version needs."""
        return self._named(self.state(version).actions()).where("is_added").select("path", "size")

    def files_with_deletes(self, version: int) -> DataFrame:
        """Returns ``path`` and ``deletion_vector`` of a version's files with deletion vectors, as the log has them."""
        vector = (
            "concat_ws('@', concat(deletionVector.storageType, deletionVector.pathOrInlineDv), deletionVector.offset)"
        )
        files = self.state(version).files().where("deletionVector IS NOT NULL")
        return files.selectExpr("path", f"{vector} AS deletion_vector")

    def changes(self, first: int | None, last: int) -> DataFrame:
        """Returns the files that the commits of some versions name; fails if the log lacks one of the commits.

        Args:
            first: first version; None for the first commit that the log has.
            last: last version; there are no rows if it is before the first one.

        Returns:
            version BIGINT, is_added BOOLEAN (otherwise removed), path STRING, size BIGINT (-1 if unknown), for data
            files, deletion vectors and files of the change feed; removed_at BIGINT, epoch milliseconds, 0 if unknown
            and for files of the change feed, which no version needs, NULL for other files that are added.
        """
        if first is not None and first > last:
            schema = "version bigint, is_added boolean, path string, size bigint, removed_at bigint"
            with same_active_session():
                return self.spark.createDataFrame([], schema)
        commits = self._java.commits(-1 if first is None else first, last)
        return self._named(data_frame(commits, self.spark), "version")

    def needed(self, removed_since: int) -> DataFrame:
        """Returns the ``path`` of the files that the newest version needs, or that were removed since a time.

        Args:
            removed_since: epoch milliseconds.
        """
        files = self._named(self.state(self.newest()).actions())
        return files.where(F.col("is_added") | (F.col("removed_at") >= removed_since)).select("path")

    def _named(self, actions: DataFrame, *columns: str) -> DataFrame:
        """Returns the files that actions of the log name, one row each, with further columns of the actions."""
        path = F.coalesce("add.path", "remove.path", "cdc.path")
        size = F.coalesce("add.size", "remove.size", "cdc.size", F.lit(-1))
        vector = F.coalesce("add.deletionVector", "remove.deletionVector")
        places = self.places(F.struct(path.alias("path"), size.alias("size"), vector.alias("deletionVector")))
        removed_at = F.when(F.expr("add IS NULL"), F.coalesce("remove.deletionTimestamp", F.lit(0)))
        return (
            actions.where("add IS NOT NULL OR remove IS NOT NULL OR cdc IS NOT NULL")
            .select(*columns, F.isnull("remove").alias("is_added"), removed_at.alias("removed_at"), F.inline(places))
            .withColumnsRenamed({"_1": "path", "_2": "size"})
        )

    def places(self, file: Column) -> Column:
        """Returns where a data file is, and then where its deletion vector is stored, if it is not in the log.

        Args:
            file: struct of ``path``, ``size`` and ``deletionVector``, as in the log.

        Returns:
            Array of structs: path ``_1`` and size ``_2``.
        """
        return Column(self._java.places(java_column(file)))

    def existing(self, paths: DataFrame, parallelism: int) -> DataFrame:
        """Returns the files and empty folders that exist, in the form of Delta's inventories; Spark tasks look at each.

        Args:
            paths: the column ``path``.
            parallelism: number of concurrent tasks.
        """
        return data_frame(self._java.existing(java_data(paths), parallelism), self.spark)

    def log_guard(self) -> str:
        """Returns why the log must be left to Delta; empty if it may be cleaned up."""
        return str(self._java.logGuard())

    def checkpoint_before(self, version: int) -> int:
        """Returns the version of the newest checkpoint that is not newer than a version; -1 without one."""
        return int(self._java.checkpointBefore(version))

    def checkpoint(self, version: int) -> None:
        """Writes a checkpoint of a version."""
        self._java.checkpoint(version)

    def load(self) -> LogLoad:
        """Loads the newest version, as a session does that does not know the table."""
        return LogLoad(*map(int, self._java.load()))

    def log_before(self, version: int) -> LogFiles:
        """Returns the log files before a version."""
        return LogFiles(*map(int, self._java.logBefore(version)))

    def delete_log_before(self, version: int) -> LogFiles:
        """Deletes the log files before a version, oldest first; a checkpoint of the version must exist."""
        return LogFiles(*map(int, self._java.deleteLogBefore(version)))
