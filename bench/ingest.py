"""The cost of reads after many small appends: USE by CALL against OPTIMIZE, ZORDER and liquid clustering.

``make bench-ingest`` goes through the stories of ``bench/ingest_simulation.py`` at a size that runs on two cores: 200
appends, an optimization every ten, and a target size of files that gives the last table about 28 of them. It reports
bytes read and files opened, in proportion to the same rows indexed at once, and the cost of the optimizations: bytes
rewritten in proportion to the table, Spark jobs and CPU seconds. The result goes to ``build/bench/ingest.json`` and
``ingest.md``. ``--rows 40000 --appends 40 --stories zero`` takes some minutes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path

from engine import ROW_BYTES, size_of
from layout import HOME, bytes_read, start
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import sql_ext
from otree.pages import page_rows_of
from procedures.groups.judge import Judge
from procedures.layout import layout_writer
from procedures.selection import sorted_run_compaction

FILES = 28
SAMPLES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5)
BOXES = (0.001, 0.01, 0.1)
BOXES_EACH = 8
# As long in proportion to a file as a page of 5,000 rows is to one of 5,000,000 rows in 28 files.
PAGES_PER_FILE = 36
COLUMNS = ("ts", "x")


@dataclass(frozen=True)
class Story:
    """A history of appends.

    Attributes:
        name: for the report.
        base: share of the last rows that is there before the appends.
        time: the time of a row, as a share of the whole time; gets the row's place in the order of writing.
    """

    name: str
    base: float
    time: Callable[[Column, Column], Column]


STORIES = (
    Story("zero", 0.0, lambda _, random: random),
    Story("base", 0.5, lambda _, random: random),
    Story("time", 0.0, lambda place, random: place + random / 730),
    Story("late", 0.5, lambda place, random: F.when((place > 0.5) & (random < 0.1), random - 1).otherwise(random)),
)


@dataclass(frozen=True)
class Contender:
    """A way to keep a table fast.

    Attributes:
        name: for the report.
        create: clause and properties of the new table.
        optimize: what its owner runs; returns the bytes rewritten.
    """

    name: str
    create: str
    optimize: Callable[[SparkSession, str], int]


def contenders(file_bytes: int) -> list[Contender]:
    """The four ways."""

    def call(spark: SparkSession, table: str) -> int:
        rows = sql_ext.call(spark, "optimize", table=table).collect()
        return sum(row.output_bytes or 0 for row in rows if row.state == "committed")

    def statement(clause: str) -> Callable[[SparkSession, str], int]:
        def optimize(spark: SparkSession, table: str) -> int:
            found = spark.sql(f"OPTIMIZE {table} {clause}").select("metrics.filesAdded.totalSize").collect()
            return int(found[0][0] or 0)

        return optimize

    names = ", ".join(COLUMNS)
    properties = f"TBLPROPERTIES ('use.index.columns'='{','.join(COLUMNS)}','use.index.targetFileBytes'='{file_bytes}')"
    return [
        Contender("use", properties, call),
        Contender("optimize", "", statement("")),
        Contender("zorder", "", statement(f"ZORDER BY ({names})")),
        Contender("liquid", f"CLUSTER BY ({names})", statement("")),
    ]


def rows_of(spark: SparkSession, story: Story, rows: int, first: int, end: int) -> DataFrame:
    """The rows with numbers from first to end."""

    def uniform(name: str) -> Column:
        return F.pmod(F.xxhash64("id", F.lit(name)), F.lit(1_000_003)) / 1_000_003.0

    base = int(rows * story.base)
    place = F.greatest((F.col("id") - base).cast("double") / max(rows - base, 1), F.lit(0.0))
    moment = story.time(place, uniform("e"))
    return spark.range(first, end, 1, 1).select(
        "id",
        F.timestamp_micros((1.7e15 + moment * 6.3e13).cast("bigint")).alias("ts"),
        F.exp(3 * (uniform("a") + uniform("b") + uniform("c") - 1.5)).alias("x"),
        F.pmod(F.xxhash64("id"), F.lit(100)).cast("int").alias("kind"),
        F.sha2(F.col("id").cast("string"), 256).substr(1, 40).alias("payload"),
    )


def reads_of(data: DataFrame, each: int) -> dict[str, list[Callable[[DataFrame], DataFrame]]]:
    """The fixed set of reads over some rows, by kind."""
    steps = 1000
    values = {
        c: data.select(F.percentile(F.col(c).cast("double"), [i / steps for i in range(steps + 1)])).collect()[0][0]
        for c in COLUMNS
    }

    def between(column: str, start: float, side: float) -> Column:
        ends = [F.lit(values[column][min(steps, round(v * steps))]) for v in (start, start + side)]
        low, high = [F.timestamp_seconds(end) for end in ends] if column == "ts" else ends
        return F.col(column).between(low, high)

    def where(condition: Column) -> Callable[[DataFrame], DataFrame]:
        return lambda table: table.where(condition)

    def sample(fraction: float) -> Callable[[DataFrame], DataFrame]:
        return lambda table: table.sample(fraction)

    found: dict[str, list[Callable[[DataFrame], DataFrame]]] = {f"sample {f}": [sample(f)] for f in SAMPLES}
    for share in BOXES:
        side = share**0.5
        for pair in combinations(COLUMNS, 2):
            starts = [((0.37 * i + 0.11) % (1 - side), (0.61 * i + 0.23) % (1 - side)) for i in range(each)]
            found[f"box {share}"] = [where(between(pair[0], a, side) & between(pair[1], b, side)) for a, b in starts]
    found["slice 0.01"] = [where(between(COLUMNS[1], (0.37 * i + 0.11) % 0.99, 0.01)) for i in range(each)]
    found["tail 0.01"] = [where(between(COLUMNS[0], 0.99, 0.01))]
    return found


def cost_of(spark: SparkSession, data: DataFrame) -> tuple[int, int]:
    """Bytes that an aggregate over all columns reads, by Spark's input metrics, and the files that it opens."""
    return bytes_read(spark, data), _files_read(spark)


def _files_read(spark: SparkSession) -> int:
    """Files that the last query opened, by the metrics of its scans."""
    store = spark._jsparkSession.sharedState().statusStore()
    last = store.executionsList(store.executionsCount() - 1, 1).apply(0).executionId()
    values = store.executionMetrics(last)
    nodes = store.planGraph(last).allNodes()
    total = 0
    for i in range(nodes.size()):
        metrics = nodes.apply(i).metrics()
        for j in range(metrics.size()):
            if metrics.apply(j).name() == "number of files read":
                text = values.get(metrics.apply(j).accumulatorId())
                total += int(text.get().replace(",", "")) if text.isDefined() else 0
    return total


def costs(
    spark: SparkSession, table: str, reads: dict[str, list[Callable[[DataFrame], DataFrame]]]
) -> dict[str, tuple[float, float]]:
    """Mean bytes and files of each kind of read."""
    found = {}
    for kind, queries in reads.items():
        each = [cost_of(spark, query(spark.table(table))) for query in queries]
        found[kind] = statistics.mean(b for b, _ in each), statistics.mean(f for _, f in each)
    return found


def cpu_seconds(spark: SparkSession) -> float:
    """CPU time of the JVM and of this process."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    fields = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100 + time.process_time()


def jobs_started(spark: SparkSession) -> int:
    """Spark jobs of the session's application so far."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def run_story(
    spark: SparkSession, story: Story, contender: Contender, rows: int, appends: int, every: int, deletes: float
) -> tuple[str, dict[str, object]]:
    """Makes a table by the story; returns its name and the cost of the optimizations."""
    table = f"default.{contender.name}_{story.name}_{'deletes' if deletes else 'appends'}"
    schema = rows_of(spark, story, rows, 0, 1).schema.toDDL()
    spark.sql(f"CREATE TABLE {table} ({schema}) USING delta {contender.create}")
    base = int(rows * story.base)
    batch = (rows - base) // appends
    if base:
        rows_of(spark, story, rows, 0, base).write.format("delta").mode("append").saveAsTable(table)
        contender.optimize(spark, table)
    rewritten, jobs, cpu = 0, 0, 0.0
    for number in range(appends):
        first = base + number * batch
        rows_of(spark, story, rows, first, first + batch).write.format("delta").mode("append").saveAsTable(table)
        if (number + 1) % every and number + 1 < appends:
            continue
        if deletes:
            part = deletes * every / appends
            chosen = f"pmod(xxhash64(id, {number}), 10000) < {round(10000 * part / 2)}"
            spark.sql(f"DELETE FROM {table} WHERE {chosen}")
            spark.sql(f"UPDATE {table} SET kind = kind + 1 WHERE {chosen.replace(str(number), str(number + 1), 1)}")
        before = jobs_started(spark), cpu_seconds(spark)
        rewritten += contender.optimize(spark, table)
        jobs += jobs_started(spark) - before[0]
        cpu += cpu_seconds(spark) - before[1]
    size = size_of(spark, table)
    files = spark.sql(f"DESCRIBE DETAIL {table}").select("numFiles").collect()[0][0]
    return table, {
        "story": story.name,
        "deletes": deletes,
        "contender": contender.name,
        "files": files,
        "bytes": size,
        "rewritten": round(rewritten / size, 2),
        "jobs": jobs,
        "cpu_s": round(cpu, 1),
    }


def main() -> None:
    """Runs the stories and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=400_000, help="rows of the last table")
    parser.add_argument("--appends", type=int, default=200)
    parser.add_argument("--every", type=int, default=10, help="appends between optimizations")
    parser.add_argument("--stories", nargs="*", default=[story.name for story in STORIES])
    parser.add_argument("--only", nargs="*", default=[], help="contenders: use, optimize, zorder, liquid")
    parser.add_argument("--boxes", type=int, default=BOXES_EACH, help="boxes of each kind")
    parser.add_argument("--deletes", type=float, nargs="*", default=[0.0, 0.05], help="shares deleted or updated")
    arguments = parser.parse_args()
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    file_bytes = max(65_536, arguments.rows * ROW_BYTES // FILES)
    scale_pages(arguments.rows // FILES // PAGES_PER_FILE)
    spark = start(file_bytes)
    results: list[dict[str, object]] = []
    try:
        for story in STORIES:
            if story.name not in arguments.stories:
                continue
            for deletes in arguments.deletes:
                results += compared(spark, story, arguments, file_bytes, deletes)
                write_results(results)
    finally:
        spark.stop()


def scale_pages(page_rows: int) -> None:
    """Makes pages as small as the files, for the writer and for the strategy's estimates."""
    layout_writer.page_rows_of = partial(page_rows_of, page_rows=max(page_rows, 1))
    sorted_run_compaction.Judge = partial(Judge, page_rows=max(page_rows, 1))


def compared(
    spark: SparkSession, story: Story, arguments: argparse.Namespace, file_bytes: int, deletes: float
) -> list[dict[str, object]]:
    """One story by all contenders, each with its reads in proportion to a fresh index of the same rows."""
    found: list[dict[str, object]] = []
    reads: dict[str, list[Callable[[DataFrame], DataFrame]]] = {}
    fresh: dict[str, tuple[float, float]] = {}
    for contender in contenders(file_bytes):
        if arguments.only and contender.name not in arguments.only:
            continue
        table, result = run_story(spark, story, contender, arguments.rows, arguments.appends, arguments.every, deletes)
        if not reads:
            new = f"default.fresh_{story.name}_{'deletes' if deletes else 'appends'}"
            properties = contenders(file_bytes)[0].create
            spark.sql(f"CREATE TABLE {new} ({spark.table(table).schema.toDDL()}) USING delta {properties}")
            spark.table(table).write.format("delta").mode("append").saveAsTable(new)
            sql_ext.call(spark, "optimize", table=new).collect()
            reads = reads_of(spark.table(new), arguments.boxes)
            fresh = costs(spark, new, reads)
        today = costs(spark, table, reads)
        result |= {kind: [round(today[kind][i] / max(fresh[kind][i], 1), 2) for i in (0, 1)] for kind in fresh}
        print(json.dumps(result), flush=True)
        found.append(result)
    return found


def write_results(results: list[dict[str, object]]) -> None:
    """Writes JSON and a table; bytes and files of a read are separated by a slash."""
    (HOME / "ingest.json").write_text(json.dumps(results, indent=1))
    names = list(results[0])
    cells = [[" / ".join(map(str, v)) if isinstance(v, list) else str(v) for v in r.values()] for r in results]
    lines = [names, ["---"] * len(names), *cells]
    (HOME / "ingest.md").write_text("\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n")


if __name__ == "__main__":
    main()
