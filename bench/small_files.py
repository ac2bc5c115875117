"""Many small files: SizeTieredClustering against Delta's OPTIMIZE at the same moments of the same history.

``make bench-small-files`` makes 100,000 small files in 200 partitions and merges them once, and feeds 2,000 files to 10
partitions in 20 rounds with a run after each. Every contender has a process of its own with a driver heap of 2 GB. The
files are copies of one Parquet file per partition, and their commits are written to the log by hand, so that the table
is there in seconds. The rows of each partition are counted and added up afterwards.

"Amplification" is bytes written by rewrites over bytes appended, and "most" the largest number of rewrites of the rows
of a file, with the number of tiers above the first files. Old generation is its largest use, in MB. Seconds
are those of one machine; CPU seconds leave out what else it does.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

from bench_session import start_session
from ingest import cpu_seconds, jobs_started
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import sql_ext
from catalog.settings.strategy_options import ISOLATE_BYTES, MIN_FILES, TIER_RATIO
from catalog.table.managed_table import ManagedTable
from procedures.loop.interfaces import PlanRequest
from procedures.loop.optimize_parameters import DEFAULT_ARGUMENTS
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.loop.planner import TablePlanner
from procedures.selection.size_tiers import TierPolicy

HOME = Path.cwd() / "build" / "bench" / "small-files"
CLUSTERING = "SizeTieredClustering"
ROWS = 100
MB = 1024 * 1024


@dataclass(frozen=True)
class Story:
    """A history of appends, each of one commit with as many files for every partition.

    Attributes:
        name: for the report.
        files: of the whole history.
        partitions: of the table.
        rounds: appends; a run follows each.
    """

    name: str
    files: int
    partitions: int
    rounds: int


@dataclass(frozen=True)
class Template:
    """The file of a partition that is copied."""

    path: Path
    size: int
    stats: str


def main() -> None:
    """Runs each story with each contender, and prints a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000, help="files that are merged at once; 0 leaves them out")
    parser.add_argument("--partitions", type=int, default=200)
    parser.add_argument("--fed-files", type=int, default=2_000, help="files that are fed; 0 leaves them out")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument("--heap", default="2g")
    parser.add_argument("--only", nargs="*", default=[], help="contenders: use, optimize")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    stories = [
        Story("once", arguments.files, arguments.partitions, 1),
        Story("fed", arguments.fed_files, max(arguments.partitions // 20, 1), arguments.rounds),
    ]
    if arguments.one:
        name, contender = arguments.one.split(",")
        run(next(story for story in stories if story.name == name), contender, arguments)
        return
    results = []
    for story in stories:
        for contender in arguments.only or ("use", "optimize"):
            if story.files:
                command = [sys.executable, *sys.argv, "--one", f"{story.name},{contender}"]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                results.append(json.loads(done.stdout.splitlines()[-1]))
                print(json.dumps(results[-1]), flush=True)
    names = list(dict.fromkeys(name for result in results for name in result))
    for line in (names, ["---"] * len(names), *([str(result.get(name, "")) for name in names] for result in results)):
        print(f"| {' | '.join(line)} |")


def run(story: Story, contender: str, arguments: argparse.Namespace) -> None:
    """Goes through a story in this process; the last line that it prints is the result as JSON."""
    home = HOME / f"{story.name}-{contender}"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    spark = start(home, arguments.heap)
    try:
        path = home / "table"
        templates = templates_of(spark, home / "templates", story.partitions)
        spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, text STRING, p INT) USING delta PARTITIONED BY (p)")
        print(
            json.dumps(
                asdict(story) | {"contender": contender} | measured(spark, story, contender, path, templates, arguments)
            )
        )
    finally:
        spark.stop()
        shutil.rmtree(home, ignore_errors=True)


def start(home: Path, heap: str) -> SparkSession:
    """A session without the service, whose files are neither encoded nor compressed."""
    settings = {
        "spark.qbeast.use.service.enabled": "false",
        # Copies have equal rows: encoded or compressed, a merged file would be as small as one of them.
        "spark.sql.parquet.compression.codec": "uncompressed",
        "spark.hadoop.parquet.enable.dictionary": "false",
    }
    return start_session("bench-small-files", home, heap, settings)


def templates_of(spark: SparkSession, path: Path, partitions: int) -> list[Template]:
    """Writes one file of random text for each partition."""
    rows = spark.range(0, partitions * ROWS, 1, 1).select(
        "id",
        F.substring(F.sha2(F.col("id").cast("string"), 256), 1, 60).alias("text"),
        (F.col("id") / ROWS).cast("int").alias("p"),
    )
    rows.write.format("delta").partitionBy("p").save(str(path))
    found: dict[int, Template] = {}
    with (path / "_delta_log" / f"{0:020d}.json").open(encoding="utf-8") as log:
        for add in (json.loads(line).get("add") for line in log):
            if add is not None:
                found[int(add["partitionValues"]["p"])] = Template(path / add["path"], add["size"], add["stats"])
    return [found[number] for number in range(partitions)]


def append(path: Path, version: int, templates: list[Template], files_each: int) -> int:
    """Adds copies of the templates in one commit; returns their bytes."""
    total = 0
    with (path / "_delta_log" / f"{version:020d}.json").open("x", encoding="utf-8") as log:
        now = int(time.time() * 1000)
        log.write(
            json.dumps({"commitInfo": {"timestamp": now, "operation": "WRITE", "operationParameters": {}}}) + "\n"
        )
        for partition, template in enumerate(templates):
            folder = path / f"p={partition}"
            folder.mkdir(exist_ok=True)
            for name in _names(files_each):
                shutil.copyfile(template.path, folder / name)
                add = {
                    "path": f"p={partition}/{name}",
                    "partitionValues": {"p": str(partition)},
                    "size": template.size,
                    "modificationTime": now,
                    "dataChange": True,
                    "stats": template.stats,
                }
                log.write(json.dumps({"add": add}) + "\n")
                total += template.size
    return total


def _names(count: int) -> Iterator[str]:
    for number in range(count):
        yield f"part-{number:05d}-{uuid4()}.c000.snappy.parquet"


def measured(
    spark: SparkSession,
    story: Story,
    contender: str,
    path: Path,
    templates: list[Template],
    arguments: argparse.Namespace,
) -> dict[str, object]:
    """The cost of the runs of one contender."""
    table = f"delta.`{path}`"
    appended = written = groups = jobs = 0
    seconds = planning = cpu = 0.0
    for _ in range(story.rounds):
        version = int(spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").collect()[0]["version"]) + 1
        appended += append(path, version, templates, story.files // story.partitions // story.rounds)
        log = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(path))
        log.checkpoint()
        started = time.perf_counter(), cpu_seconds(spark), jobs_started(spark)
        if contender == "use":
            begun = time.perf_counter()
            TablePlanner(ManagedTable.find(spark, table), settings()).plan(PlanRequest())
            planning += time.perf_counter() - begun
            report = sql_ext.call(
                spark, "optimize", table=table, strategy=CLUSTERING, parallelism=arguments.parallelism
            ).collect()
            done = [row for row in report if row.state == "committed"]
            groups += len(done)
            written += sum(row.output_bytes for row in done)
        else:
            metrics = spark.sql(f"OPTIMIZE {table}").select("metrics.*").collect()[0]
            groups += 1 if metrics.numFilesAdded else 0
            written += int(metrics.filesAdded.totalSize or 0)
        seconds += time.perf_counter() - started[0]
        cpu += cpu_seconds(spark) - started[1]
        jobs += jobs_started(spark) - started[2]
    check(spark, table, story)
    left = spark.sql(f"DESCRIBE DETAIL {table}").collect()[0]
    result = {
        "mb": round(appended / MB, 1),
        "commits": groups,
        "written_mb": round(written / MB, 1),
        "amplification": round(written / appended, 2),
        "files_left": left.numFiles,
        "jobs": jobs,
        "cpu_s": round(cpu, 1),
        "seconds": round(seconds, 1),
        "old_generation_mb": round(old_generation(spark) / MB),
        "python_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    if contender == "use":
        isolate = ISOLATE_BYTES.value({})
        policy = TierPolicy(MIN_FILES.value({}), None, TIER_RATIO.value({}), isolate)
        tiers = policy.tier(isolate - 1) - policy.tier(min(t.size for t in templates)) + 1
        most = ManagedTable.find(spark, table).snapshot().file_rows.agg(F.max("rewrites")).collect()[0][0]
        result |= {"planning_s": round(planning, 1), "most": f"{most:g} of {tiers}"}
    return result


def settings() -> OptimizeSettings:
    """The settings of a call of the strategy with its defaults."""
    defaults = DEFAULT_ARGUMENTS
    return OptimizeSettings.of(defaults | {"strategy": CLUSTERING})


def check(spark: SparkSession, table: str, story: Story) -> None:
    """Counts and adds up the rows of each partition."""
    copies = story.files // story.partitions // story.rounds * story.rounds
    rows = spark.table(table).groupBy("p").agg(F.count(F.lit(1)).alias("rows"), F.sum("id").alias("sum")).collect()
    found = {row.p: (row.rows, row["sum"]) for row in rows}
    assert found == {
        p: (copies * ROWS, copies * sum(range(p * ROWS, (p + 1) * ROWS))) for p in range(story.partitions)
    }, "rows were lost or doubled"


def old_generation(spark: SparkSession) -> int:
    """Largest number of bytes that long-lived objects of the driver have taken, garbage among them."""
    pools = spark._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    return max(pool.getPeakUsage().getUsed() for pool in pools if "Old Gen" in pool.getName())


if __name__ == "__main__":
    main()
