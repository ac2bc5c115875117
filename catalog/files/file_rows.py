"""What the log tells of a live file, as SQL over Delta's AddFile: rows, tags, and ranges of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DateType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from catalog.columns.column_names import FoundColumn, find_stored
from catalog.files.block_rows import BLOCKS_SCHEMA
from catalog.jvm.row_expressions import RowExpressions
from otree.block import BAND_TAG, BLOCKS_TAG, REVISION_TAG, REWRITES_TAG, TIER_TAG, TIME_RANGE_TAG, WRITE_TAG
from otree.revision import Revision

# Bytes of a text that become a number, by which texts are ordered.
TEXT_BYTES = 6
_IS_OUTDATED = f"(tags['cube'] IS NOT NULL AND tags['{BLOCKS_TAG}'] IS NULL)"
_SAYS_INDEXED = f"(tags['{BLOCKS_TAG}'] IS NOT NULL OR coalesce(tags['{REVISION_TAG}'], '0') != '0')"
_TIME = "coalesce(try_cast(try_element_at(split(tags['{tag}'], ','), {position}) AS BIGINT), modificationTime)"
_OFFSET = "coalesce(concat('@', CAST(deletionVector.offset AS STRING)), '')"
# The columns of ``TableSnapshot.file_rows``, over those of ``log_files`` and ``blocks``.
_FILE_ROW = (
    "path",
    f"coalesce(concat(deletionVector.storageType, deletionVector.pathOrInlineDv, {_OFFSET}), '') AS deletion_vector",
    "size",
    "modificationTime AS modification_time",
    "try_cast(get_json_object(stats, '$.numRecords') AS BIGINT) - coalesce(deletionVector.cardinality, 0) AS rows",
    f"IF(blocks IS NOT NULL, try_cast(tags['{REVISION_TAG}'] AS BIGINT), 0) AS revision",
    "blocks",
    # Files of writers that leave no write id count as a write each.
    f"coalesce(tags['{WRITE_TAG}'], path) AS write_id",
    f"{_TIME.format(tag=TIME_RANGE_TAG, position=1)} AS first_time",
    f"{_TIME.format(tag=TIME_RANGE_TAG, position=2)} AS last_time",
    f"{_IS_OUTDATED} AS outdated",
    f"({_SAYS_INDEXED} AND blocks IS NULL AND NOT {_IS_OUTDATED}) AS unreadable",
    "partitionValues AS partition_values",
    f"try_cast(try_element_at(split(tags['{BAND_TAG}'], ','), 1) AS BIGINT) AS band_first",
    f"try_cast(try_element_at(split(tags['{BAND_TAG}'], ','), 2) AS BIGINT) AS band_end",
    f"greatest(coalesce(try_cast(tags['{REWRITES_TAG}'] AS DOUBLE), 0.0D), 0.0D) AS rewrites",
    f"IF(tags['{BLOCKS_TAG}'] IS NOT NULL, try_cast(tags['{REVISION_TAG}'] AS BIGINT), NULL) AS tagged_revision",
    "coalesce(deletionVector.cardinality, 0) AS deleted",
    f"coalesce(try_cast(tags['{TIER_TAG}'] AS BIGINT), 0) AS tier",
)
# Those that ``TableSnapshot.files`` does not have.
NOT_IN_FILES = ("band_first", "band_end", "rewrites", "tagged_revision", "deleted", "tier", "partition")


@dataclass(frozen=True)
class LogRowReader:
    """Reads rows of the log as rows of files, with the schema and the revisions of one version.

    Attributes:
        spark: session of the rows.
        schema: logical schema.
        partition_columns: logical names.
        revisions: those that can be read, by id.
    """

    spark: SparkSession
    schema: StructType
    partition_columns: tuple[str, ...]
    revisions: Mapping[int, Revision]

    @cached_property
    def dimensions(self) -> dict[int, int]:
        """The number of dimensions of each revision with a space, by the revision's number."""
        return {number: r.dimensions for number, r in self.revisions.items() if number > 0 and r.transformations}

    @property
    def ranged_columns(self) -> tuple[str, ...]:
        """The columns, by stored name, whose ranges a ``FileTable`` has: those of the newest revision."""
        return self.revisions[max(self.dimensions)].columns if self.dimensions else ()

    def rows_of(self, log_files: DataFrame, *more: str) -> DataFrame:
        """The rows of ``TableSnapshot.file_rows`` for some rows of the log, with more columns.

        Args:
            log_files: rows with the columns of Delta's AddFile.
            more: columns of these rows, as SQL.
        """
        rows = log_files.withColumn("blocks", self.blocks_of_tags())
        partition = partition_text(bool(self.partition_columns))
        return rows.selectExpr(*_FILE_ROW, partition, *more)

    def table_rows_of(self, log_files: DataFrame, *more: str) -> DataFrame:
        """The rows that ``FileTable`` needs, with more columns; see ``rows_of``."""
        return self.rows_of(log_files, *bounds(self.schema, self.ranged_columns), *more).drop("partition_values")

    def blocks_of_tags(self) -> Column:
        """The blocks of a row of the log: NULL unless its tags can be read and name a revision with a space.

        The shim reads them with the code that skips files, so that both agree on which files are indexed.
        """
        if not self.dimensions:
            return F.lit(None).cast(BLOCKS_SCHEMA)
        numbers = ", ".join(f"'{number}', {dimensions}" for number, dimensions in self.dimensions.items())
        dimensions = F.expr(f"try_element_at(map({numbers}), tags['{REVISION_TAG}'])")
        return RowExpressions(self.spark).blocks(F.col("tags")[BLOCKS_TAG], dimensions)


def partition_text(is_partitioned: bool) -> str:
    """SQL for the partition of a file as text, equal for files of one partition; '' in a table without partitions.

    Args:
        is_partitioned: whether the table has partition columns.
    """
    if not is_partitioned:
        return "'' AS partition"
    # Writers may give the values in any order.
    return "to_json(map_from_entries(array_sort(map_entries(partitionValues)))) AS partition"


def bounds(schema: StructType, columns: Sequence[str]) -> tuple[str, str]:
    """SQL over the rows of ``TableSnapshot.log_files`` for the minima and maxima of columns.

    Args:
        schema: logical schema of the table.
        columns: their stored names.

    Returns:
        Two columns ARRAY<DOUBLE>, named low and high, with an entry per column, NULL where the statistics do not tell.
    """
    return bounds_of([find_stored(schema, column) for column in columns])


def bounds_of(columns: Sequence[FoundColumn | None]) -> tuple[str, str]:
    """The same for any columns.

    Args:
        columns: of the table; None for one that it no longer has.
    """
    low, high = (
        f"CAST(array({', '.join(_bound(column, key) for column in columns)}) AS ARRAY<DOUBLE>) AS {name}"
        for key, name in (("minValues", "low"), ("maxValues", "high"))
    )
    return low, high


def _bound(column: FoundColumn | None, key: str) -> str:
    if column is None or any("'" in part for part in column.stored_path):
        return "NULL"
    path = "$" + "".join(f"['{part}']" for part in (key, *column.stored_path))
    # How quotes are escaped in a string depends on settings of the session.
    return numeric_value(f"get_json_object(stats, CAST(X'{path.encode().hex()}' AS STRING))", column.data_type)


def numeric_value(text: str, data_type: DataType) -> str:
    """SQL for a value of a file's statistics as DOUBLE in the order of its type; NULL where it cannot be read.

    Args:
        text: SQL for the value as statistics have it.
        data_type: the column's type.
    """
    match data_type:
        case StringType() | BinaryType():
            first_bytes = f"hex(substring(CAST({text} AS BINARY), 1, {TEXT_BYTES}))"
            return f"try_cast(conv(rpad({first_bytes}, {2 * TEXT_BYTES}, '0'), 16, 10) AS DOUBLE)"
        case DateType():
            return f"CAST(unix_date(try_cast({text} AS DATE)) AS DOUBLE)"
        case TimestampType() | TimestampNTZType():
            return f"CAST(unix_micros(try_cast({text} AS TIMESTAMP_LTZ)) AS DOUBLE)"
        case _:
            return f"try_cast({text} AS DOUBLE)"
