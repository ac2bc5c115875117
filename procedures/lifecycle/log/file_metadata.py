"""Mode ``file_metadata``: statistics of files that lack them, and shorter index tags."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from catalog.counted_nouns import counted
from catalog.errors import ConcurrentChangeError
from catalog.jvm.java_errors import is_conflict
from catalog.quantities import size_text
from catalog.table.snapshot import TableSnapshot
from otree.block import BLOCKS_TAG
from procedures.lifecycle.log.log_mode import SKIPPED, TIMESTAMP_END, TIMESTAMP_START, LogMode, LogTask, ModeOutcome
from procedures.lifecycle.log.missing_statistics import FilesRead, lacks_statistics, with_statistics

OPERATION = "USE CONSOLIDATE LOG"
# Delta puts a commit of so many files on top of concurrent ones.
FILES_PER_COMMIT = 5_000
MAX_ATTEMPTS = 10

_NOTHING = "all files have statistics and short tags"
# Columns in addition to those of AddFile.
_LACKS, _BLOCKS, _IS_SHORTER = "use_lacks_statistics", "use_blocks", "use_is_shorter"


@dataclass(frozen=True)
class _Batch:
    """The files of one commit.

    Attributes:
        files: AddFile rows as they will be.
        by_footer: files with new statistics from their footers.
        by_rows: files with new statistics from their rows.
        shorter_tags: number of files whose tags became shorter.
    """

    files: DataFrame
    by_footer: FilesRead
    by_rows: FilesRead
    shorter_tags: int


class FileMetadata(LogMode):
    """Adds statistics to files without them, and writes index tags as short as the format allows.

    The commits name live files with other metadata, without data change.
    """

    name = "file_metadata"
    aliases = ("fragment_meta",)
    doc = "Adds statistics to files without them, and shortens index tags."
    times = frozenset({TIMESTAMP_START, TIMESTAMP_END})
    takes_lease = True

    def run(self, task: LogTask) -> ModeOutcome:
        """See ``LogMode.run``."""
        totals = _totals(task)
        if not totals.files:
            return ModeOutcome(SKIPPED, _NOTHING)
        return _planned(task, totals) if task.dry_run else _committed(task, totals.files)


@dataclass
class _Progress:
    """The changes that the commits of one run have made so far."""

    by_footer: FilesRead = field(default_factory=FilesRead)
    by_rows: FilesRead = field(default_factory=FilesRead)
    shorter_tags: int = 0
    version: int | None = None

    def add(self, batch: _Batch, version: int) -> None:
        self.by_footer += batch.by_footer
        self.by_rows += batch.by_rows
        self.shorter_tags += batch.shorter_tags
        self.version = version

    @property
    def message(self) -> str:
        return (
            f"statistics of {counted(self.by_footer.files, 'file')} from their footers and of "
            f"{counted(self.by_rows.files, 'file')} ({size_text(self.by_rows.bytes)}) from their rows; "
            f"shorter tags of {counted(self.shorter_tags, 'file')}"
        )


def _planned(task: LogTask, totals: Row) -> ModeOutcome:
    return task.outcome(
        f"statistics of {counted(totals.lacking, 'file')}, which are read where their footers do not suffice, "
        f"{size_text(totals.bytes)} at most; shorter tags of {counted(totals.shorter, 'file')}"
    )


def _totals(task: LogTask) -> Row:
    """Returns how many files lack statistics, their bytes, how many tags can be shorter, and how many files that is."""
    snapshot = task.table.snapshot()
    files = _candidates(task, snapshot, snapshot.state.statistics(task.session).schema())
    return files.agg(
        F.count(F.when(F.col(_LACKS), 1)).alias("lacking"),
        F.coalesce(F.sum(F.when(F.col(_LACKS), F.col("size"))), F.lit(0)).alias("bytes"),
        F.count(F.when(F.col(_IS_SHORTER), 1)).alias("shorter"),
        F.count(F.lit(1)).alias("files"),
    ).collect()[0]


def _committed(task: LogTask, files: int) -> ModeOutcome:
    """Commits batch after batch; files that arrive meanwhile are left to the next run, so that this one ends."""
    progress, conflicts = _Progress(), 0
    batches = math.ceil(files / FILES_PER_COMMIT)
    while batches:
        transaction = task.table.transaction(task.session)
        batch = _next_batch(task, TableSnapshot.of(transaction.state(), task.table.location))
        if batch is None:
            break
        count = batch.by_footer.files + batch.by_rows.files
        parameters = {"mode": FileMetadata.name, "statistics": str(count), "tags": str(batch.shorter_tags)}
        try:
            version = transaction.replace_entries(batch.files, OPERATION, parameters, large=False)
        except (Py4JJavaError, PySparkException) as error:
            if not is_conflict(error):
                raise
            conflicts += 1
            if conflicts == MAX_ATTEMPTS:
                raise ConcurrentChangeError(
                    f"Other writers changed the files {MAX_ATTEMPTS} times. Call again for the rest."
                ) from error
            continue
        progress.add(batch, version)
        batches -= 1
    if progress.version is None:
        return ModeOutcome(SKIPPED, _NOTHING)
    return task.outcome(progress.message, progress.version)


def _candidates(task: LogTask, snapshot: TableSnapshot, schema: StructType) -> DataFrame:
    """Returns the AddFile rows to change, with what there is to change."""
    files = snapshot.log_files
    if task.start is not None:
        files = files.where(F.col("modificationTime") >= task.start.millis)
    if task.end is not None:
        files = files.where(F.col("modificationTime") <= task.end.millis)
    shorter = F.length(_BLOCKS) < F.length(F.col("tags")[BLOCKS_TAG])
    return (
        files.withColumn(_LACKS, lacks_statistics(F.from_json("stats", schema), schema))
        # As this project writes them: without spaces, and without fields that no reader needs.
        .withColumn(_BLOCKS, F.to_json(snapshot.reader.blocks_of_tags()))
        .withColumn(_IS_SHORTER, F.coalesce(shorter, F.lit(False)))
        .where(F.col(_LACKS) | F.col(_IS_SHORTER))
    )


def _next_batch(task: LogTask, snapshot: TableSnapshot) -> _Batch | None:
    statistics = snapshot.state.statistics(task.session)
    columns = snapshot.log_files.columns
    other_tags = F.map_filter("tags", lambda key, _: key != F.lit(BLOCKS_TAG))
    tags = F.map_concat(other_tags, F.create_map(F.lit(BLOCKS_TAG), F.col(_BLOCKS)))
    files = (
        _candidates(task, snapshot, statistics.schema())
        .limit(FILES_PER_COMMIT)
        .withColumn("tags", F.when(F.col(_IS_SHORTER), tags).otherwise(F.col("tags")))
        .withColumn("dataChange", F.lit(False))
        # Which files the limit chooses may differ each time.
        .localCheckpoint()
    )
    counts = files.agg(F.count(F.when(F.col(_IS_SHORTER), 1)), F.count(F.when(F.col(_LACKS), 1))).collect()[0]
    shorter_tags, lacking = counts
    others = files.where(~F.col(_LACKS)).select(columns)
    if not lacking:
        return _Batch(others, FilesRead(), FilesRead(), shorter_tags) if shorter_tags else None
    collected = with_statistics(statistics, files.where(_LACKS).select(columns))
    return _Batch(others.unionByName(collected.files), collected.by_footer, collected.by_rows, shorter_tags)
