"""What the log tells of a live file, as SQL over the columns of Delta's AddFile."""

from otree.block import BAND_TAG, BLOCKS_TAG, REVISION_TAG, REWRITES_TAG, TIER_TAG, TIME_RANGE_TAG, WRITE_TAG

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
