"""One optimization of two small appends, against Delta's OPTIMIZE on a table of the same rows.

Each round inserts 1,000 rows twice and optimizes. The first round is not measured, because it compiles what the others
use. Jobs of Spark are what no other program on the machine changes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from bench_session import start_session
from pyspark.sql import SparkSession

import sql_ext

HOME = Path.cwd() / "build" / "bench-small-optimize"
ROWS = 1_000
WAYS: dict[str, Callable[[SparkSession, str], object]] = {
    "optimize": lambda spark, table: spark.sql(f"OPTIMIZE {table}").collect(),
    "use": lambda spark, table: sql_ext.call(spark, "optimize", table=table).collect(),
}


def main() -> None:
    """Prints, as a line of JSON, the median seconds and jobs of each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    shutil.rmtree(HOME, ignore_errors=True)
    settings = {"spark.sql.shuffle.partitions": "2", "spark.databricks.delta.snapshotPartitions": "1"}
    spark = start_session("bench-small-optimize", HOME, "2g", settings)
    try:
        spark.sql("CREATE TABLE default.optimize (id BIGINT, x BIGINT) USING delta")
        spark.sql("CREATE TABLE default.use (id BIGINT, x BIGINT) USING qbeast OPTIONS (columnsToIndex 'id,x')")
        spark.sql("ALTER TABLE default.use SET TBLPROPERTIES ('use.index.onWrite' = 'false')")
        costs: dict[str, list[tuple[float, int]]] = {way: [] for way in WAYS}
        for number in range(rounds):
            # The ways take turns, so that a busy moment of the machine meets both.
            for way, optimize in WAYS.items():
                costs[way].append(measured(spark, f"default.{way}", number, optimize))
        medians = {
            way: {
                "seconds": round(statistics.median(seconds for seconds, _ in found[1:]), 2),
                "jobs": statistics.median(jobs for _, jobs in found[1:]),
            }
            for way, found in costs.items()
        }
        print(json.dumps(medians))
    finally:
        spark.stop()


def measured(
    spark: SparkSession, table: str, number: int, optimize: Callable[[SparkSession, str], object]
) -> tuple[float, int]:
    """Inserts twice and optimizes; returns the seconds and the jobs of the optimization."""
    for part in range(2):
        first = (2 * number + part) * ROWS
        spark.sql(f"INSERT INTO {table} SELECT id, hash(id) FROM range({first}, {first + ROWS})")
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    jobs, begun = scheduler.numTotalJobs(), time.monotonic()
    optimize(spark, table)
    return time.monotonic() - begun, scheduler.numTotalJobs() - jobs


if __name__ == "__main__":
    main()
