"""Writers, readers, samples, the optimizer and vacuum on one table at once; every answer is compared with an oracle.

    make soak MINUTES=10

Ends with 0 when every answer was right and every error was a lost race, else with 1.
"""

import argparse
import os
import random
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]
os.environ["TZ"] = "UTC"
time.tzset()

from ledger import COLUMNS, Ledger, Rows, Writer, differences, frame  # noqa: E402
from placement import check_placement  # noqa: E402
from pyspark.sql import DataFrame, SparkSession  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402
from sessions import start_session  # noqa: E402
from tables import DeltaTable, checksum, create  # noqa: E402

import sql_ext  # noqa: E402
from catalog.errors import ConcurrentChangeError, UseError  # noqa: E402
from catalog.jvm.java_errors import is_conflict  # noqa: E402
from otree.weight import WeightRange  # noqa: E402
from procedures.selection import strategies  # noqa: E402
from sql_ext import read_report  # noqa: E402

KINDS = ("append", "append", "append", "append", "delete", "delete", "merge")
REPORT_SECONDS = 30
# Below it a reader may lose a file that its version names, and a rewrite one that it is about to commit.
RETENTION_SECONDS = 90


class Board:
    """What happened so far: counts by name, and everything that must not happen."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self._lock = threading.Lock()

    def count(self, name: str, by: int = 1) -> None:
        with self._lock:
            self.counts[name] += by

    def fail(self, text: str) -> None:
        with self._lock:
            self.failures.append(text)
        print(f"FAILURE {text}", flush=True)

    def line(self, seconds: float) -> str:
        counts = ", ".join(f"{name} {count}" for name, count in sorted(self.counts.items()))
        return f"{seconds:5.0f} s  {counts}; failures {len(self.failures)}"


class Reader:
    """Asks the newest version, as it is when it asks, and compares with the oracle of that version."""

    def __init__(self, spark: SparkSession, ledger: Ledger, board: Board, chance: random.Random) -> None:
        self.spark, self.ledger, self.board, self.chance = spark, ledger, board, chance

    def step(self) -> None:
        version = self.ledger.newest()
        rows = self.ledger.rows_at(version)
        data = self.spark.read.format("delta").option("versionAsOf", version).load(str(self.ledger.path))
        kind = self.chance.choice(["count", "range", "sample", "sample of a range"])
        self.board.count(f"read {kind}")
        wrong = getattr(self, "_" + kind.replace(" ", "_"))(data, rows)
        if wrong:
            self.board.fail(f"{kind} at version {version}: {wrong}")

    def _count(self, data: DataFrame, rows: Rows) -> str | None:
        found = data.count()
        return None if found == len(rows) else f"{found} rows in place of {len(rows)}"

    def _box(self) -> tuple[float, float]:
        low = self.chance.random()
        return low, low + self.chance.choice([0.01, 0.1, 0.5])

    def _range(self, data: DataFrame, rows: Rows) -> str | None:
        low, high = self._box()
        wanted = {number: row for number, row in rows.items() if low <= row[0] < high}
        return self._compare(data.where((F.col("x") >= low) & (F.col("x") < high)), frame(self.spark, wanted))

    def _sample(self, data: DataFrame, rows: Rows) -> str | None:
        fraction = self.chance.choice([0.01, 0.1, 0.5, 0.9])
        weights = WeightRange.of_sample(0.0, fraction)
        assert weights is not None
        inside = F.hash("x", "y").between(weights.first, weights.last)
        sampled = data.sample(fraction)
        if read_report(sampled).spark_samples:
            # Before the first indexing there are no weights to go by.
            self.board.count("samples left to Spark")
            return None
        return self._compare(sampled, frame(self.spark, rows).where(inside))

    def _sample_of_a_range(self, data: DataFrame, rows: Rows) -> str | None:
        low, high = self._box()
        inside = {number: row for number, row in rows.items() if low <= row[0] < high}
        return self._sample(data.where((F.col("x") >= low) & (F.col("x") < high)), inside)

    @staticmethod
    def _compare(found: DataFrame, wanted: DataFrame) -> str | None:
        left, right = checksum(found), checksum(wanted)
        return None if left == right else f"{left} in place of {right}"


class Optimizer:
    """Calls one strategy after another, and the default ones together."""

    def __init__(self, spark: SparkSession, table: DeltaTable, board: Board, chance: random.Random) -> None:
        self.table, self.board, self.chance = DeltaTable(spark, table.name), board, chance
        self.strategies = [None, *(name for name in strategies() if name != "FileList")]

    def step(self) -> None:
        strategy = self.chance.choice(self.strategies)
        more = {"strategy": strategy} if strategy else {}
        if strategy == "SamplingOverheadReduction":
            more["options"] = {"fraction": "0.1"}
        try:
            report = self.table.optimize(
                parallelism=self.chance.choice([1, 2]), max_iterations=4, bytes_per_iter=100_000, **more
            )
        except ConcurrentChangeError:
            self.board.count("optimize lost")
            return
        for row in report:
            name = row.reason if row.state != "committed" else row.strategy
            self.board.count(f"optimize {row.state} {name}")
            if row.state == "failed" and row.reason != "USE_CONCURRENT_CHANGE":
                self.board.fail(f"optimize: {row.reason} {row.message}")


def vacuum(spark: SparkSession, table: DeltaTable, board: Board) -> None:
    sql_ext.call(spark, "vacuum", table=table.name, retention_hours=RETENTION_SECONDS / 3600, force=True)
    board.count("vacuum")


def again(name: str, step: Callable[[], None], ended: threading.Event, pause: float, board: Board) -> threading.Thread:
    """A thread that takes step after step; a lost race is counted, any other error is a failure."""

    def work() -> None:
        while not ended.wait(pause):
            _take(name, step, board)

    return threading.Thread(target=work, name=name)


def _take(name: str, step: Callable[[], None], board: Board) -> None:
    try:
        step()
    except Exception as error:  # noqa: BLE001 - it is what is looked for
        if is_conflict(error) or (isinstance(error, UseError) and error.code == "USE_CONCURRENT_CHANGE"):
            board.count(f"{name} lost a race")
        else:
            board.fail(f"{name}: {''.join(traceback.format_exception(error))[-3000:]}")


def verdict(spark: SparkSession, table: DeltaTable, ledger: Ledger, board: Board) -> None:
    """What must hold when everybody has gone home."""
    rows = ledger.rows_at(table.version)
    if ledger.vanished(table.version):
        board.fail(f"appends are not in the log: {ledger.vanished(table.version)}")
    wrong = differences(spark, table.data, rows)
    if wrong:
        board.fail(f"the table's rows differ: {wrong}")
    report = table.optimize()
    if [row.state for row in report if row.state == "failed"]:
        board.fail(f"the last optimize: {report}")
    if checksum(table.data) != checksum(frame(spark, rows)):
        board.fail("the last optimize changed rows")
    problems = sql_ext.call(spark, "check", table=table.name, deep=True).where("severity = 'error'").collect()
    if problems:
        board.fail(f"check: {problems}")
    if check_placement(table) != len(rows):
        board.fail("not every row is indexed")
    if not table.paths <= table.on_disk():
        board.fail(f"files are missing: {table.paths - table.on_disk()}")
    sql_ext.call(spark, "vacuum", table=table.name, retention_hours=0.0, force=True)
    left = {f for f in table.on_disk() - table.paths if "deletion_vector" not in f}
    if left:
        board.fail(f"vacuum left {left}")


def soak(spark: SparkSession, folder: Path, minutes: float, seed: int) -> Board:
    board, ended, chance = Board(), threading.Event(), random.Random(seed)
    properties = {"delta.enableDeletionVectors": chance.choice(["true", "false"])}
    print(f"seed {seed}, {properties}", flush=True)
    table = create(spark, f"delta.`{folder / 't'}`", COLUMNS, index="x,y", cube_size=200, properties=properties)
    ledger = Ledger(folder / "t")
    writers = [Writer(spark.newSession(), ledger, n, random.Random(seed + n), 100) for n in (1, 2)]
    for writer in writers:
        writer.step(("append",))
    readers = [Reader(spark.newSession(), ledger, board, random.Random(seed - n)) for n in (1, 2)]
    optimizer = Optimizer(spark.newSession(), table, board, chance)
    cleaner = spark.newSession()
    threads = [
        *(again(f"writer {w.number}", lambda w=w: w.step(KINDS), ended, 1, board) for w in writers),
        *(again(f"reader {n}", reader.step, ended, 0.5, board) for n, reader in enumerate(readers)),
        again("optimizer", optimizer.step, ended, 1, board),
        again("vacuum", lambda: vacuum(cleaner, table, board), ended, 20, board),
    ]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    while (left := minutes * 60 - (time.monotonic() - begun)) > 0:
        time.sleep(min(left, REPORT_SECONDS))
        for writer in writers:
            for kind, tally in writer.tally.items():
                board.counts[f"{kind} {writer.number}"] = tally.done
                board.counts[f"{kind} {writer.number} lost"] = tally.lost
        print(board.line(time.monotonic() - begun), flush=True)
    ended.set()
    for thread in threads:
        thread.join()
    verdict(spark, table, ledger, board)
    return board


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="use-soak-") as folder:
        spark = start_session(Path(folder))
        board = soak(spark, Path(folder), wanted.minutes, wanted.seed)
        spark.stop()
    print(board.line(wanted.minutes * 60))
    print("FAILED" if board.failures else "everything as the oracle says")
    return 1 if board.failures else 0


if __name__ == "__main__":
    sys.exit(main())
