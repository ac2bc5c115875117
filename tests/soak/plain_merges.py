"""A writer of plain Delta merges into the newest day every second, beside the automatic service in another process.

    make soak-merges MINUTES=10
    make soak-merges ARGS="--layout partitioned"
    make soak-merges ARGS="--quiet-period 0"  # what happens without it

The writer has no jar, extension or setting of USE. The table has unindexed files in all of its 30 days, which become
many small groups. Ends with 0 when no statement failed, the other days are indexed, and the rows are those of a replay.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]
os.environ["TZ"] = "UTC"
time.tzset()

from plain_session import start_plain_session  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from sessions import start_session  # noqa: E402
from tables import DeltaTable, checksum, create  # noqa: E402

from procedures.process.application import application  # noqa: E402
from procedures.service.service import Service  # noqa: E402

COLUMNS = "id BIGINT, day DATE, customer INT, v INT"
DAYS, NEWEST = 30, "2024-01-30"
ROWS_PER_DAY, FILES_PER_DAY = 2_000, 4
UPDATES, INSERTS = 10, 5
FIRST_NEW_ID = 1_000_000_000
REPORT_SECONDS = 30
START_SECONDS = 120
SERVICE = {
    "spark.qbeast.use.service.enabled": "true",
    "spark.qbeast.use.optimization-interval": "5s",
    "spark.qbeast.use.listener-interval": "1s",
}
_DAY = "date_add(DATE'2024-01-01', CAST(id % 30 AS INT))"
_CUSTOMER = "CAST(id * 7919 % 1000 AS INT)"


def keys(number: int) -> list[int]:
    """The ids that a statement merges: some rows of the newest day, and some new ones."""
    old = [(number * 37 + n * 101) % ROWS_PER_DAY * DAYS + DAYS - 1 for n in range(UPDATES)]
    return [*old, *(FIRST_NEW_ID + number * INSERTS + n for n in range(INSERTS))]


# ------------------------------------------------------------------------------------------------------- the writer


def write(path: str, folder: Path, minutes: float) -> None:
    """Merges every second; prints a line of JSON for each statement."""
    spark = start_plain_session(folder)
    begun, number = time.monotonic(), 0
    while time.monotonic() - begun < minutes * 60:
        started = time.monotonic()
        values = ", ".join(f"({key}L)" for key in keys(number))
        error = None
        try:
            spark.sql(
                f"MERGE INTO delta.`{path}` t "
                f"USING (SELECT id, {_CUSTOMER} AS customer FROM VALUES {values} AS s(id)) s "
                f"ON t.day = DATE'{NEWEST}' AND t.id = s.id WHEN MATCHED THEN UPDATE SET v = t.v + 1 "
                f"WHEN NOT MATCHED THEN INSERT (id, day, customer, v) VALUES (s.id, DATE'{NEWEST}', s.customer, 0)"
            )
        except Exception as failure:  # noqa: BLE001 - it is what is looked for
            error = str(failure)[:600]
        seconds = time.monotonic() - started
        print(json.dumps({"number": number, "seconds": seconds, "error": error}), flush=True)
        number += 1
        time.sleep(max(0.0, 1 - seconds))
    spark.stop()


class Writer:
    """The process of the writer."""

    def __init__(self, path: Path, folder: Path, minutes: float) -> None:
        self._log = folder / "statements.json"
        arguments = [sys.executable, __file__, "--writer", str(path), "--minutes", str(minutes)]
        with self._log.open("wb") as out, (folder / "writer.log").open("wb") as errors:
            self.process = subprocess.Popen([*arguments, "--folder", str(folder)], stdout=out, stderr=errors)

    @property
    def statements(self) -> list[dict]:
        lines = self._log.read_text(encoding="utf-8").split("\n")
        return [json.loads(line) for line in lines[:-1] if line.startswith("{")]

    def wait_for_first(self) -> None:
        end = time.monotonic() + START_SECONDS
        while not self.statements:
            assert self.process.poll() is None, "the writer ended"
            assert time.monotonic() < end, "the writer has not started"
            time.sleep(0.2)


# --------------------------------------------------------------------------------------------------------- the table


def make_table(spark: SparkSession, folder: Path, wanted: argparse.Namespace) -> DeltaTable:
    """Each day has some unindexed files."""
    is_flat = wanted.layout == "flat"
    properties = {
        "use.optimization.quietPeriod": wanted.quiet_period,
        "use.optimization.autoOptimize.enabled": "true",
        # Each group is a commit, and each commit might fail a statement.
        "use.optimization.autoOptimize.optimizeUnindexedFiles.batchBytes": "20000",
        "delta.enableDeletionVectors": str(wanted.deletion_vectors).lower(),
    }
    table = create(
        spark,
        f"delta.`{folder / 't'}`",
        COLUMNS,
        index="day,customer" if is_flat else "customer,id",
        properties=properties,
        tail="" if is_flat else "PARTITIONED BY (day)",
    )
    for number in range(FILES_PER_DAY):
        first, end = (ROWS_PER_DAY * DAYS * n // FILES_PER_DAY for n in (number, number + 1))
        rows = spark.sql(f"SELECT id, {_DAY} AS day, {_CUSTOMER} AS customer, 0 AS v FROM range({first}, {end})")
        rows.repartitionByRange(DAYS, "day").write.format("delta").mode("append").save(str(folder / "t"))
    return table


def replayed(spark: SparkSession, statements: list[dict]) -> tuple:
    """The checksum of the rows that the table must have."""
    times = Counter(key for one in statements if one["error"] is None for key in keys(one["number"]))
    added = [(key, count - (key >= FIRST_NEW_ID)) for key, count in times.items()]
    changes = spark.createDataFrame(added, "id BIGINT, times INT").createOrReplaceTempView("changes")
    assert changes is None
    return checksum(
        spark.sql(
            f"SELECT id, {_DAY} AS day, {_CUSTOMER} AS customer, CAST(coalesce(times, 0) AS INT) AS v "
            f"FROM range({ROWS_PER_DAY * DAYS}) LEFT JOIN changes USING (id) UNION ALL "
            f"SELECT id, DATE'{NEWEST}', {_CUSTOMER}, times FROM changes WHERE id >= {FIRST_NEW_ID}"
        )
    )


def _last_day(add: dict) -> str:
    return add["partitionValues"].get("day") or json.loads(add["stats"])["maxValues"]["day"]


def files_of_other_days(table: DeltaTable) -> tuple[int, int, int]:
    """Files without rows of the newest day, their bytes, and the bytes of those that are indexed."""
    adds = [add for add in table.replayed()[0].values() if _last_day(add) < NEWEST]
    indexed = [add["size"] for add in adds if (add.get("tags") or {}).get("revision", "0") != "0"]
    return len(adds), sum(add["size"] for add in adds), sum(indexed)


def rewrites(table: DeltaTable) -> Iterator[tuple[float, int]]:
    """For each rewrite, the seconds since the commit before, and how many files of the newest day it replaced."""
    known: dict[str, dict] = {}
    for version in range(table.version + 1):
        removed = table.removed(version)
        if table.commit_info(version)["operation"] == "USE OPTIMIZE":
            times = [(table.path / "_delta_log" / f"{v:020d}.json").stat().st_mtime for v in (version - 1, version)]
            yield times[1] - times[0], sum(_last_day(known[path]) >= NEWEST for path in removed)
        known |= {add["path"]: add for add in table.added(version)}


def pauses(table: DeltaTable) -> list[float]:
    """Seconds between the end of a statement and the start of the next one, as their commits say; sorted."""
    infos = [
        info for version in range(table.version + 1) if "MERGE" in (info := table.commit_info(version))["operation"]
    ]
    ends = [info["timestamp"] for info in infos]
    starts = [info["timestamp"] - int(info["operationMetrics"]["executionTimeMs"]) for info in infos]
    return sorted((start - end) / 1000 for end, start in zip(ends, starts[1:], strict=False))


# -------------------------------------------------------------------------------------------------------------- main


def soak(spark: SparkSession, folder: Path, wanted: argparse.Namespace) -> list[str]:
    """Runs writer and service; prints what happened, and returns what is wrong."""
    table = make_table(spark, folder, wanted)
    writer = Writer(table.path, folder, wanted.minutes)
    writer.wait_for_first()
    for key, value in SERVICE.items():
        spark.conf.set(key, value)
    service = Service(spark, [table.name])
    service.start()
    begun = reported = time.monotonic()
    runs: dict[int, str] = {}
    while writer.process.poll() is None:
        time.sleep(0.5)
        for row in application().automations.all():
            if row.last_run is not None:
                runs[row.last_run] = row.note
        if time.monotonic() - reported >= REPORT_SECONDS:
            reported = time.monotonic()
            done = writer.statements
            print(f"{reported - begun:5.0f} s  statements {len(done)}, runs {len(runs)}", flush=True)
    service.stop()
    spark.conf.set("spark.qbeast.use.service.enabled", "false")

    statements = writer.statements
    failed = [one for one in statements if one["error"] is not None]
    causes = Counter(" ".join(re.findall(r"\[DELTA_[A-Z_.]+\]|concurrent [A-Z ]+", one["error"])) for one in failed)
    seconds = sorted(one["seconds"] for one in statements)
    files, size, indexed = files_of_other_days(table)
    replaced = list(rewrites(table))
    left = sum("CHANGED_RECENTLY" in note for note in runs.values())
    print(f"statements: {len(statements)}, median {seconds[len(seconds) // 2]:.2f} s; failed: {len(failed)}")
    for cause, count in causes.items():
        print(f"  {count} × {cause}")
    print(f"other days: {files} files with {size} bytes, {indexed / size:.1%} of the bytes indexed")
    print(f"rewrites: {len(replaced)}; files of the newest day that they replaced: {sum(n for _, n in replaced)}")
    delays = sorted(delay for delay, _ in replaced)
    print(f"seconds between a statement and the rewrite after it: {', '.join(f'{delay:.2f}' for delay in delays)}")
    between = pauses(table)
    print(f"pauses of the writer: {', '.join(f'{between[len(between) * n // 8]:.2f}' for n in range(8))}")
    print(f"runs of the service: {len(runs)}; runs that left files because of recent statements: {left}")
    print(f"last note: {runs[max(runs)] if runs else ''}", flush=True)

    wrong = [f"statement {one['number']}: {one['error']}" for one in failed]
    if writer.process.returncode:
        wrong.append("the writer failed: " + (folder / "writer.log").read_text(encoding="utf-8")[-2000:])
    expected = replayed(spark, statements)
    if table.checksum() != expected:
        wrong.append(f"the rows differ from the replay: {table.checksum()} in place of {expected}")
    if indexed < 0.99 * size:
        wrong.append(f"only {indexed / size:.1%} of the other days are indexed")
    table.optimize()
    if table.unindexed or table.checksum() != expected:
        wrong.append("a call without a quiet period does not index everything")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--layout", choices=("flat", "partitioned"), default="flat")
    parser.add_argument("--deletion-vectors", action="store_true")
    parser.add_argument("--quiet-period", default="10 minutes")
    parser.add_argument("--writer", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.writer:
        write(wanted.writer, wanted.folder, wanted.minutes)
        return 0
    with tempfile.TemporaryDirectory(prefix="use-merges-") as folder:
        spark = start_session(Path(folder))
        wrong = soak(spark, Path(folder), wanted)
        spark.stop()
    for text in wrong:
        print(f"FAILURE {text}", flush=True)
    print("FAILED" if wrong else "no statement failed, and every row is as in the replay")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
