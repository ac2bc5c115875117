"""What the rules did to a query, for explanations, demos and tests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from catalog.read_planning import SampleReason
from catalog.session import jvm
from sql_ext.remote_calls import refuse_client


@dataclass(frozen=True)
class ScanReport:
    """One scan of a Delta table in a query.

    Attributes:
        pruned: whether the index dropped files that Delta's statistics kept.
        candidate_files: files that Delta's statistics kept.
        candidate_bytes: their bytes.
        kept_files: files that the index kept of them.
        kept_bytes: their bytes.
    """

    pruned: bool
    candidate_files: int
    candidate_bytes: int
    kept_files: int
    kept_bytes: int


@dataclass(frozen=True)
class SparkSample:
    """A sample that Spark takes itself, row by row.

    Attributes:
        reason: why it did not become a filter on weights.
        detail: what it is about, for people.
        lower: fraction at which it starts.
        upper: fraction at which it ends; above 1 only with replacement.
    """

    reason: SampleReason
    detail: str
    lower: float
    upper: float


@dataclass(frozen=True)
class ReadReport:
    """What a query will read.

    Attributes:
        spark_samples: samples that Spark takes itself, each with the reason.
        weight_filters: samples that became a filter on weights.
        scans: the Delta tables it reads.
    """

    spark_samples: tuple[SparkSample, ...]
    weight_filters: int
    scans: tuple[ScanReport, ...]

    @property
    def samples(self) -> int:
        """How many samples Spark takes itself."""
        return len(self.spark_samples)


def read_report(data: DataFrame) -> ReadReport:
    """Plans the query, without running it, and reports what it would read.

    Args:
        data: a query of an attached session.

    Raises:
        NotSupportedError: a query of a Spark Connect client.
    """
    refuse_client(data.sparkSession, "read_report")
    found = json.loads(jvm(data.sparkSession).io.usespark.ReadReport.of(data._jdf))
    return ReadReport(
        spark_samples=tuple(_sample(sample) for sample in found["samples"]),
        weight_filters=found["weight_filters"],
        scans=tuple(ScanReport(**scan) for scan in found["scans"]),
    )


def _sample(found: dict[str, Any]) -> SparkSample:
    return SparkSample(SampleReason(found["reason"]), found["detail"], found["lower"], found["upper"])
