"""One execution of a query: its rows, and what it read by Spark's metrics."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

Rows = list[tuple[object, ...]]

# Vectored reads are missing in Spark's input metrics.
COUNTED_READS = {"spark.hadoop.parquet.hadoop.vectored.io.enabled": "false"}


@dataclass(frozen=True)
class Execution:
    """What a query cost.

    Attributes:
        input_bytes: by the input metrics of its tasks, of all tables.
        jobs: number of Spark jobs.
        seconds: from the text of the query to its last row.
        rows: sorted by their text.
        data: the query.
    """

    input_bytes: int
    jobs: int
    seconds: float
    rows: Rows
    data: DataFrame


def execute(spark: SparkSession, query: str) -> Execution:
    """Runs a query."""
    group = f"measured-{time.monotonic_ns()}"
    spark.sparkContext.setJobGroup(group, "benchmark")
    start = time.monotonic()
    data = spark.sql(query)
    rows = sorted(map(tuple, data.collect()), key=str)
    seconds = time.monotonic() - start
    tracker, context = spark.sparkContext.statusTracker(), spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    # A stage that was skipped has no attempt.
    stages = {stage for job in jobs if job for stage in job.stageIds if tracker.getStageInfo(stage)}
    read = sum(context.statusStore().lastStageAttempt(stage).inputBytes() for stage in stages)
    return Execution(read, len(jobs), seconds, rows, data)


def in_turn(contenders: Mapping[str, Callable[[], Execution]], rounds: int) -> dict[str, list[Execution]]:
    """Runs contenders in turn, in another order each time; the first round warms up and is left out.

    Args:
        contenders: what to run, by name.
        rounds: how many rounds count.
    """
    runs: dict[str, list[Execution]] = {name: [] for name in contenders}
    names = list(contenders)
    for turn in range(rounds + 1):
        for name in names if turn % 2 else reversed(names):
            runs[name].append(contenders[name]())
    return {name: each[1:] for name, each in runs.items()}


def median_seconds(runs: Sequence[Execution]) -> float:
    """The median time of some executions."""
    return statistics.median(run.seconds for run in runs)
