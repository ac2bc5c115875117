"""The cost of records of queries, and the time to summarize them.

* ``off`` and ``on``: the median time of one query, in rounds that alternate, on a table without and with
  ``use.insights.consumption.enabled``.
* ``ratio``: the median of on / off of the rounds.
* ``listener``: microseconds per recorded scan on the thread of the listener, the events that its queue took per
  query, and the Spark jobs that a query has with and without records.
* ``summary``: a count per user and filter column over a million generated records.
* ``ingestion``: the rows of a table with 10,000 commits.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from long_log import write_log
from pyspark.sql import SparkSession

import sql_ext
from catalog.jvm.application_metrics import ApplicationMetrics
from catalog.jvm.shim_bridge import ShimBridge

_LINES_PER_FILE = 12_000
_ENABLED = "use.insights.consumption.enabled"


def _record(number: int, table_id: str) -> str:
    count = {"files": 10, "bytes": 1_000_000}
    counts = ("table_size", "skipped_by_partitions", "skipped_by_statistics", "skipped_by_limit", "skipped_by_cubes")
    return json.dumps(
        {
            "table_id": table_id,
            "version": number // 1000,
            "finished_at": 1_700_000_000_000 + number * 1000,
            "user_name": f"user{number % 20}",
            "session_kind": "thrift",
            "application_id": "application_1700000000000_0001",
            "execution_id": number,
            "scan": 0,
            "duration_ms": number % 5000,
            "query_id": f"{number:032x}",
            "filters": [{"column": f"c{number % 7}", "operator": "<"}, {"column": "day", "operator": "="}],
            **dict.fromkeys((*counts, "skipped_by_weights", "read"), count),
            "rows_read": 100_000,
            "rows_kept": number % 100_000,
        }
    )


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _median_ratio(spark: SparkSession, folder: Path, rounds: int) -> tuple[float, float, float]:
    """Median seconds without and with records, and the median ratio; rounds alternate which comes first."""
    for name in ("off", "on"):
        data = spark.range(400_000).selectExpr("id", "id % 1000 AS x", "rand(7) AS y")
        data.repartition(8).write.format("delta").save(str(folder / name))
    spark.sql(f"ALTER TABLE delta.`{folder}/on` SET TBLPROPERTIES ('{_ENABLED}' = 'true')")

    def query(name: str) -> float:
        text = f"SELECT sum(y) FROM delta.`{folder}/{name}` WHERE x < 500 AND id > 1000"
        return _timed(lambda: spark.sql(text).collect())

    for _ in range(10):
        query("off"), query("on")
    times: dict[str, list[float]] = {"off": [], "on": []}
    for number in range(rounds):
        for name in ("off", "on") if number % 2 else ("on", "off"):
            times[name].append(query(name))
    ratios = [on / off for on, off in zip(times["on"], times["off"], strict=True)]
    return statistics.median(times["off"]), statistics.median(times["on"]), statistics.median(ratios)


def _listener(spark: SparkSession, folder: Path, queries: int) -> str:
    """The time of the listener per query, counted and not compared with the time of the query."""
    metrics = ApplicationMetrics(spark)
    context = spark.sparkContext._jsc.sc()
    timer = "queue.useScans.listenerProcessingTime"

    def events() -> int:
        context.listenerBus().waitUntilEmpty()
        source = context.env().metricsSystem().getSourcesByName("LiveListenerBus").apply(0)
        return int(source.metricRegistry().getTimers()[timer].getCount())

    jobs, taken = {}, 0
    before = metrics.exchange({})
    for name in ("off", "on"):
        first, started = context.dagScheduler().numTotalJobs(), events()
        for _ in range(queries):
            spark.sql(f"SELECT sum(y) FROM delta.`{folder}/{name}` WHERE x < 500 AND id > 1000").collect()
        taken = events() - started
        jobs[name] = (context.dagScheduler().numTotalJobs() - first) / queries
    after = metrics.exchange({})
    scans, micros = (
        after[key] - before.get(key, 0) for key in ("recorded_scans_total", "recording_microseconds_total")
    )
    assert scans == queries
    return (
        f"listener {micros / scans:8.0f} us per scan on its own thread, {taken / queries:.0f} events per query, "
        f"jobs per query off {jobs['off']:g}, on {jobs['on']:g}"
    )


def _summary(spark: SparkSession, folder: Path, records: int) -> float:
    target, store = f"delta.`{folder}/on`", folder / "on" / "_use" / "consumption"
    ShimBridge(spark).flush_scans()
    table_id = spark.sql(f"DESCRIBE DETAIL {target}").first()["id"]  # type: ignore[index]
    store.mkdir(parents=True, exist_ok=True)
    for first in range(0, records, _LINES_PER_FILE):
        lines = [_record(number, table_id) for number in range(first, min(first + _LINES_PER_FILE, records))]
        (store / f"{1_700_000_000_000 + first * 1000}-full-{len(lines)}-{first:032x}.json").write_text("\n".join(lines))
    text = (
        f"SELECT user_name, f.column, count(*) AS scans, avg(selectivity) AS selectivity FROM {target}.consumption "
        "LATERAL VIEW explode(filters) AS f GROUP BY 1, 2"
    )
    rows = []
    seconds = _timed(lambda: rows.extend(spark.sql(text).collect()))
    assert sum(row.scans for row in rows) >= 2 * records
    return seconds


def _ingestion(spark: SparkSession, folder: Path, commits: int) -> float:
    schema = spark.sql(
        "SELECT 1L AS id, 1D AS price, '' AS city, current_timestamp() AS time, current_date() AS day"
    ).schema
    write_log(folder / "long", 0, commits - 1, schema.json())
    rows = []
    seconds = _timed(lambda: rows.extend(spark.sql(f"SELECT * FROM delta.`{folder}/long`.ingestion").collect()))
    assert [row.version for row in rows] == list(range(commits))[::-1]
    return seconds


def main() -> None:
    """Prints a line per measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--commits", type=int, default=10_000)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="use-insights-"))
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.qbeast.use.service.enabled", "false")
    )
    spark = sql_ext.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    sql_ext.attach(spark)
    try:
        off, on, ratio = _median_ratio(spark, folder, arguments.rounds)
        print(f"query off {off * 1000:8.1f} ms, on {on * 1000:8.1f} ms, ratio {ratio:.3f}", flush=True)
        print(_listener(spark, folder, 50), flush=True)
        print(f"summary of {arguments.records} records {_summary(spark, folder, arguments.records):8.1f} s", flush=True)
        print(f"ingestion of {arguments.commits} commits {_ingestion(spark, folder, arguments.commits):8.1f} s")
    finally:
        spark.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
