"""The layout of USE against plain Delta, ZORDER and liquid clustering: the same rows and file sizes, in one run.

``make bench-layout`` runs it with 5,000,000 rows and 16 MB files. Bytes are Spark's input metrics, files are those that
a query opens, times are whole statements; ratios are what to compare, since they are from one machine and one run.
Every way to write runs once before any is measured. ``limit`` is the physical limit of a layout in one pass: the same
rows shuffled by ranges of the indexed columns, sorted, and written as plainly as Delta can. What it writes goes to
``build/bench``, which is emptied first.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_session import start_session
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import sql_ext

HOME = Path.cwd() / "build" / "bench"
COLUMNS = {2: ("x", "y"), 3: ("x", "y", "ts")}
SAMPLES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5)
BOXES = (0.001, 0.01, 0.1)
BOXES_EACH = 5
APPENDS, APPEND_ROWS = 20, 20_000
WARM_UP_ROWS = 1_000_000


@dataclass(frozen=True)
class Contender:
    """A way to lay a table out.

    Attributes:
        name: for the report.
        write: makes the table of some rows, laid out by the given columns.
        append: adds rows to it.
        tidy: the maintenance that its owner would run after appends; None for a layout that is only written.
    """

    name: str
    write: Callable[[DataFrame, str, tuple[str, ...]], None]
    append: Callable[[DataFrame, str], None]
    tidy: Callable[[SparkSession, str, tuple[str, ...]], None] | None


@dataclass(frozen=True)
class Read:
    """The cost of a query: bytes and seconds by Spark's metrics, and the files that it opened."""

    bytes: float
    files: float
    seconds: float


def main() -> None:
    """Runs all contenders in 2 and 3 columns and prints a table and, as the last line, JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--file-bytes", type=int, default=16 * 1024 * 1024)
    parser.add_argument("--dimensions", type=int, nargs="*", default=[2, 3])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--appends", type=int, default=APPENDS)
    parser.add_argument("--rounds", type=int, default=3, help="writes of each way; the median counts")
    parser.add_argument("--warm-up", type=int, default=WARM_UP_ROWS, help="rows of the writes that are not measured")
    arguments = parser.parse_args()
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    spark = start(arguments.file_bytes)
    try:
        source = stage(spark, arguments.rows, arguments.file_bytes)
        chosen = [c for c in contenders(arguments.file_bytes) if not arguments.only or c.name in arguments.only]
        results = []
        for dimensions in arguments.dimensions:
            boxes = boxes_of(source, COLUMNS[dimensions])
            for contender in chosen:
                # The first writes and queries of a session compile what all others use.
                warm_up(spark, source.limit(min(arguments.warm_up, arguments.rows)), contender, dimensions, boxes)
            written: dict[str, list[tuple[float, float]]] = {contender.name: [] for contender in chosen}
            for _ in range(arguments.rounds):
                for contender in chosen:
                    written[contender.name].append(timed_write(spark, source, contender, dimensions))
            for contender in chosen:
                result = run(spark, source, contender, dimensions, boxes, arguments.appends)
                seconds, cpu = (statistics.median(values) for values in zip(*written[contender.name], strict=True))
                results.append(result | {"write_s": round(seconds, 2), "write_cpu_s": round(cpu, 2)})
        report(results)
    finally:
        spark.stop()


def start(file_bytes: int) -> SparkSession:
    """A session that writes files of one size and counts what it reads."""
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "8",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.databricks.delta.optimize.maxFileSize": str(file_bytes),
        "spark.databricks.delta.optimize.minFileSize": str(file_bytes),
        # Spark's input metrics leave vectored reads out.
        "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
    }
    return start_session("bench-layout", HOME, "4g", settings)


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
    """The five ways; each writes the same frame."""

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

    def limit(rows: DataFrame, table: str, columns: tuple[str, ...]) -> None:
        session = rows.sparkSession
        files = max(1, round(source_bytes() / file_bytes))
        session.conf.set("spark.databricks.delta.optimizeWrite.enabled", "false")
        ranged = rows.repartitionByRange(files, *columns).sortWithinPartitions(*columns)
        plain(ranged, table, columns)
        session.conf.unset("spark.databricks.delta.optimizeWrite.enabled")

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
        Contender("limit", limit, append, None),
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


def source_bytes() -> int:
    """Bytes of the staged rows."""
    return sum(file.stat().st_size for file in (HOME / "source").glob("*.parquet"))


def warm_up(
    spark: SparkSession, source: DataFrame, contender: Contender, dimensions: int, boxes: dict[float, list[str]]
) -> None:
    """Writes and reads once without measuring."""
    table = "default.warm_up"
    contender.write(source, table, COLUMNS[dimensions])
    read(spark, spark.table(table).sample(0.01))
    read(spark, spark.table(table).where(boxes[BOXES[0]][0]))
    spark.sql(f"DROP TABLE {table}")


def timed_write(spark: SparkSession, source: DataFrame, contender: Contender, dimensions: int) -> tuple[float, float]:
    """Writes a contender's table anew; the seconds and CPU seconds that it took."""
    table = f"default.{contender.name}_{dimensions}"
    spark.sql(f"DROP TABLE IF EXISTS {table}")
    begun, cpu = time.monotonic(), cpu_seconds(spark)
    contender.write(source, table, COLUMNS[dimensions])
    return time.monotonic() - begun, cpu_seconds(spark) - cpu


def cpu_seconds(spark: SparkSession) -> float:
    """CPU seconds of this process and of its JVM, which depend less on other work of the machine than times do."""
    process = spark.sparkContext._gateway.proc.pid
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + time.process_time()


def run(
    spark: SparkSession,
    source: DataFrame,
    contender: Contender,
    dimensions: int,
    boxes: dict[float, list[str]],
    appends: int,
) -> dict[str, object]:
    """Measures a written table, appends in small batches, measures, runs maintenance, measures again."""
    table = f"default.{contender.name}_{dimensions}"
    columns = COLUMNS[dimensions]
    result: dict[str, object] = {"layout": contender.name, "columns": dimensions}
    if contender.tidy is None:
        return result
    result["fresh"] = measured(spark, table, boxes)
    result["scans"] = scanned(spark, table)
    if appends:
        rows = source.count()
        for number in range(appends):
            batch = source.limit(APPEND_ROWS).withColumn("id", F.col("id") + rows + number * APPEND_ROWS)
            contender.append(batch.coalesce(1), table)
        result["appended"] = measured(spark, table, boxes)
        begun, cpu = time.monotonic(), cpu_seconds(spark)
        contender.tidy(spark, table, columns)
        result["tidy_s"] = round(time.monotonic() - begun, 2)
        result["tidy_cpu_s"] = round(cpu_seconds(spark) - cpu, 2)
        result["tidied"] = measured(spark, table, boxes)
    print(json.dumps(result), flush=True)
    return result


def measured(spark: SparkSession, table: str, boxes: dict[float, list[str]]) -> dict[str, object]:
    """Files and bytes of the table; per query the share of the bytes, the files opened, and the seconds."""
    files, size = spark.sql(f"DESCRIBE DETAIL {table}").select("numFiles", "sizeInBytes").collect()[0]
    data = spark.table(table)
    found: dict[str, object] = {"files": files, "bytes": size}
    queries = {f"sample {fraction}": [data.sample(fraction)] for fraction in SAMPLES}
    queries |= {f"box {share}": [data.where(box) for box in places] for share, places in boxes.items()}
    for name, wanted in queries.items():
        reads = [read(spark, query) for query in wanted]
        found[name] = round(statistics.mean(r.bytes for r in reads) / size, 4)
        found[f"{name} files"] = round(statistics.mean(r.files for r in reads), 1)
        found[f"{name} s"] = round(statistics.median(r.seconds for r in reads), 2)
    return found


def scanned(spark: SparkSession, table: str) -> dict[str, int]:
    """Bytes of scans without a filter: of all columns, as ``*``, and of each column alone."""
    data = spark.table(table)
    columns = {name: bytes_read(spark, data.select(name)) for name in data.columns}
    return {"*": bytes_read(spark, data), **columns}


def read(spark: SparkSession, data: DataFrame) -> Read:
    """Runs an aggregate over all columns, and returns its cost."""
    files = sum(scan.kept_files for scan in sql_ext.read_report(data).scans)
    begun = time.monotonic()
    size = bytes_read(spark, data)
    return Read(size, files, time.monotonic() - begun)


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
    # A stage that was skipped has no attempt.
    stages = {stage for job in jobs if job for stage in job.stageIds if tracker.getStageInfo(stage)}
    return sum(jvm.statusStore().lastStageAttempt(stage).inputBytes() for stage in stages)


def report(results: Iterable[dict[str, Any]]) -> None:
    """Prints the costs of the writes, then bytes, files and seconds of the reads, then all results as JSON."""
    rows = list(results)
    print(f"{'layout':8} {'cols':4} {'write s':>8} {'CPU s':>8} {'to plain':>9} {'to limit':>9} {'tidy s':>8}")
    for r in rows:
        cells = [f"{r['write_s']:>8} {r['write_cpu_s']:>8}"]
        for other in ("plain", "limit"):
            base = next((o["write_s"] for o in rows if (o["layout"], o["columns"]) == (other, r["columns"])), None)
            cells.append(f"{r['write_s'] / base:>9.2f}" if base else f"{'':>9}")
        print(f"{r['layout']:8} {r['columns']:4} {' '.join(cells)} {r.get('tidy_s', ''):>8}")
    names = [*[f"sample {f}" for f in SAMPLES], *[f"box {b}" for b in BOXES]]
    for title, suffix in (("shares of the bytes", ""), ("files opened", " files"), ("seconds", " s")):
        print(f"{title}\n{'layout':8} {'cols':4} {'state':9} {'files':>6} " + " ".join(f"{n:>12}" for n in names))
        for r in rows:
            for state in ("fresh", "appended", "tidied"):
                if state in r:
                    values = " ".join(f"{r[state][n + suffix]:>12}" for n in names)
                    print(f"{r['layout']:8} {r['columns']:4} {state:9} {r[state]['files']:>6} {values}")
    report_scans(rows)
    print(json.dumps(rows))


def report_scans(rows: list[dict[str, Any]]) -> None:
    """Prints the bytes of scans relative to those of liquid clustering, and adds them to the results."""
    base = {r["columns"]: r["scans"] for r in rows if r["layout"] == "liquid"}
    print(f"scans, relative to liquid clustering\n{'layout':8} {'cols':4} {'all columns':>12} {'worst column':>13}")
    for r in rows:
        if "scans" in r and r["columns"] in base:
            ratios = {name: size / base[r["columns"]][name] for name, size in r["scans"].items()}
            whole = ratios.pop("*")
            worst = max(ratios, key=ratios.__getitem__)
            r["scan"], r["worst column"] = round(whole, 3), [worst, round(ratios[worst], 3)]
            print(f"{r['layout']:8} {r['columns']:4} {whole:>12.3f} {ratios[worst]:>13.3f} {worst}")


if __name__ == "__main__":
    main()
