"""The files that the commits between two versions of a table added and removed, at the cost of these commits alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog.jvm.session import metadata_session

# With more commits, the list of files of the newer version is read instead.
MAX_COMMITS = 200
_DELETION_VECTOR = "STRUCT<storageType: STRING, pathOrInlineDv: STRING, offset: INT, cardinality: BIGINT>"
# The fields of an added file that ``TableSnapshot.rows_of`` needs.
ADD_FIELDS = (
    "path: STRING, partitionValues: MAP<STRING, STRING>, size: BIGINT, modificationTime: BIGINT, "
    f"stats: STRING, tags: MAP<STRING, STRING>, deletionVector: {_DELETION_VECTOR}"
)
_COMMIT = f"add STRUCT<{ADD_FIELDS}>, remove STRUCT<path: STRING>"


@dataclass(frozen=True)
class FileChanges:
    """What became of the files of a version.

    Attributes:
        gone: paths of the files that the newer version does not have, or has with a new deletion vector or new tags.
        added: the files that it has instead or in addition, as rows of ``TableSnapshot.file_rows``.
    """

    gone: frozenset[str]
    added: pa.Table


def changes_between(
    spark: SparkSession,
    location: str,
    versions: tuple[int, int],
    rows_of: Callable[[DataFrame, Column, Column], DataFrame],
) -> FileChanges | None:
    """Reads the commits after a version, in one Spark job.

    Args:
        spark: session of the caller.
        location: root of the table.
        versions: the older and the newer version, whose metadata is the same.
        rows_of: makes the rows of ``added`` of rows of the log, with two more columns.

    Returns:
        The changes; None if the commits cannot be read, because the log was cleaned up or is kept elsewhere, or if they
        are too many.
    """
    older, newer = versions
    if not 0 <= older < newer or newer - older > MAX_COMMITS:
        return None
    names = [f"{location}/_delta_log/{number:020d}.json" for number in range(older + 1, newer + 1)]
    try:
        commits = metadata_session(spark, 0).read.schema(_COMMIT).json(names, mode="FAILFAST")
        actions = commits.where("add IS NOT NULL OR remove IS NOT NULL").select(
            F.coalesce("add.path", "remove.path").alias("changed"), "_metadata.file_name", "add.*"
        )
        return _last_of_each(rows_of(actions, F.col("changed"), F.col("file_name")).toArrow())
    except (PySparkException, Py4JJavaError):
        return None


def _last_of_each(actions: pa.Table) -> FileChanges:
    """The last action of each path; a commit that removes and adds a path replaces what the log tells of the file."""
    last: dict[str, tuple[str, bool, int]] = {}
    names = (actions[name].to_pylist() for name in ("changed", "file_name", "path"))
    for position, (changed, commit, path) in enumerate(zip(*names, strict=True)):
        action = commit, path is not None, position
        last[changed] = max(last.get(changed, action), action)
    kept = sorted(position for _, is_add, position in last.values() if is_add)
    added = actions.drop_columns(["changed", "file_name"])
    return FileChanges(frozenset(last), added.take(pa.array(kept, pa.int64())))
