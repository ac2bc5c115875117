"""Our layout against plain Delta, ZORDER and liquid clustering: the same rows and file sizes, in one run.

``make bench-layout`` runs it with 5,000,000 rows and 16 MB files. Bytes are Spark's input metrics, times are whole
statements; ratios are what to compare, since they are from one machine and one run. What it writes goes to
``build/bench``, which is emptied first.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import sql_ext

HOME = Path.cwd() / "build" / "bench"
COLUMNS = {2: ("x", "y"), 3: ("x", "y", "ts")}
SAMPLES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5)
BOXES = (0.001, 0.01, 0.1)
BOXES_EACH = 5
APPENDS, APPEND_ROWS = 20, 20_000


@dataclass(frozen=True)
class Contender:
    """A way to lay a table out.

    Attributes:
        name: for the report.
        write: makes the table of some rows; the columns to lay it out by are given.
        append: adds rows to it.
        tidy: what its owner would run after appends.
    """

    name: str
    write: Callable[[DataFrame, str, tuple[str, ...]], None]
    append: Callable[[DataFrame, str], None]
    tidy: Callable[[SparkSession, str, tuple[str, ...]], None]


def main() -> None:
    """Runs all contenders in 2 and 3 columns and prints a table and, as the last line, JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--file-bytes", type=int, default=16 * 1024 * 1024)
    parser.add_argument("--dimensions", type=int, nargs="*", default=[2, 3])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--appends", type=int, default=APPENDS)
    given = parser.parse_args()
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    spark = start(given.file_bytes)
    try:
        source = stage(spark, given.rows, given.file_bytes)
        # The first write of a session compiles what all others use.
        source.write.format("delta").saveAsTable("default.warm_up")
        results = []
        for dimensions in given.dimensions:
            boxes = boxes_of(source, COLUMNS[dimensions])
            for contender in contenders(given.file_bytes):
                if given.only and contender.name not in given.only:
                    continue
                results.append(run(spark, source, contender, dimensions, boxes, given.appends))
        report(results)
    finally:
        spark.stop()


def start(file_bytes: int) -> SparkSession:
    """A session of two cores, as our users' smallest, that counts what it reads."""
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("bench-layout")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.warehouse.dir", str(HOME / "warehouse"))
        .config("spark.local.dir", str(HOME / "local"))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config("spark.databricks.delta.optimize.maxFileSize", str(file_bytes))
        .config("spark.databricks.delta.optimize.minFileSize", str(file_bytes))
        # Spark's input metrics leave vectored reads out.
        .config("spark.hadoop.parquet.hadoop.vectored.io.enabled", "false")
    )
    spark = sql_ext.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    sql_ext.attach(spark)
    return spark


def stage(spark: SparkSession, rows: int, file_bytes: int) -> DataFrame:
    """About 90 bytes a row: skewed numbers, a time with gaps, words of uneven frequency, and what does not compress."""
    folder = str(HOME / "source")
    number = F.xxhash64("id", F.lit(7))

    def uniform(name: str) -> F.Column:
        return F.pmod(F.xxhash64("id", F.lit(name)), F.lit(1_000_003)) / 1_000_003.0

    partitions = max(2, rows * 90 // file_bytes)
    spark.range(0, rows, 1, partitions).select(
        "id",
        F.exp(3 * (uniform("a") + uniform("b") + uniform("c") - 1.5)).alias("x"),
        (F.pow(uniform("d"), F.lit(3.0)) * 1000).alias("y"),
        F.timestamp_micros(((1.7e15 + uniform("e") * 3e13) + F.pmod("id", F.lit(7)) * 1e12).cast("bigint")).alias("ts"),
        F.concat(F.lit("word"), F.floor(F.pow(uniform("f"), F.lit(4.0)) * 5000).cast("string")).alias("word"),
        F.pmod(number, F.lit(100)).cast("int").alias("kind"),
        F.sha2(F.col("id").cast("string"), 256).substr(1, 40).alias("payload"),
    ).write.parquet(folder)
    spark.conf.set("spark.sql.files.maxPartitionBytes", str(file_bytes))
    spark.conf.set("spark.sql.files.openCostInBytes", str(file_bytes))
    return spark.read.parquet(folder)


def contenders(file_bytes: int) -> list[Contender]:
    """The four ways; each writes the same frame."""

    def plain(rows: DataFrame, table: str, _: tuple[str, ...]) -> None:
        rows.write.format("delta").saveAsTable(table)

    def zorder(spark: SparkSession, table: str, columns: tuple[str, ...]) -> None:
        spark.sql(f"OPTIMIZE {table} ZORDER BY ({', '.join(columns)})")

    def zordered(rows: DataFrame, table: str, columns: tuple[str, ...]) -> None:
        plain(rows, table, columns)
        zorder(rows.sparkSession, table, columns)

    def liquid(rows: DataFrame, table: str, columns: tuple[str, ...]) -> None:
        spark = rows.sparkSession
        spark.sql(f"CREATE TABLE {table} ({rows.schema.toDDL()}) USING delta CLUSTER BY ({', '.join(columns)})")
        append(rows, table)
        optimize(spark, table)

    def use(rows: DataFrame, table: str, columns: tuple[str, ...]) -> None:
        rows.sparkSession.sql(
            f"CREATE TABLE {table} ({rows.schema.toDDL()}) USING qbeast OPTIONS (columnsToIndex '{','.join(columns)}') "
            f"TBLPROPERTIES ('use.index.targetFileBytes'='{file_bytes}')"
        )
        rows.write.format("qbeast").mode("append").saveAsTable(table)

    def append(rows: DataFrame, table: str) -> None:
        rows.write.format("delta").mode("append").saveAsTable(table)

    def optimize(spark: SparkSession, table: str, _: tuple[str, ...] = ()) -> None:
        spark.sql(f"OPTIMIZE {table}")

    def tidy(spark: SparkSession, table: str, _: tuple[str, ...]) -> None:
        sql_ext.call(spark, "optimize", table=table).collect()

    return [
        Contender("plain", plain, append, optimize),
        Contender("zorder", zordered, append, zorder),
        Contender("liquid", liquid, append, optimize),
        Contender("use", use, append, tidy),
    ]


def boxes_of(source: DataFrame, columns: tuple[str, ...]) -> dict[float, list[str]]:
    """Boxes of about each share of the rows, at the same random places for all contenders."""
    chance = random.Random(11)
    steps = [step / 1000 for step in range(1001)]
    quantiles = {
        column: source.select(F.col(column).cast("double").alias("value")).approxQuantile("value", steps, 0.0005)
        for column in columns
    }
    found: dict[float, list[str]] = {}
    for share in BOXES:
        side = share ** (1 / len(columns))
        found[share] = []
        for _ in range(BOXES_EACH):
            parts = []
            for column in columns:
                low = int(chance.uniform(0, 1 - side) * 1000)
                high = min(1000, low + round(side * 1000))
                value = f"CAST({column} AS DOUBLE)" if column == "ts" else column
                first, last = quantiles[column][low], quantiles[column][high]
                if column == "ts":
                    value, first, last = column, f"timestamp_seconds({first!r})", f"timestamp_seconds({last!r})"
                parts.append(f"{value} BETWEEN {first} AND {last}")
            found[share].append(" AND ".join(parts))
    return found


def run(
    spark: SparkSession,
    source: DataFrame,
    contender: Contender,
    dimensions: int,
    boxes: dict[float, list[str]],
    appends: int,
) -> dict[str, object]:
    """Writes, measures, appends in small batches, measures, tidies up, measures again."""
    table = f"default.{contender.name}_{dimensions}"
    columns = COLUMNS[dimensions]
    begun = time.monotonic()
    contender.write(source, table, columns)
    result: dict[str, object] = {"layout": contender.name, "columns": dimensions}
    result["write_s"] = round(time.monotonic() - begun, 2)
    result["fresh"] = measured(spark, table, boxes)
    if appends:
        rows = source.count()
        for number in range(appends):
            batch = source.limit(APPEND_ROWS).withColumn("id", F.col("id") + rows + number * APPEND_ROWS)
            contender.append(batch.coalesce(1), table)
        result["appended"] = measured(spark, table, boxes)
        begun = time.monotonic()
        contender.tidy(spark, table, columns)
        result["tidy_s"] = round(time.monotonic() - begun, 2)
        result["tidied"] = measured(spark, table, boxes)
    print(json.dumps(result), flush=True)
    return result


def measured(spark: SparkSession, table: str, boxes: dict[float, list[str]]) -> dict[str, object]:
    """Files and bytes of the table, and shares of its bytes that queries read."""
    files, size = spark.sql(f"DESCRIBE DETAIL {table}").select("numFiles", "sizeInBytes").collect()[0]
    data = spark.table(table)
    found: dict[str, object] = {"files": files, "bytes": size}
    for fraction in SAMPLES:
        found[f"sample {fraction}"] = round(bytes_read(spark, data.sample(fraction)) / size, 4)
    for share, places in boxes.items():
        found[f"box {share}"] = round(statistics.mean(bytes_read(spark, data.where(b)) for b in places) / size, 4)
    return found


def bytes_read(spark: SparkSession, data: DataFrame) -> int:
    """Bytes that an aggregate over all columns reads, by Spark's input metrics."""
    context = spark.sparkContext
    group = f"bench-{time.monotonic_ns()}"
    context.setJobGroup(group, "measured query")
    data.agg(F.sum(F.xxhash64(*[F.col(name) for name in data.columns]).cast("decimal(38,0)"))).collect()
    context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # None ends the group
    jvm = context._jsc.sc()
    jvm.listenerBus().waitUntilEmpty()
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = {stage for job in jobs if job for stage in job.stageIds}
    return sum(jvm.statusStore().lastStageAttempt(stage).inputBytes() for stage in stages)


def report(results: Iterable[dict[str, object]]) -> None:
    """Prints one line per layout and state, then all of it as JSON."""
    rows = list(results)
    plain = {r["columns"]: r["write_s"] for r in rows if r["layout"] == "plain"}
    names = ["files", *[f"sample {f}" for f in SAMPLES], *[f"box {b}" for b in BOXES]]
    print(f"{'layout':8} {'cols':4} {'state':9} {'write s':>8} {'ratio':>6} " + " ".join(f"{n:>12}" for n in names))
    for r in rows:
        for state in ("fresh", "appended", "tidied"):
            if state not in r:
                continue
            seconds = {"fresh": r["write_s"], "tidied": r.get("tidy_s")}.get(state)
            ratio = f"{seconds / plain[r['columns']]:.2f}" if state == "fresh" and r["columns"] in plain else ""
            values = " ".join(f"{r[state][n]:>12}" for n in names)
            print(f"{r['layout']:8} {r['columns']:4} {state:9} {seconds or '':>8} {ratio:>6} {values}")
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
