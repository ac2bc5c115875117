"""Two workers against one: how many times as fast a table is indexed, and optimized after appends.

Each worker of the standalone cluster has one core. The driver and the workers share the machine, so that the ratio is
meaningful only on a quiet machine with two cores or more. What the machine allows is measured beside it: Spark sorts
all rows and writes them, without an index. Every run has a new cluster and works on a copy of one table.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "cluster"))

from pyspark.sql import SparkSession
from standalone import Processes, StandaloneCluster

import sql_ext

WORKERS = (1, 2)
MEMORY = "2g"
FILES, APPENDS = 32, 8
JOB_SECONDS = 3600


def worker_figures(home: Path, rows: int, rounds: int) -> dict[str, Any]:
    """Measures each number of workers in turn; the figures are medians of the rounds."""
    seconds: dict[int, list[dict[str, float]]] = {count: [] for count in WORKERS}
    for round_ in range(rounds):
        for count in WORKERS if round_ % 2 == 0 else reversed(WORKERS):
            seconds[count].append(_on_workers(home, count, rows))
            print(f"  {count} workers: {seconds[count][-1]}", flush=True)
    medians = {
        str(count): {step: statistics.median(one[step] for one in found) for step in found[0]}
        for count, found in seconds.items()
    }
    one, two = (medians[str(count)] for count in WORKERS)
    figures = {"rows": rows, "seconds": medians, "times": {step: round(one[step] / two[step], 2) for step in one}}
    print(f"  {figures['times']}", flush=True)
    return figures


def _on_workers(home: Path, count: int, rows: int) -> dict[str, float]:
    folder = home / "cluster"
    folder.mkdir()
    with Processes(folder) as processes:
        cluster = StandaloneCluster(processes, count, MEMORY)
        arguments = ("--master", cluster.url, "--home", str(home), "--rows", str(rows))
        job = processes.start("job", sys.executable, str(Path(__file__).resolve()), *arguments)
        if job.wait(JOB_SECONDS):
            raise SystemExit(processes.log("job")[-5000:])
        lines = processes.log("job").splitlines()
    shutil.rmtree(folder)
    return json.loads(next(line for line in lines if line.startswith("{")))  # type: ignore[no-any-return]


# --------------------------------------------------------------------------------------------------- the driver


def _session(master: str, home: Path) -> SparkSession:
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "1500m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.qbeast.use.service.enabled": "false",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.local.dir": str(home / "local"),
    }
    builder = sql_ext.configure(SparkSession.builder.master(master).appName("bench-size"))
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    sql_ext.attach(spark)
    return spark


def _append(spark: SparkSession, folder: Path, first: int, end: int, files: int) -> None:
    values = "id", "rand(1) AS x", "rand(2) AS y", "sha2(CAST(id AS STRING), 256) AS note"
    rows = spark.range(first, end, 1, files).selectExpr(*values)
    rows.write.format("delta").mode("append").save(str(folder))


def _steps(spark: SparkSession, folder: Path, rows: int) -> dict[str, float]:
    """Indexes a table, appends a quarter of its rows, and optimizes it."""
    properties = "'use.index.columns' = 'x,y', 'use.index.targetFileBytes' = '16MB'"
    spark.sql(f"ALTER TABLE delta.`{folder}` SET TBLPROPERTIES ({properties})")
    seconds = {"index": _optimized(spark, folder)}
    part = rows // 4 // APPENDS
    for number in range(APPENDS):
        _append(spark, folder, rows + number * part, rows + (number + 1) * part, 1)
    seconds["optimize"] = _optimized(spark, folder)
    seconds["sort by Spark alone"] = _sorted(spark, folder)
    return seconds


def _optimized(spark: SparkSession, folder: Path) -> float:
    started = time.monotonic()
    spark.sql(f"CALL use.optimize('{folder}')").collect()
    return round(time.monotonic() - started, 1)


def _sorted(spark: SparkSession, folder: Path) -> float:
    started = time.monotonic()
    rows = spark.read.format("delta").load(str(folder)).repartitionByRange(FILES, "x").sortWithinPartitions("x", "y")
    rows.write.parquet(f"{folder}-sorted")
    seconds = round(time.monotonic() - started, 1)
    shutil.rmtree(f"{folder}-sorted")
    return seconds


def main() -> None:
    """Runs the steps in a session of a cluster: on a small table first, which warms up, and then on a copy."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--master", required=True)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--rows", type=int, required=True)
    options = parser.parse_args()
    spark = _session(options.master, options.home)
    sources = {name: options.home / name for name in ("small", "large")}
    seconds: dict[str, float] = {}
    for name, rows in (("small", options.rows // 10), ("large", options.rows)):
        if not sources[name].exists():
            _append(spark, sources[name], 0, rows, FILES)
        copy = options.home / "copy"
        shutil.copytree(sources[name], copy)
        seconds = _steps(spark, copy, rows)
        shutil.rmtree(copy)
    print(json.dumps(seconds), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
