"""What the optimizer's rules did to a query, read from its optimized plan."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from catalog.jvm.java_values import java_class, java_data


@dataclass(frozen=True)
class PlannedSample:
    """A sample that Spark takes itself.

    Attributes:
        reason: code.
        detail: says more about the reason.
        lower: lower bound, as in Spark's plan.
        upper: upper bound, likewise.
    """

    reason: str
    detail: str
    lower: float
    upper: float


@dataclass(frozen=True)
class WeightFilter:
    """A filter on weights.

    Attributes:
        first: smallest weight that it keeps; None without one.
        last: largest weight that it keeps; None without one.
        configuration: properties of the table below it, as JSON; None without one table.
        schema: schema of the table, as Delta stores it; None likewise.
    """

    first: int | None = None
    last: int | None = None
    configuration: str | None = None
    schema: str | None = None


@dataclass(frozen=True)
class PlannedReads:
    """The parts of an optimized plan that sampling and pruning concern.

    Attributes:
        samples: samples that Spark takes itself.
        weight_filters: filters on weights.
        scans: numbers of each Delta scan, by name.
    """

    samples: tuple[PlannedSample, ...]
    weight_filters: tuple[WeightFilter, ...]
    scans: tuple[Mapping[str, Any], ...]


def planned_reads(data: DataFrame) -> PlannedReads:
    """Plans a query, without running it, and reads what the rules did to it."""
    report = json.loads(java_class(data.sparkSession, "io.usespark.ReadReport").of(java_data(data)))
    return PlannedReads(
        tuple(PlannedSample(**sample) for sample in report["samples"]),
        tuple(WeightFilter(**weights) for weights in report["weight_filters"]),
        tuple(report["scans"]),
    )


def bytes_to_read(data: DataFrame) -> int:
    """Plans a query, without running it, and returns the bytes of the files that it reads from Delta tables."""
    return sum(int(scan["kept_bytes"]) for scan in planned_reads(data).scans)
