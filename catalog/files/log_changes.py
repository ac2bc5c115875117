"""What the commits between two versions of a table tell and change, at the cost of these commits alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from catalog.jvm.files import text_file
from catalog.jvm.json_lines import json_reader
from catalog.jvm.local_rows import local_data_frame
from catalog.jvm.log_probe import counted_commits
from catalog.jvm.session import metadata_session

# With more commits, the list of files of the newer version is read instead.
MAX_COMMITS = 200
# Commits up to this number and size in total are read in the driver, which takes no Spark job.
MAX_SHORT_COMMITS = 20
MAX_SHORT_BYTES = 1_000_000
_DELETION_VECTOR = "STRUCT<storageType: STRING, pathOrInlineDv: STRING, offset: INT, cardinality: BIGINT>"
# The fields of an added file that ``LogRowReader.rows_of`` needs.
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
        added: the files that it has instead or in addition, as rows of ``TableSnapshot.file_rows``; without columns if
            no file has changed.
    """

    gone: frozenset[str]
    added: pa.Table

    @classmethod
    def none(cls) -> FileChanges:
        """No file has changed."""
        return cls(frozenset(), pa.table({}))


def short_commits(spark: SparkSession, location: str, versions: tuple[int, int]) -> dict[int, str] | None:
    """Reads the commits after a version in the driver.

    Args:
        spark: session of the caller.
        location: root of the table.
        versions: the version before the first commit, and that of the last one.

    Returns:
        The texts of the commits by version. None if the log lacks one of them or keeps it elsewhere, or if there are
        more than ``MAX_SHORT_COMMITS``, or more than ``MAX_SHORT_BYTES`` in total.
    """
    older, newer = versions
    if not 0 <= newer - older <= MAX_SHORT_COMMITS:
        return None
    texts: dict[int, str] = {}
    bytes_left = MAX_SHORT_BYTES
    try:
        for version in range(older + 1, newer + 1):
            text = text_file(spark, commit_file(location, version), bytes_left).text
            if text is None:
                return None
            texts[version] = text
            bytes_left -= len(text)
    except (Py4JJavaError, UnicodeDecodeError):
        return None
    return texts


def changes_between(
    spark: SparkSession,
    location: str,
    versions: tuple[int, int],
    rows_of: Callable[[DataFrame], DataFrame],
    only_short: bool = False,
) -> FileChanges | None:
    """Reads the commits after a version: short ones in the driver, others in one Spark job.

    Args:
        spark: session of the caller.
        location: root of the table.
        versions: the older and the newer version, whose metadata is the same.
        rows_of: makes the rows of ``added`` of rows of the log, and keeps ``changed`` and ``file_name``.
        only_short: whether no Spark job may be started.

    Returns:
        The changes; None if the commits cannot be read, because the log was cleaned up or is kept elsewhere, or if they
        are too many.
    """
    older, newer = versions
    if not 0 <= older < newer or newer - older > MAX_COMMITS:
        return None
    try:
        texts = short_commits(spark, location, versions)
        if texts is not None:
            actions = _short_actions(spark, texts)
            return FileChanges.none() if actions is None else _last_of_each(_collected(rows_of(actions)))
        if only_short:
            return None
        names = [commit_file(location, number) for number in range(older + 1, newer + 1)]
        commits = json_reader(metadata_session(spark, 0), _COMMIT).json(names, mode="FAILFAST")
        return _last_of_each(rows_of(_file_actions(commits, "_metadata.file_name")).toArrow())
    except (PySparkException, Py4JJavaError):
        return None


def listed_files(spark: SparkSession, text: str, rows_of: Callable[[DataFrame], DataFrame]) -> pa.Table | None:
    """Reads files that are listed as in a commit, in the driver.

    Args:
        spark: session of the caller.
        text: lines of a log.
        rows_of: see ``changes_between``.

    Returns:
        The rows of the files; None if the list is longer than ``MAX_SHORT_BYTES`` or cannot be read.
    """
    if len(text) > MAX_SHORT_BYTES:
        return None
    try:
        actions = _short_actions(spark, {0: text})
        return None if actions is None else _last_of_each(_collected(rows_of(actions))).added
    except (PySparkException, Py4JJavaError):
        return None


def commits_since(spark: SparkSession, location: str, operation: str, after: int, newest: int, most: int) -> int:
    """Counts the commits that are newer than the newest one of an operation; loads no snapshot of the table.

    Args:
        spark: session whose file systems are used.
        location: the table's root.
        operation: as the commit names it.
        after: commits up to this version do not count.
        newest: newest known version; later commits do not count either.
        most: counting ends here, so that no long history is read.
    """
    first = max(after, newest - most)
    try:
        for version in range(newest, max(first, newest - MAX_SHORT_COMMITS), -1):
            text = text_file(spark, commit_file(location, version), MAX_SHORT_BYTES).text
            if text is None:
                break
            if commit_info(text).get("operation") == operation:
                return newest - version
        else:
            if newest - first <= MAX_SHORT_COMMITS:
                return newest - first
    except (Py4JJavaError, UnicodeDecodeError):
        pass
    # A commit is long, or kept elsewhere, or they are many: Delta finds them, and reads them at the same time.
    return counted_commits(spark, location, operation, after, most)


def commit_info(text: str) -> Mapping[str, Any]:
    """What a commit tells of itself; empty where it does not."""
    for line in text.split("\n"):
        if line.startswith('{"commitInfo"'):
            info = json_object(line).get("commitInfo")
            return info if isinstance(info, dict) else {}
    return {}


def json_object(text: Any) -> dict[str, Any]:
    """A JSON object; an empty one where the text is something else."""
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def commit_file(location: str, version: int) -> str:
    """The path of the file of a commit."""
    return f"{location}/_delta_log/{version:020d}.json"


def _short_actions(spark: SparkSession, texts: dict[int, str]) -> DataFrame | None:
    """The files in commits over a local relation, so that Spark computes their rows in the driver; None without any."""
    lines = [(f"{version:020d}", line) for version, text in texts.items() for line in text.split("\n")]
    lines = [(name, line) for name, line in lines if '"add"' in line or '"remove"' in line]
    if not lines:
        return None
    parsed = f"from_json(line, 'STRUCT<{_COMMIT}>', map('mode', 'FAILFAST')) AS action"
    commits = local_data_frame(spark, lines, "file_name STRING, line STRING").selectExpr("file_name", parsed)
    return _file_actions(commits.select("file_name", "action.*"), "file_name")


def _file_actions(commits: DataFrame, file_name: str) -> DataFrame:
    return commits.where("add IS NOT NULL OR remove IS NOT NULL").selectExpr(
        "coalesce(add.path, remove.path) AS changed", f"{file_name} AS file_name", "add.*"
    )


def _collected(rows: DataFrame) -> pa.Table:
    """The rows of a local relation. ``toArrow`` would start a Spark job."""
    values: list[dict[str, Any]] = [row.asDict(recursive=True) for row in rows.collect()]
    return pa.Table.from_pylist(values, schema=to_arrow_schema(rows.schema))


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
