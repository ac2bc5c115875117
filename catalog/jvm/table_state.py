"""One version of a table, as Delta in the JVM knows it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from catalog.jvm.file_statistics import FileStatistics
from catalog.jvm.java_values import JavaValue, data_frame, java_data, jvm_session

_MILLIS_PER_HOUR = 3_600_000


@dataclass(frozen=True)
class TableFacts:
    """Metadata of one version of a table.

    Attributes:
        version: Delta version; -1 for a table that is being created.
        committed_at: modification time of the version's commit file, in epoch milliseconds.
        table_id: Delta's metadata id.
        configuration: table properties.
        schema: logical schema; None when the table was dropped.
        partition_columns: logical names.
        retention_hours: how long the table keeps deleted files, in hours.
        database_properties: properties of the table's database below ``use.``.
        session_properties: settings of the session that stand for properties, by the name of the property.
    """

    version: int
    committed_at: int
    table_id: str
    configuration: dict[str, str]
    schema: StructType | None
    partition_columns: tuple[str, ...]
    retention_hours: float
    database_properties: dict[str, str]
    session_properties: dict[str, str]


@dataclass(frozen=True)
class LogExtent:
    """How large the list of files of a version is, as far as that is known without a Spark job.

    Attributes:
        files: number of live files; None when the version has no checksum.
        log_bytes: bytes of the checkpoint and of the commits after it.
        commit_bytes: bytes of the commits after the checkpoint.
    """

    files: int | None
    log_bytes: int
    commit_bytes: int = 0


class TableState:
    """The shim's ``TableState``: one version of a table.

    Args:
        spark: session of the DataFrames that this class returns.
        java: the shim's object.
    """

    def __init__(self, spark: SparkSession, java: JavaValue) -> None:
        self.spark = spark
        self._java = java

    def facts(self) -> TableFacts:
        """Returns the metadata of the version."""
        facts = json.loads(self._java.facts(jvm_session(self.spark)))
        schema = facts["schema"]
        return TableFacts(
            version=facts["version"],
            committed_at=facts["committed_at"],
            table_id=facts["table_id"],
            configuration=facts["configuration"],
            schema=None if schema is None else StructType.fromJson(json.loads(schema)),
            partition_columns=tuple(facts["partition_columns"]),
            retention_hours=facts["retention_ms"] / _MILLIS_PER_HOUR,
            database_properties=facts["inherited"]["database"],
            session_properties=facts["inherited"]["session"],
        )

    def clustering_columns(self) -> tuple[str, ...]:
        """Returns the logical names of the columns of CLUSTER BY; none without it."""
        return tuple(map(str, self._java.clusteringColumns()))

    def files(self) -> DataFrame:
        """Returns one row per live file, with the columns of Delta's AddFile."""
        return self.files_in(self.spark)

    def files_in(self, session: SparkSession) -> DataFrame:
        """Returns the same, computed with the settings of a session.

        Args:
            session: a copy of the session of this state.
        """
        return data_frame(self._java.files(jvm_session(session)), session)

    def actions(self) -> DataFrame:
        """Returns the actions that make the version: ``add`` of live files, ``remove`` of files removed recently."""
        return data_frame(self._java.actions(jvm_session(self.spark)), self.spark)

    def extent(self) -> LogExtent:
        """Returns how large the list of files is; starts no Spark job."""
        files, checkpoint_bytes, commit_bytes = map(int, self._java.extent())
        return LogExtent(None if files < 0 else files, checkpoint_bytes + commit_bytes, commit_bytes)

    def size_in_bytes(self) -> int:
        """Returns the bytes of all live files; Delta keeps the sum beside most versions, and else adds it up."""
        return int(self._java.sizeInBytes())

    def listed(self) -> str | None:
        """Returns the live files as lines of a log, as Delta lists up to 100 beside a version; starts no Spark job."""
        text = self._java.listed()
        return None if text is None else str(text)

    def rows_stored(self, files: DataFrame) -> DataFrame:
        """Returns the rows stored in some files, including rows that deletion vectors hide.

        Args:
            files: rows of ``files()``.
        """
        return data_frame(self._java.rowsStored(java_data(files)), self.spark)

    def numbered_rows(self, files: DataFrame) -> DataFrame:
        """Returns the live rows of some files; ``_metadata.row_index`` is the position of a row in its file.

        Args:
            files: rows of ``files()``.
        """
        return data_frame(self._java.numberedRows(java_data(files)), self.spark)

    def statistics(self, session: SparkSession) -> FileStatistics:
        """Returns what collects statistics of files of this version.

        Args:
            session: session of the work.
        """
        return FileStatistics(session, self._java.statistics(jvm_session(session)))
