"""The files that the commits between two versions of a table added and removed, at the cost of these commits alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from catalog.jvm.session import metadata_session
from catalog.table.snapshot import TableSnapshot

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


def changes_since(snapshot: TableSnapshot, version: int, columns: Sequence[str]) -> FileChanges | None:
    """Reads the commits after a version, in one Spark job.

    Args:
        snapshot: the newer version.
        version: the older one, whose metadata is the same.
        columns: those of ``added``, with ``path``.

    Returns:
        The changes; None if the commits cannot be read, because the log was cleaned up or is kept elsewhere, or if they
        are too many.
    """
    if not 0 <= version < snapshot.version or snapshot.version - version > MAX_COMMITS:
        return None
    spark = metadata_session(snapshot.spark, 0)
    names = [
        f"{snapshot.location}/_delta_log/{number:020d}.json" for number in range(version + 1, snapshot.version + 1)
    ]
    try:
        commits = spark.read.schema(_COMMIT).json(names, mode="FAILFAST")
        actions = commits.where("add IS NOT NULL OR remove IS NOT NULL").select(
            F.coalesce("add.path", "remove.path").alias("changed"), "_metadata.file_name", "add.*"
        )
        rows = snapshot.rows_of(actions, F.col("changed"), F.col("file_name"))
        return _last_of_each(rows.select(*columns, "changed", "file_name").toArrow(), columns)
    except (PySparkException, Py4JJavaError):
        return None


def _last_of_each(actions: pa.Table, columns: Sequence[str]) -> FileChanges:
    """The last action of each path; a commit that removes and adds a path replaces what the log tells of the file."""
    last: dict[str, tuple[str, bool, int]] = {}
    names = (actions[name].to_pylist() for name in ("changed", "file_name", "path"))
    for position, (changed, commit, path) in enumerate(zip(*names, strict=True)):
        action = commit, path is not None, position
        last[changed] = max(last.get(changed, action), action)
    kept = sorted(position for _, is_add, position in last.values() if is_add)
    return FileChanges(frozenset(last), actions.select(list(columns)).take(pa.array(kept, pa.int64())))
