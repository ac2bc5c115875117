"""What the log tells of a live file, as SQL and columns over Delta's AddFile: rows, tags, and ranges of columns."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
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


def bounds(schema: StructType, revision: Revision | None) -> tuple[Column, Column]:
    """Columns over the rows of ``TableSnapshot.log_files``: the minima and maxima of the indexed columns.

    Args:
        schema: logical schema of the table.
        revision: its columns are meant; none without a revision.

    Returns:
        Two columns ARRAY<DOUBLE>, named low and high, with an entry per indexed column, NULL where the statistics do
        not tell.
    """
    columns = revision.columns if revision is not None else ()
    return bounds_of([find_stored(schema, column) for column in columns])


def bounds_of(columns: Sequence[FoundColumn | None]) -> tuple[Column, Column]:
    """The same for any columns.

    Args:
        columns: of the table; None for one that it no longer has.
    """
    arrays = []
    for key, name in (("minValues", "low"), ("maxValues", "high")):
        values = [_bound(column, key) for column in columns]
        array = F.array(*values) if values else F.array().cast("array<double>")
        arrays.append(array.alias(name))
    return arrays[0], arrays[1]


def _bound(column: FoundColumn | None, key: str) -> Column:
    if column is None or any("'" in part for part in column.stored_path):
        return F.lit(None).cast("double")
    path = "".join(f"['{part}']" for part in column.stored_path)
    return numeric_value(F.get_json_object("stats", f"$['{key}']{path}"), column.data_type)


def numeric_value(text: Column, data_type: DataType) -> Column:
    """A value of a file's statistics as DOUBLE in the order of its type; NULL where it cannot be read.

    Args:
        text: the value as statistics have it.
        data_type: the column's type.
    """
    match data_type:
        case StringType() | BinaryType():
            digits = F.rpad(F.hex(F.substring(text.cast("binary"), 1, TEXT_BYTES)), 2 * TEXT_BYTES, "0")
            return F.conv(digits, 16, 10).try_cast("double")
        case DateType():
            return F.unix_date(text.try_cast("date")).cast("double")
        case TimestampType() | TimestampNTZType():
            return F.unix_micros(text.try_cast("timestamp")).cast("double")
        case _:
            return text.try_cast("double")
