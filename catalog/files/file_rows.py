"""What the log tells of a live file, as SQL over Delta's AddFile: rows, tags, and ranges of columns."""

from __future__ import annotations

from collections.abc import Sequence

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
from otree.block import BAND_TAG, BLOCKS_TAG, REVISION_TAG, REWRITES_TAG, TIER_TAG, TIME_RANGE_TAG, WRITE_TAG
from otree.revision import Revision

# Bytes of a text that become a number, by which texts are ordered.
TEXT_BYTES = 6
_IS_OUTDATED = f"(tags['cube'] IS NOT NULL AND tags['{BLOCKS_TAG}'] IS NULL)"
_SAYS_INDEXED = f"(tags['{BLOCKS_TAG}'] IS NOT NULL OR coalesce(tags['{REVISION_TAG}'], '0') != '0')"
_TIME = "coalesce(try_cast(try_element_at(split(tags['{tag}'], ','), {position}) AS BIGINT), modificationTime)"
_OFFSET = "coalesce(concat('@', CAST(deletionVector.offset AS STRING)), '')"
# The columns of ``TableSnapshot.file_rows``, over those of ``log_files`` and ``blocks``.
FILE_ROW = (
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


def partition_text(is_partitioned: bool) -> str:
    """SQL for the partition of a file as text, equal for files of one partition; '' in a table without partitions.

    Args:
        is_partitioned: whether the table has partition columns.
    """
    if not is_partitioned:
        return "'' AS partition"
    # Writers may give the values in any order.
    return "to_json(map_from_entries(array_sort(map_entries(partitionValues)))) AS partition"


def bounds(schema: StructType, revision: Revision | None) -> tuple[str, str]:
    """SQL over the rows of ``TableSnapshot.log_files`` for the minima and maxima of the indexed columns.

    Args:
        schema: logical schema of the table.
        revision: its columns are meant; none without a revision.

    Returns:
        Two columns ARRAY<DOUBLE>, named low and high, with an entry per indexed column, NULL where the statistics do
        not tell.
    """
    columns = revision.columns if revision is not None else ()
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
            return f"CAST(unix_micros(try_cast({text} AS TIMESTAMP)) AS DOUBLE)"
        case _:
            return f"try_cast({text} AS DOUBLE)"
