"""The life of a table on a cluster: written by several writers, indexed, sampled, filtered, vacuumed, checked.

By spark-submit, which gives master and settings:

    use-spark conf > use.conf
    spark-submit --master spark://host:7077 --properties-file use.conf examples/cluster_job.py --folder /shared/demo

or without it, as a driver that creates its own session:

    python examples/cluster_job.py --master spark://host:7077 --folder /shared/demo

The driver and all executors must be able to access the folder. The job ends with exit code 1 if a check fails;
``--report`` writes its observations as JSON.
"""

from __future__ import annotations

import argparse
import json
import threading
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import sql_ext

WRITERS, APPENDS = 3, 4
FRACTION = 0.1
RULES = ("spark.qbeast.use.sampling.enabled", "spark.qbeast.use.pruning.enabled")


def session(master: str | None, conf: list[str]) -> SparkSession:
    """The session: spark-submit's, or one that is configured here."""
    builder: SparkSession.Builder = SparkSession.builder
    builder = builder.appName("cluster-job")
    for setting in conf:
        key, _, value = setting.partition("=")
        builder = builder.config(key, value)
    if master is not None:
        builder = sql_ext.configure(builder.master(master))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    sql_ext.attach(spark)
    return spark


def rows(spark: SparkSession, start: int, count: int) -> DataFrame:
    """Rows whose x and y do not follow their order."""
    return spark.range(start, start + count, 1, 1).select(
        "id",
        (F.pmod(F.xxhash64("id", F.lit("x")), F.lit(1_000_000)) / 1e6).alias("x"),
        F.pmod(F.xxhash64("id", F.lit("y")), F.lit(1000)).cast("int").alias("y"),
    )


def checksum(data: DataFrame) -> list[str]:
    """Number of rows and sum of their hashes: the same for the same rows in any order."""
    hashes = F.xxhash64(*[F.col(c) for c in sorted(data.columns)]).cast("decimal(38,0)")
    found = data.agg(F.count(F.lit(1)), F.sum(hashes)).collect()[0]
    return [str(value) for value in found]


def executors(spark: SparkSession) -> dict[str, int]:
    """Tasks that each executor has completed, including executors that have ended."""
    java: Any = spark.sparkContext._jsc
    store, found = java.sc().statusStore().executorList(False), {}
    for number in range(store.size()):
        summary = store.apply(number)
        found[summary.id()] = summary.completedTasks()
    return found


def append(spark: SparkSession, table: str, count: int) -> None:
    """Plain appends of several writers at once."""
    failures: list[BaseException] = []

    def write(writer: int) -> None:
        try:
            for part in range(APPENDS):
                data = rows(spark, (writer * APPENDS + part) * count, count)
                data.write.format("delta").mode("append").saveAsTable(table)
        except BaseException as error:  # noqa: BLE001 - told to the thread that waits
            failures.append(error)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def plainly(spark: SparkSession, query: str) -> list[str]:
    """The checksum of a query without the index."""
    for rule in RULES:
        spark.conf.set(rule, "false")
    try:
        return checksum(spark.sql(query))
    finally:
        for rule in RULES:
            spark.conf.unset(rule)


def expect(right: bool, what: str) -> None:
    """Ends the job if a check fails."""
    if not right:
        raise SystemExit(f"not as it should be: {what}")
    print(f"as it should be: {what}", flush=True)


def run(spark: SparkSession, folder: str, count: int, batch_bytes: int) -> dict[str, Any]:
    """The job.

    Args:
        spark: an attached session.
        folder: new, and accessible to the driver and the executors.
        count: rows of an append.
        batch_bytes: bytes of files that a group of the first optimization takes.

    Returns:
        Its observations.
    """
    report: dict[str, Any] = {}
    spark.sql(f"CREATE TABLE events (id BIGINT, x DOUBLE, y INT) USING delta LOCATION '{folder}/events'")
    append(spark, "events", count)
    spark.sql("ALTER TABLE events SET TBLPROPERTIES ('use.index.columns' = 'x,y', 'use.index.cubeSize' = '1000')")
    before = checksum(spark.table("events"))
    expect(before[0] == str(WRITERS * APPENDS * count), "every append is there")

    print("optimizing", flush=True)
    optimize = "CALL use.optimize(table => 'events', strategy => 'UnindexedFiles,LeveledCompaction'"
    done = spark.sql(f"{optimize}, options => map('batch_bytes', '{batch_bytes}'))").collect()
    report["groups"] = [row.state for row in done]
    expect("committed" in report["groups"], "optimize commits")
    # Work that a lost executor may have left undone is done now.
    spark.sql(f"{optimize})").collect()
    again = spark.sql(f"{optimize})").collect()
    expect([row.reason for row in again] == ["NOTHING_TO_DO"], "another optimize finds nothing to do")
    expect(checksum(spark.table("events")) == before, "the rows are the same")

    limit = round(-(2**31) + FRACTION * 2**32)
    sampled = spark.table("events").sample(FRACTION)
    expect(
        checksum(sampled) == plainly(spark, f"SELECT * FROM events WHERE hash(x, y) < {limit}"),
        "a sample holds the rows of the lowest weights",
    )
    expect(not sql_ext.read_report(sampled).spark_samples, "the sample is the index's")
    box = "SELECT * FROM events WHERE x BETWEEN 0.2 AND 0.4 AND y < 300"
    expect(checksum(spark.sql(box)) == plainly(spark, box), "a range query gives the rows of a plain read")

    vacuumed = spark.sql("CALL use.vacuum('events', retention_hours => 0, force => true)").collect()
    expect(vacuumed[0].files >= WRITERS * APPENDS, "vacuum deletes what was rewritten")
    expect(checksum(spark.table("events")) == before, "the rows are still the same")
    summary = spark.sql("CALL use.check('events', deep => true)").collect()[-1]
    expect(summary.severity == "ok", f"the index is sound: {summary.message}")
    events = spark.sql("SELECT state FROM events.optimizations WHERE state = 'committed'").count()
    expect(events >= report["groups"].count("committed"), "the optimizations are on record")

    indexed = f"{folder}/indexed"
    rows(spark, 0, count).write.format("qbeast").option("columnsToIndex", "x,y").save(indexed)
    expect(spark.read.format("qbeast").load(indexed).count() == count, "an indexed write is read back")
    revisions = spark.sql(f"SELECT rows FROM delta.`{indexed}`.revisions WHERE revision_id > 0").collect()
    expect([row.rows for row in revisions] == [count], "its rows are in a revision")
    return {**report, "rows": before, "executors": executors(spark), "check": summary.message}


def main() -> None:
    """Reads the command line and runs the job."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True, help="new folder that driver and executors see")
    parser.add_argument("--master", help="URL of the master; spark-submit's when left out")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark")
    parser.add_argument("--rows", type=int, default=2000, help="rows of each of the 12 appends (default 2000)")
    parser.add_argument("--batch-bytes", type=int, default=10**10, help="bytes of a group of the first optimization")
    parser.add_argument("--report", type=Path, help="file for what was seen, as JSON")
    given = parser.parse_args()
    spark = session(given.master, given.conf)
    try:
        report = run(spark, given.folder, given.rows, given.batch_bytes)
    finally:
        spark.stop()
    if given.report:
        given.report.write_text(json.dumps(report), encoding="utf-8")
    print(f"done; tasks by executor: {report['executors']}", flush=True)


if __name__ == "__main__":
    main()
