"""A table under everything at once for an hour: rows are compared with other engines, and resources must stay flat.

    make soak MINUTES=60

Two writers send INSERT, UPDATE, DELETE and MERGE. A third session adds, renames and drops columns. The service, CALLs
of single strategies, vacuum, purge, consolidation of the log, protections, overviews and time travel run beside them.

Each version must have the rows that its log says. Delta without USE, delta-rs and DuckDB read the versions, too. Ends
with 0 if every answer was right, every error was a conflict, and no resource grows; ``flatness.py`` has the rule. A run
of 3 minutes tries it out.
"""

import os
import random
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "support")]
os.environ["TZ"] = "UTC"
time.tzset()

from pyspark.sql import SparkSession  # noqa: E402
from sessions import start_session  # noqa: E402
from tables import DeltaTable, create  # noqa: E402

import sql_ext  # noqa: E402
from procedures.service.service import Service  # noqa: E402
from soak.arguments import arguments  # noqa: E402
from soak.board import Board, Soak  # noqa: E402
from soak.engines import ENGINES, Engines  # noqa: E402
from soak.history import History  # noqa: E402
from soak.maintenance import Maintenance  # noqa: E402
from soak.readers import SESSION, Overviews, Reader  # noqa: E402
from soak.resources import JUDGED_MINUTES, Resources, table_of  # noqa: E402
from soak.writers import ColumnChanger, Writer  # noqa: E402

RETENTION_SECONDS = 90
SAMPLE_SECONDS, SAMPLES = 30, 24
SERVICE = {
    "spark.qbeast.use.service.enabled": "true",
    "spark.qbeast.use.optimization-interval": "5s",
    "spark.qbeast.use.listener-interval": "1s",
}
PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "use.optimization.autoOptimize.enabled": "true",
    "use.optimization.quietPeriod": "2 seconds",
    "use.insights.consumption.enabled": "true",
    "use.insights.consumption.rows": "200",
}


def session(folder: Path) -> SparkSession:
    """A session whose heap is resident from the start, and that forgets the jobs that have ended early."""
    temporary = folder / "tmp"
    temporary.mkdir()
    tempfile.tempdir = str(temporary)
    settings = {
        "spark.driver.memory": "1536m",
        "spark.driver.defaultJavaOptions": f"-Xms1536m -XX:+AlwaysPreTouch -Djava.io.tmpdir={temporary}",
        **dict.fromkeys(("spark.ui.retainedJobs", "spark.ui.retainedStages", "spark.sql.ui.retainedExecutions"), "20"),
        "spark.ui.retainedTasks": "200",
        "spark.ui.retainedDeadExecutors": "1",
        "spark.ui.showConsoleProgress": "false",
        # The machine may be busy.
        "spark.executor.heartbeatInterval": "60s",
        "spark.network.timeout": "600s",
    }
    return start_session(folder, short_lived=False, settings=settings)


def verdict(soak: Soak, table: DeltaTable, reader: Reader) -> None:
    """What must hold when all threads have ended."""
    for engine in (SESSION, *ENGINES):
        if problem := reader.all_rows(soak.history.newest(), engine):
            soak.board.fail(f"at the end: {problem}")
    failed = [row for row in table.optimize() if row.state == "failed"]
    if failed:
        soak.board.fail(f"the last optimize: {failed}")
    if problem := reader.all_rows(soak.history.newest(), SESSION):
        soak.board.fail(f"the last optimize changed rows: {problem}")
    errors = [row for row in soak.call("check", deep=True) if row.severity == "error"]
    if errors:
        soak.board.fail(f"check: {errors[:3]}")
    sql_ext.call(soak.spark, "vacuum", table=table.name, retention_hours=0.0, force=True)
    live = {row.path.rsplit("/")[-1] for row in soak.spark.sql(f"SELECT path FROM {table.name}.index_files").collect()}
    there = {file.rsplit("/")[-1] for file in table.on_disk()}
    if live != there:
        soak.board.fail(f"after a vacuum, files are missing: {live - there}; were left: {there - live}")


def run(spark: SparkSession, folder: Path, minutes: float, seed: int) -> tuple[Board, Resources]:
    """Runs everything for some minutes."""
    vectors = random.Random(seed).choice(["true", "false"])
    print(f"deletion vectors {vectors}", flush=True)
    path = folder / "t"
    properties = {**PROPERTIES, "delta.enableDeletionVectors": vectors}
    columns = "id BIGINT, x INT, y INT"
    table = create(spark, f"delta.`{path}`", columns, index="x,y", cube_size=300, properties=properties)
    history = History(path, RETENTION_SECONDS)
    soak = Soak(spark.newSession(), table.name, history, Engines(path, folder / "engines"), Board(), RETENTION_SECONDS)
    resources = Resources(spark, path, (folder / "tmp", folder / "local"))
    reader = Reader(soak, seed)
    maintenance = Maintenance(soak, reader, seed + 5)
    steps = {
        "writer 1": (Writer(soak, 1, seed + 1).step, 0.5),
        "writer 2": (Writer(soak, 2, seed + 2).step, 0.5),
        "columns": (ColumnChanger(soak).step, 7),
        "reader 1": (Reader(soak, seed + 3).step, 0.5),
        "reader 2": (Reader(soak, seed + 4).step, 0.5),
        "maintenance": (maintenance.step, 4),
        "overviews": (Overviews(soak).step, 3),
        "follower": (history.follow, 1),
    }
    threads = [soak.thread(name, step, pause) for name, (step, pause) in steps.items()]
    for key, value in SERVICE.items():
        spark.conf.set(key, value)
    service = Service(spark, [table.name])
    service.start()
    for thread in threads:
        thread.start()
    try:
        watch(soak, resources, minutes)
    finally:
        # An error must not leave the threads running.
        soak.ended.set()
    for thread in threads:
        thread.join()
    service.stop()
    spark.conf.set("spark.qbeast.use.service.enabled", "false")
    maintenance.unprotect()
    verdict(soak, table, reader)
    soak.engines.stop()
    return soak.board, resources


def watch(soak: Soak, resources: Resources, minutes: float) -> None:
    """Takes samples until the time is over."""
    begun, pause = time.monotonic(), min(SAMPLE_SECONDS, minutes * 60 / SAMPLES)
    count = max(SAMPLES, round(minutes * 60 / pause))
    for number in range(1, count + 1):
        time.sleep(max(0.0, begun + number * pause - time.monotonic()))
        resources.sample()
        newest = soak.history.newest()
        heap = resources.samples["JVM heap without pages, MiB"][-1]
        if number % max(1, round(60 / pause)) == 0:
            passed = (time.monotonic() - begun) / 60
            print(
                f"{passed:5.1f} min  version {newest.number:,}, {newest.digest[0]:,} rows, heap {heap:.0f} MiB, "
                f"failures {len(soak.board.failures)}",
                flush=True,
            )


def summary(board: Board, resources: Resources, minutes: float) -> bool:
    """Prints one screen; returns whether all is well."""
    is_judged = minutes >= JUDGED_MINUTES
    trends = resources.trends()
    print("\n" + "\n".join(table_of(trends, minutes / 60 / 3, lambda _: is_judged)))
    for first in ("statements: ", "conflicts: ", "reads: ", "maintenance: ", "overviews: "):
        print(f"{first}{board.text(first)}")
    growing = [name for name, one in trends.items() if one.grows] if is_judged else []
    if not is_judged:
        print(f"resources are judged in runs of {JUDGED_MINUTES} minutes or more")
    if growing:
        print("most files: " + ", ".join(f"{name} {count}" for name, count in resources.folders.most_common(12)))
    print(f"{len(board.failures)} failures" + (f"; these grow: {', '.join(growing)}" if growing else ""))
    return not board.failures and not growing


def main() -> int:
    wanted = arguments(__doc__, minutes=60)
    with tempfile.TemporaryDirectory(prefix="use-soak-") as folder:
        spark = session(Path(folder))
        board, resources = run(spark, Path(folder), wanted.minutes, wanted.seed)
        spark.stop()
    is_well = summary(board, resources, wanted.minutes)
    print("every answer was right, and no resource grows" if is_well else "FAILED")
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
