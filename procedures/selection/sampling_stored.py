"""Candidates of ``SamplingOverheadReduction`` as a DataFrame, for versions with many files."""

from __future__ import annotations

from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from catalog.jvm.local_rows import local_data_frame
from catalog.table.block_rows import file_levels
from catalog.table.snapshot import TableSnapshot
from otree.revision import Revision
from otree.weight import MAX_WEIGHT
from procedures.groups.plan import InputFile
from procedures.groups.selection_strategy import MAX_FILES_PER_GROUP
from procedures.selection.sampling_candidates import OVERSIZED, Candidate, Candidates, Overhead, SampledWeights


class StoredCandidates(Candidates):
    """Candidates as a DataFrame.

    Args:
        files: path, deletion_vector, size, write_id, can_change BOOLEAN, settled BOOLEAN, below ARRAY<DOUBLE>.
        revision_id: their revision.
        sampled: the sample.
        of_revision: rows of the whole revision.
    """

    def __init__(self, files: DataFrame, revision_id: int, sampled: SampledWeights, of_revision: int) -> None:
        super().__init__(of_revision)
        self._files = files
        self._revision_id = revision_id
        self._sampled = sampled

    @classmethod
    def of(
        cls,
        snapshot: TableSnapshot,
        revision: Revision,
        sampled: SampledWeights,
        bytes_per_iter: int,
        target_bytes: int,
    ) -> StoredCandidates:
        """Finds the candidates in a version.

        Tags are parsed once, and what is found is stored on the executors' disks: each look at it would otherwise read
        and parse the whole log again.

        Args:
            snapshot: the files that may be chosen.
            revision: their revision.
            sampled: the sample.
            bytes_per_iter: see ``Candidates``.
            target_bytes: size of the files that are written today.
        """
        number = revision.revision_id
        of_revision = snapshot.whole.file_rows.where(F.col("revision") == number)
        parsed = of_revision.select("path", "deletion_vector", "size", "write_id", "band_end", "blocks")
        parsed = parsed.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
        all_blocks = parsed.select("path", F.inline("blocks"))
        # As large as the tree, and not as the list of files.
        cubes = all_blocks.groupBy("cubeId").agg(
            F.min("maxWeight").alias("threshold"), F.sum("elementCount").alias("elements")
        )
        cubes = cubes.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
        rows = cubes.agg(F.sum("elements").alias("elements")).collect()[0].elements or 0
        writes = parsed.groupBy("write_id").agg(F.sum("size").alias("write_bytes"))
        chosen = parsed
        if snapshot.restrictions:
            chosen = parsed.join(snapshot.log_files.select("path"), "path", "left_semi")
        files = _candidate_rows(chosen, cubes.select("cubeId", "threshold"), sampled)
        oversized = F.col("size") > OVERSIZED * target_bytes
        settled = F.col("ours") & ~F.col("optimizable") & ~oversized & (F.col("write_bytes") * 2 >= bytes_per_iter)
        files = files.join(writes, "write_id").select(
            "path",
            "deletion_vector",
            "size",
            "write_id",
            (F.col("optimizable") | ~F.col("ours") | oversized).alias("can_change"),
            settled.alias("settled"),
            "below",
        )
        return cls(files.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY), number, sampled, int(rows))

    def live(self, snapshot: TableSnapshot) -> Candidates:
        """See ``Candidates.live``."""
        live = snapshot.files.select("path", "deletion_vector")
        return self._with(self._files.join(live, ["path", "deletion_vector"], "left_semi"))

    def unsettled(self) -> Candidates:
        """See ``Candidates.unsettled``."""
        return self._with(self._files.where(~F.col("settled")))

    def total(self) -> Overhead:
        """See ``Candidates.total``."""
        count = len(self._sampled.limits)
        totals = self._files.agg(
            F.count(F.lit(1)).alias("files"),
            F.coalesce(F.sum("size"), F.lit(0)).alias("bytes"),
            F.count_distinct("write_id").alias("writes"),
            F.coalesce(F.bool_or("can_change"), F.lit(False)).alias("can_change"),
            *[F.coalesce(F.sum(F.col("below")[i]), F.lit(0.0)).alias(f"b{i}") for i in range(count)],
        ).collect()[0]
        below = tuple(totals[f"b{i}"] for i in range(count))
        return Overhead(totals.files, totals.bytes, below, totals.writes, totals.can_change, self._of_revision)

    def first(self, snapshot: TableSnapshot) -> list[Candidate]:
        """See ``Candidates.first``; looks only at the files and writes of the first ones."""
        wanted = self._sampled.limits.index(self._sampled.end)
        most = self._files.withColumn("needless", F.rint(F.element_at("below", -1) - F.col("below")[wanted]))
        rows = most.orderBy(F.col("needless").desc(), "path").limit(MAX_FILES_PER_GROUP).drop("needless").collect()
        spark = snapshot.spark
        paths = F.broadcast(local_data_frame(spark, [(r.path,) for r in rows], "path string"))
        writes = F.broadcast(local_data_frame(spark, [(w,) for w in {r.write_id for r in rows}], "write_id string"))
        files = snapshot.files.select("path", "rows", "first_time", "last_time").join(paths, "path", "left_semi")
        facts = {fact.path: fact for fact in files.collect()}
        blocks = snapshot.blocks(self._revision_id, snapshot.files.join(writes, "write_id", "left_semi"))
        levels = {r.path: r["level"] for r in file_levels(blocks).join(paths, "path", "left_semi").collect()}
        return [_candidate(row, facts[row.path], levels[row.path]) for row in rows]

    def _with(self, files: DataFrame) -> StoredCandidates:
        return StoredCandidates(files, self._revision_id, self._sampled, self._of_revision)


def _candidate_rows(parsed: DataFrame, cubes: DataFrame, sampled: SampledWeights) -> DataFrame:
    """The candidates among files.

    Args:
        parsed: path, deletion_vector, size, write_id, band_end, blocks.
        cubes: cubeId, threshold.
        sampled: the sample.

    Returns:
        path, deletion_vector, size, write_id, optimizable BOOLEAN, ours BOOLEAN (laid out by us), below.
    """
    end = F.lit(sampled.end)
    # A cube's threshold says what its block may hold; the file's band says what is there.
    last = F.least(F.col("maxWeight").cast("bigint"), F.coalesce(F.col("band_end") - 1, F.lit(MAX_WEIGHT)))
    first = F.col("minWeight").cast("bigint")
    blocks = (
        parsed.select("path", "deletion_vector", "size", "write_id", "band_end", F.inline("blocks"))
        .where("elementCount > 0")
        .join(cubes, "cubeId")
        .withColumn("first", first)
        .withColumn("last", F.greatest(last, first))
        .withColumn("sampled", F.col("first") < end)
        .withColumn("optimizable", F.col("sampled") & (F.col("last") >= end) & (F.col("last") > F.col("threshold")))
    )
    below = F.array(*[F.sum(_rows_below(limit)) for limit in sampled.limits])
    per_file = blocks.groupBy("path", "deletion_vector", "size", "write_id").agg(
        F.bool_or("optimizable").alias("optimizable"),
        (F.bool_or("sampled") & F.bool_or(~F.col("sampled") | (F.col("last") >= sampled.band_end))).alias("mixes"),
        F.bool_or(F.col("band_end").isNotNull()).alias("ours"),
        below.alias("below"),
    )
    return per_file.where("optimizable OR mixes").drop("mixes")


def _rows_below(limit: int) -> Column:
    first, last = F.col("first"), F.col("last")
    share = (F.lit(limit) - first).cast("double") / (last - first + 1)
    return F.col("elementCount") * F.greatest(F.lit(0.0), F.least(F.lit(1.0), share))


def _candidate(row: Any, fact: Any, level: int) -> Candidate:
    file = InputFile(row.path, row.deletion_vector, row["size"], fact.rows, level, fact.first_time, fact.last_time)
    return Candidate(file, row.write_id, row.can_change, row.below)
