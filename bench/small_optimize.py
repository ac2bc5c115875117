"""One optimization of two small appends, against Delta's OPTIMIZE on a table of the same rows: seconds, CPU and jobs.

Each round inserts 1,000 rows twice and optimizes. The rounds come in three kinds:

* ``appends``: the table was optimized before, and this process knows it;
* ``first look``: the same, but Delta and USE have forgotten the table, as in a new process;
* ``new table``: a table without a revision.

Java compiles for dozens of rounds what runs often, so the first rounds are not measured, and the CPU of the compiler
threads is given separately. CPU seconds and jobs are what other programs on the machine change least.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench_session import start_session
from pyspark.sql import SparkSession

import sql_ext
from catalog.files import version_files

HOME = Path.cwd() / "build" / "bench-small-optimize"
ROWS = 1_000
WAYS: dict[str, Callable[[SparkSession, str], object]] = {
    "optimize": lambda spark, table: spark.sql(f"OPTIMIZE {table}").collect(),
    "use": lambda spark, table: sql_ext.call(spark, "optimize", table=table).collect(),
}
KINDS = ("appends", "first look", "new table")
_COMPILERS = ("C1 Compiler", "C2 Compiler")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    """What an optimization costs, or what was spent until a moment.

    Attributes:
        seconds: of a clock.
        jvm_cpu: CPU seconds of the JVM, without its compiler threads.
        compiler_cpu: CPU seconds of its compiler threads.
        python_cpu: CPU seconds of this process.
        jobs: of Spark.
    """

    seconds: float
    jvm_cpu: float
    compiler_cpu: float
    python_cpu: float
    jobs: int

    @classmethod
    def now(cls, spark: SparkSession) -> Cost:
        """What was spent until now."""
        context = spark.sparkContext
        process = Path(f"/proc/{context._gateway.proc.pid}")  # type: ignore[union-attr]
        compilers = sum(_cpu_seconds(task, _COMPILERS) for task in process.glob("task/*"))
        jobs = context._jsc.sc().dagScheduler().numTotalJobs()
        jvm = _cpu_seconds(process) - compilers
        return cls(time.monotonic(), jvm, compilers, time.process_time(), jobs)

    def since(self, begin: Cost) -> Cost:
        """What was spent since a moment."""
        return Cost(*(now - then for now, then in zip(vars(self).values(), vars(begin).values(), strict=True)))

    @staticmethod
    def median(costs: list[Cost]) -> dict[str, float]:
        """The medians, rounded; ``cpu`` is that of both processes, without compiler threads."""
        found = {name: statistics.median(vars(cost)[name] for cost in costs) for name in vars(costs[0])}
        found["cpu"] = statistics.median(cost.jvm_cpu + cost.python_cpu for cost in costs)
        return {name: round(value, 3) for name, value in found.items()}


def _cpu_seconds(process: Path, names: tuple[str, ...] = ("",)) -> float:
    """User and system time of a process or thread below ``/proc``; 0 for other names, and if it has ended."""
    try:
        _, name, rest = re.split(r" \(|\) ", (process / "stat").read_text(), maxsplit=2)
    except FileNotFoundError:
        return 0.0
    fields = rest.split()
    return (int(fields[11]) + int(fields[12])) / _TICKS if name.startswith(names) else 0.0


def main() -> None:
    """Prints, as a line of JSON, the median costs of each way; those of other kinds of rounds are named by both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="measured rounds of each kind")
    parser.add_argument("--warm-up", type=int, default=10, help="rounds of each kind before them")
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    given = parser.parse_args()
    shutil.rmtree(HOME, ignore_errors=True)
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        # Java would end compiler threads and forget their CPU seconds.
        "spark.driver.extraJavaOptions": "-XX:-UseDynamicNumberOfCompilerThreads",
    }
    spark = start_session("bench-small-optimize", HOME, "2g", settings)
    try:
        for way in WAYS:
            create(spark, way, f"default.{way}")
        costs: dict[str, list[Cost]] = defaultdict(list)
        for number in range(given.warm_up + given.rounds):
            # The ways take turns, so that a busy moment of the machine meets both.
            for kind in given.kinds:
                for way in WAYS:
                    cost = measured(spark, way, kind, number)
                    if number >= given.warm_up:
                        costs[way if kind == "appends" else f"{way}, {kind}"].append(cost)
        print(json.dumps({name: Cost.median(found) for name, found in costs.items()}))
    finally:
        spark.stop()


def create(spark: SparkSession, way: str, table: str) -> None:
    """Creates the table of a way; inserts do not index it."""
    source = "delta" if way == "optimize" else "qbeast OPTIONS (columnsToIndex 'id,x')"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, x BIGINT) USING {source}")
    if way == "use":
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('use.index.onWrite' = 'false')")


def measured(spark: SparkSession, way: str, kind: str, number: int) -> Cost:
    """Inserts twice and optimizes; returns the cost of the optimization."""
    table = f"default.{way}"
    if kind == "new table":
        table = f"default.{way}_{number}"
        create(spark, way, table)
    for part in range(2):
        first = (2 * (len(KINDS) * number + KINDS.index(kind)) + part) * ROWS
        spark.sql(f"INSERT INTO {table} SELECT id, hash(id) FROM range({first}, {first + ROWS})")
    if kind == "first look":
        spark.sparkContext._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
        version_files._KEPT_TABLES = type(version_files._KEPT_TABLES)(version_files._KEPT_TABLES._limit)
    begin = Cost.now(spark)
    WAYS[way](spark, table)
    cost = Cost.now(spark).since(begin)
    if kind == "new table":
        spark.sql(f"DROP TABLE {table}")
    return cost


if __name__ == "__main__":
    main()
