"""Reports on the files that a query reads, and on its samples."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from catalog.jvm.read_report import WeightFilter, planned_reads
from catalog.pruning.join_reasons import JoinReason
from catalog.pruning.read_planning import SampleReason, sample_facts
from catalog.virtual_tables.spaces import column_names
from otree.weight import MAX_WEIGHT, MIN_WEIGHT, fraction_of
from procedures.declare.html_table import html_table
from sql_ext.remote_calls import refuse_client


@dataclass(frozen=True)
class FileCount:
    """A number of files and their bytes.

    Attributes:
        files: number of files.
        bytes: their bytes.
    """

    files: int
    bytes: int


@dataclass(frozen=True)
class JoinReport:
    """A join above a scan, whose other side may select files of the scan while the query runs.

    Attributes:
        side: the tables of the other side.
        columns: columns of the scan that are compared with its keys.
        keys: number of keys of the other side, of the column with most; None if they were not read.
        reason: why they skip no files; None if they do.
        files: files left after this join.
        bytes: their bytes.
        job_files: files that a job read for the keys; None if no job was started.
        job_bytes: their bytes.
    """

    side: str
    columns: tuple[str, ...]
    keys: int | None
    reason: JoinReason | None
    files: int
    bytes: int
    job_files: int | None = None
    job_bytes: int | None = None


@dataclass(frozen=True)
class ScanReport:
    """One scan of a Delta table in a query.

    Each step of the selection removes files from those that the previous step kept: partition filters, Delta's
    statistics (or a LIMIT instead of both), cubes, weights. The keys of joins remove files while the query runs; before
    that, ``joined_files`` equals ``kept_files``.

    Attributes:
        pruned: whether the index dropped files that Delta's statistics kept.
        candidate_files: files that Delta's partitions and statistics kept.
        candidate_bytes: their bytes.
        kept_files: files of these that the index kept.
        kept_bytes: their bytes.
        total_files: files of the whole table.
        total_bytes: their bytes.
        partition_files: files that partition filters kept.
        partition_bytes: their bytes.
        cube_files: files of the candidates that have a cube inside the conditions on indexed columns.
        cube_bytes: their bytes.
        table: name in the catalog, or the path as ``delta.`path```.
        version: version of the table that the query reads.
        is_limited: whether Delta selected only as many files as a LIMIT needs, without other filters.
        joined_files: files of the kept ones that may have rows with keys of the joins above the scan.
        joined_bytes: their bytes.
        joins: the joins above the scan.
    """

    pruned: bool
    candidate_files: int
    candidate_bytes: int
    kept_files: int
    kept_bytes: int
    total_files: int
    total_bytes: int
    partition_files: int
    partition_bytes: int
    cube_files: int
    cube_bytes: int
    table: str
    version: int
    is_limited: bool
    joined_files: int
    joined_bytes: int
    joins: tuple[JoinReport, ...]

    @property
    def skipped_by_delta_files(self) -> int:
        """Files that Delta's partitions and statistics skip."""
        return self.total_files - self.candidate_files

    @property
    def skipped_by_delta_bytes(self) -> int:
        """Their bytes."""
        return self.total_bytes - self.candidate_bytes

    @property
    def skipped_by_index_files(self) -> int:
        """Files that the index skips of those that Delta would read."""
        return self.candidate_files - self.kept_files

    @property
    def skipped_by_index_bytes(self) -> int:
        """Their bytes."""
        return self.candidate_bytes - self.kept_bytes

    @property
    def removed(self) -> dict[str, FileCount]:
        """Files removed by step: ``partitions``, ``statistics``, ``limit``, ``cubes``, ``weights`` or ``joins``."""
        by_delta = FileCount(self.partition_files - self.candidate_files, self.partition_bytes - self.candidate_bytes)
        nothing = FileCount(0, 0)
        return {
            "partitions": FileCount(self.total_files - self.partition_files, self.total_bytes - self.partition_bytes),
            "statistics": nothing if self.is_limited else by_delta,
            "limit": by_delta if self.is_limited else nothing,
            "cubes": FileCount(self.candidate_files - self.cube_files, self.candidate_bytes - self.cube_bytes),
            "weights": FileCount(self.cube_files - self.kept_files, self.cube_bytes - self.kept_bytes),
            "joins": FileCount(self.kept_files - self.joined_files, self.kept_bytes - self.joined_bytes),
        }


@dataclass(frozen=True)
class WeightSample:
    """A sample, or a part of a random split, that became a filter on weights.

    Attributes:
        columns: the indexed columns whose hash is the weight.
        lower: fraction at which it starts.
        upper: fraction at which it ends.
        note: which rows it contains, for display.
        coarse: why its size can differ much from its fraction: many rows share few weights. None if they do not, or if
            the number of weights is unknown. It is counted when a revision is created.
    """

    columns: tuple[str, ...]
    lower: float
    upper: float
    note: str
    coarse: str | None


@dataclass(frozen=True)
class SparkSample:
    """A sample that Spark takes itself, row by row.

    Attributes:
        reason: why it did not become a filter on weights.
        detail: further information, for display.
        lower: fraction at which it starts.
        upper: fraction at which it ends; above 1 only with replacement.
    """

    reason: SampleReason
    detail: str
    lower: float
    upper: float


@dataclass(frozen=True)
class ReadReport:
    """The files and samples of a query.

    Attributes:
        spark_samples: samples that Spark takes itself, each with the reason.
        weight_filters: number of filters on weights, including those of samples.
        scans: the Delta tables that it reads.
        weight_samples: samples that became a filter on weights.
    """

    spark_samples: tuple[SparkSample, ...]
    weight_filters: int
    scans: tuple[ScanReport, ...]
    weight_samples: tuple[WeightSample, ...]

    @property
    def samples(self) -> int:
        """Number of samples that Spark takes itself."""
        return len(self.spark_samples)

    def _repr_html_(self) -> str:
        """The scans with what each step skips, and the samples."""
        steps = ("partitions", "statistics", "limit", "cubes", "weights", "joins")
        header = ("table", "version", "files", "bytes", *(f"skipped by {step}" for step in steps), "read", "bytes read")
        scans = [
            (scan.table, scan.version, scan.total_files, scan.total_bytes, *(scan.removed[s].files for s in steps),
             scan.joined_files, scan.joined_bytes)
            for scan in self.scans
        ]  # fmt: skip
        samples = [(f"{s.lower:g} to {s.upper:g}", "by weight", s.coarse or s.note) for s in self.weight_samples]
        samples += [
            (f"{s.lower:g} to {s.upper:g}", "by Spark", f"{s.reason.value}: {s.detail}") for s in self.spark_samples
        ]
        shown = html_table(header, scans) if scans else "<p>No scan of a Delta table.</p>"
        return shown + (html_table(("sample", "taken", "note"), samples) if samples else "")


def read_report(data: DataFrame) -> ReadReport:
    """Plans a query without running it and reports what it would read; after it ran, also what its joins skipped.

    Args:
        data: a query of an attached session. What joins skip is known of a DataFrame whose own rows were read, as by
            ``collect`` or ``toPandas``; ``count`` and ``write`` run other queries.

    Raises:
        NotSupportedError: a query of a Spark Connect client.
    """
    refuse_client(data.sparkSession, "read_report")
    reads = planned_reads(data)
    return ReadReport(
        spark_samples=tuple(SparkSample(SampleReason(s.reason), s.detail, s.lower, s.upper) for s in reads.samples),
        weight_filters=len(reads.weight_filters),
        scans=tuple(ScanReport(**{**scan, "joins": tuple(map(_join, scan["joins"]))}) for scan in reads.scans),
        weight_samples=tuple(filter(None, map(_weight_sample, reads.weight_filters))),
    )


def _join(join: Mapping[str, Any]) -> JoinReport:
    reason = None if join["reason"] is None else JoinReason(join["reason"])
    return JoinReport(**{**join, "columns": tuple(join["columns"]), "reason": reason})


_NOTE = "follows the weights: a seed has no effect, and two samples of the same fraction contain the same rows"


def _weight_sample(weight_filter: WeightFilter) -> WeightSample | None:
    """Returns the sample of a filter with a lower or upper limit of weights; None for any other filter."""
    configuration, schema = weight_filter.configuration, weight_filter.schema
    facts = None if configuration is None else sample_facts(configuration)
    if facts is None or schema is None or (weight_filter.first is None and weight_filter.last is None):
        return None
    columns = tuple(column_names(StructType.fromJson(json.loads(schema)), facts.columns))
    first = MIN_WEIGHT if weight_filter.first is None else weight_filter.first
    last = MAX_WEIGHT if weight_filter.last is None else weight_filter.last
    upper = 1.0 if last == MAX_WEIGHT else round(fraction_of(last + 1), 9)
    return WeightSample(columns, round(fraction_of(first), 9), upper, _NOTE, facts.coarse)
