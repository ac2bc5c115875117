"""The facts in the commits of a log, read by a number of Spark jobs that does not depend on the number of commits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from catalog.files.file_rows import bounds
from catalog.files.log_changes import ADD_FIELDS
from catalog.insights.box_overlap import LIVE, FileLives
from catalog.jvm.json_lines import json_reader
from catalog.jvm.session import metadata_session
from catalog.jvm.vanished_files import read_again
from catalog.properties.target_file_size import TARGET_FILE_BYTES
from catalog.table.snapshot import TableSnapshot

_COMMIT_INFO = (
    "STRUCT<timestamp: BIGINT, inCommitTimestamp: BIGINT, operation: STRING, engineInfo: STRING, userName: STRING>"
)
_ACTIONS = f"commitInfo {_COMMIT_INFO}, add STRUCT<{ADD_FIELDS}, dataChange: BOOLEAN>, remove STRUCT<path: STRING>"
# Commits have 20 digits; checkpoints and merged logs are other files of the same folder.
_COMMIT_FILES = "?" * 20 + ".json"
_COMMITS_PER_PARTITION = 500
_MOST_PARTITIONS = 64
# A commit is a file of a few kilobytes. By default, Spark puts only 32 of them into a task.
_OPEN_COST_BYTES = 65_536


def commit_facts(snapshot: TableSnapshot, first: int = 0) -> DataFrame:
    """Returns one row per commit that the log has, computed in one Spark job.

    A file counts as added by the first commit that adds its path. A commit that only gives it a deletion vector or tags
    does not add it.

    Args:
        snapshot: the newest version.
        first: leaves out earlier versions.

    Returns:
        version BIGINT, time BIGINT (epoch ms), writer, user_name and operation STRING, data_change BOOLEAN, files_added
        and bytes_added BIGINT, rows_added BIGINT (NULL if a file lacks statistics), small_files, unindexed_bytes,
        blocks_added, cubes_touched BIGINT, file_actions BIGINT (files that are added or removed).
    """
    small = TARGET_FILE_BYTES.value(snapshot.settings) // 2
    by_path, by_commit = Window.partitionBy("changed"), Window.partitionBy("changed", "commit")
    rows = snapshot.reader.rows_of(
        _actions(snapshot, first),
        *("commit", "modified", "changed", "is_add", "dataChange", "commitInfo"),
    )
    rows = (
        rows.repartition(_partitions(snapshot, first), "changed")
        .withColumn("first_add", F.min(F.when(F.col("is_add"), F.col("commit"))).over(by_path))
        .withColumn("is_removed", F.bool_or(~F.col("is_add")).over(by_commit))
        .withColumn("is_new", F.col("is_add") & ~F.col("is_removed") & (F.col("commit") == F.col("first_add")))
    )
    is_new = F.coalesce("is_new", F.lit(False))
    cube = partial(F.concat_ws, " ", F.col("revision").cast("string"))
    cubes = F.when(is_new, F.transform("blocks", lambda block: cube(block["cubeId"])))
    info = F.col("commitInfo")
    return rows.groupBy(F.col("commit").alias("version")).agg(
        F.coalesce(F.max(info["inCommitTimestamp"]), F.max(info["timestamp"]), F.max("modified")).alias("time"),
        F.max(info["engineInfo"]).alias("writer"),
        F.max(info["userName"]).alias("user_name"),
        F.max(info["operation"]).alias("operation"),
        F.coalesce(F.bool_or("dataChange"), F.lit(False)).alias("data_change"),
        F.count_if(is_new).alias("files_added"),
        _sum(is_new, F.col("size")).alias("bytes_added"),
        F.when(F.count_if(is_new & F.col("rows").isNull()) == 0, _sum(is_new, F.col("rows"))).alias("rows_added"),
        F.count_if(is_new & (F.col("size") < small)).alias("small_files"),
        _sum(is_new & (F.col("revision") == 0), F.col("size")).alias("unindexed_bytes"),
        _sum(is_new, F.size("blocks")).alias("blocks_added"),
        F.size(F.array_distinct(F.flatten(F.collect_list(F.when(is_new, cubes)))))
        .cast("bigint")
        .alias("cubes_touched"),
        F.count("is_add").alias("file_actions"),
    )


def file_lives(snapshot: TableSnapshot, first: int = 0) -> tuple[FileLives, int]:
    """Returns when files were added and removed, with the ranges of their indexed columns; two Spark jobs.

    Args:
        snapshot: the newest version, which has a revision.
        first: leaves out the actions of earlier versions.

    Returns:
        The files, and the newest version that removed a file of which nothing else is known, because an earlier commit
        added it; -1 without one. The files before that version are incomplete.
    """
    newest = snapshot.latest_revision
    ranges = bounds(snapshot.schema, () if newest is None else newest.columns)
    columns = ("commit", "is_add", "file", "partition", "low", "high")
    path, partition = F.xxhash64("changed").alias("file"), F.xxhash64("partition").alias("partition")

    def logged() -> pa.Table:
        actions = _actions(snapshot, first).where("changed IS NOT NULL AND is_add IS NOT NULL")
        rows = snapshot.reader.rows_of(actions, "commit", "is_add", "changed", *ranges)
        return rows.withColumn("partition", partition).withColumn("file", path).select(*columns).toArrow()

    live = snapshot.reader.rows_of(snapshot.log_files, *ranges, "path AS changed")
    live = live.withColumn("partition", partition).withColumn("file", path)
    live = live.select(F.lit(-1).cast("bigint").alias("commit"), F.lit(True).alias("is_add"), *columns[2:])
    return lives_of(read_again(logged), live.toArrow(), 0 if newest is None else newest.dimensions)


def lives_of(actions: pa.Table, live: pa.Table, width: int) -> tuple[FileLives, int]:
    """Combines the actions of commits with the live files; see ``file_lives``.

    A file that was removed and added again counts as live all the time in between.

    Args:
        actions: commit, is_add, file, partition, low and high of each action.
        live: the same of each live file.
        width: number of columns with ranges.
    """
    added: dict[int, int] = {}
    described: dict[int, int] = {}
    removed: dict[int, int] = {}
    # Their columns differ in whether they may be null.
    both = pa.concat_tables([actions, live], promote_options="permissive")
    commits, is_add, files = (both[name].to_pylist() for name in ("commit", "is_add", "file"))
    # Within a commit, removals come first: it removes and adds a file to change its tags or deletion vector.
    order = sorted(range(len(actions)), key=lambda row: (commits[row], is_add[row]))
    unknown, last_unknown = set(), -1
    for row in order:
        file = files[row]
        if is_add[row]:
            if file in unknown:
                added[file] = -1
                unknown.discard(file)
            added.setdefault(file, commits[row])
            described[file] = row
            removed.pop(file, None)
        elif file in added:
            removed[file] = commits[row]
        else:
            unknown.add(file)
            removed[file] = commits[row]
    last_unknown = max((removed[file] for file in unknown), default=-1)
    for row in range(len(actions), len(both)):
        if added.setdefault(files[row], -1) == -1:
            described.setdefault(files[row], row)
    known = sorted(added, key=lambda file: (added[file], file))
    rows = both.take(pa.array([described[file] for file in known], pa.int64()))
    lives = FileLives(
        added=np.array([added[file] for file in known], np.int64),
        removed=np.array([removed.get(file, LIVE) for file in known], np.int64),
        order=np.array(known, np.int64),
        partition=rows["partition"].to_numpy().astype(np.int64),
        low=_matrix(rows["low"], width),
        high=_matrix(rows["high"], width),
    )
    return lives, last_unknown


def _matrix(column: pa.ChunkedArray, width: int) -> np.ndarray:
    values: Sequence[float] = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return np.asarray(values, np.float64).reshape(len(column), width)


def _actions(snapshot: TableSnapshot, first: int) -> DataFrame:
    """One row per action: commit, modified (epoch ms), changed (path), is_add (NULL without a file), and the fields."""
    session = metadata_session(snapshot.spark, 0)
    session.conf.set("spark.sql.files.openCostInBytes", str(_OPEN_COST_BYTES))
    commits = json_reader(session, _ACTIONS).option("pathGlobFilter", _COMMIT_FILES)
    name = F.col("_metadata.file_name")
    return (
        commits.json(f"{snapshot.location}/_delta_log")
        .where(name >= f"{first:020d}")
        .where("add IS NOT NULL OR remove IS NOT NULL OR commitInfo IS NOT NULL")
        .select(
            F.substring(name, 1, 20).cast("bigint").alias("commit"),
            F.unix_millis("_metadata.file_modification_time").alias("modified"),
            F.coalesce("add.path", "remove.path", name).alias("changed"),
            F.when(F.col("add").isNotNull(), True).when(F.col("remove").isNotNull(), False).alias("is_add"),
            "commitInfo",
            "add.*",
        )
        .where(F.col("commit") <= snapshot.version)
    )


def _partitions(snapshot: TableSnapshot, first: int) -> int:
    return min(1 + (snapshot.version - first) // _COMMITS_PER_PARTITION, _MOST_PARTITIONS)


def _sum(condition: Column, value: Column) -> Column:
    return F.coalesce(F.sum(F.when(condition, value)), F.lit(0)).cast("bigint")
