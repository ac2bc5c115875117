"""What the rules did to a query, for explanations, demos and tests."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyspark.sql import DataFrame

from catalog.session import jvm


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
class ReadReport:
    """What a query will read.

    Attributes:
        samples: samples that Spark takes itself, row by row.
        weight_filters: samples that became a filter on weights.
        scans: the Delta tables it reads.
    """

    samples: int
    weight_filters: int
    scans: tuple[ScanReport, ...]


def read_report(data: DataFrame) -> ReadReport:
    """Plans the query, without running it, and reports what it would read."""
    found = json.loads(jvm(data.sparkSession).io.usespark.ReadReport.of(data._jdf))
    return ReadReport(found["samples"], found["weight_filters"], tuple(ScanReport(**scan) for scan in found["scans"]))
