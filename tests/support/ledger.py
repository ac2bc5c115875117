"""Writers that note what they are about to do, and the rows that a table must hold by what its log says was done."""

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from random import Random

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog.jvm.java_errors import is_conflict

COLUMNS = "id BIGINT, x DOUBLE, y INT"
# Ids of one writer; no two writers touch the same row, so that only their files can conflict.
IDS_PER_WRITER = 10_000_000
Rows = dict[int, tuple[float, int]]


def x_of(number: int) -> float:
    """The value of a row's x: in [0, 1), and far from the order of the ids."""
    return (number * 2654435761 % 1000003) / 1000003.0


_X = "(id * 2654435761 % 1000003) / 1000003D"


@dataclass(frozen=True)
class Operation:
    """``append``, ``delete`` or ``merge`` of the ids in [low, high); a delete takes those with id % 3 = rest."""

    kind: str
    low: int
    high: int
    rest: int = 0

    def apply(self, rows: Rows) -> None:
        for number in range(self.low, self.high):
            if self.kind == "append":
                assert number not in rows
                rows[number] = (x_of(number), 0)
            elif self.kind == "delete" and number % 3 == self.rest:
                rows.pop(number, None)
            elif self.kind == "merge":
                rows[number] = (x_of(number), rows[number][1] + 1 if number in rows else 0)

    def run(self, spark: SparkSession, path: Path, key: str) -> None:
        spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", key)
        ids = f"(SELECT id FROM range({self.low}, {self.high}))"
        match self.kind:
            case "append":
                rows = spark.sql(f"SELECT id, {_X} x, 0 y FROM {ids}").coalesce(1)
                rows.write.format("delta").mode("append").save(str(path))
            case "delete":
                spark.sql(
                    f"DELETE FROM delta.`{path}` WHERE id >= {self.low} AND id < {self.high} AND id % 3 = {self.rest}"
                )
            case "merge":
                spark.sql(
                    f"MERGE INTO delta.`{path}` t USING (SELECT id, {_X} x, 0 y FROM {ids}) s ON t.id = s.id "
                    "WHEN MATCHED THEN UPDATE SET y = t.y + 1 WHEN NOT MATCHED THEN INSERT *"
                )


class Ledger:
    """What was begun, by the key that a commit carries; the log tells which of it happened, and in which order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._begun: dict[str, Operation] = {}
        self._acknowledged: set[str] = set()
        self._lock = threading.Lock()

    def begin(self, writer: int, operation: Operation) -> str:
        with self._lock:
            key = f"w{writer}-{len(self._begun)}"
            self._begun[key] = operation
            return key

    def newest(self) -> int:
        return max(int(f.stem) for f in (self.path / "_delta_log").glob("*.json") if f.stem.isdigit())

    def acknowledge(self, key: str) -> None:
        """The writer was told that it is done; an append must then be in the log, others may have found no row."""
        if self._begun[key].kind == "append":
            self._acknowledged.add(key)

    def _logged(self, version: int) -> list[str]:
        """Keys of the commits up to a version, in their order."""
        keys = []
        for number in range(version + 1):
            text = (self.path / "_delta_log" / f"{number:020d}.json").read_text(encoding="utf-8")
            infos = [json.loads(line)["commitInfo"] for line in text.splitlines() if line.startswith('{"commitInfo"')]
            keys.append(infos[0].get("userMetadata", ""))
        return [key for key in keys if key in self._begun]

    def vanished(self, version: int) -> set[str]:
        """Appends that were acknowledged and are not in the log."""
        return self._acknowledged - set(self._logged(version))

    def rows_at(self, version: int) -> Rows:
        rows: Rows = {}
        for key in self._logged(version):
            self._begun[key].apply(rows)
        return rows


@dataclass
class Tally:
    """What became of a writer's operations."""

    done: int = 0
    lost: int = 0


class Writer:
    """Appends, deletes and merges rows of its own, one operation after another.

    Args:
        spark: a session of its own.
        ledger: of the table.
        number: of the writer.
        random: what it does next.
        rows: of an append, at most.
    """

    def __init__(self, spark: SparkSession, ledger: Ledger, number: int, random: Random, rows: int = 40) -> None:
        self.spark, self.ledger, self.number, self.random, self.most = spark, ledger, number, random, rows
        self.next_id = number * IDS_PER_WRITER
        self.tally: dict[str, Tally] = {}

    def step(self, kinds: tuple[str, ...]) -> None:
        """One operation; a race that is lost to another writer is no failure.

        Raises:
            Exception: anything else.
        """
        operation = self._next(self.random.choice(kinds))
        tally = self.tally.setdefault(operation.kind, Tally())
        key = self.ledger.begin(self.number, operation)
        try:
            operation.run(self.spark, self.ledger.path, key)
            tally.done += 1
            self.ledger.acknowledge(key)
        except Exception as error:
            if not is_conflict(error):
                raise
            tally.lost += 1

    def work(
        self, ended: threading.Event, kinds: tuple[str, ...], failures: list[BaseException], pause: float = 1
    ) -> None:
        """Goes on until the event is set, with pauses of so many seconds; the first failure ends it."""
        try:
            while not ended.wait(pause):
                self.step(kinds)
        except BaseException as error:  # noqa: BLE001 - told to the thread that judges
            failures.append(error)

    def _next(self, kind: str) -> Operation:
        first = self.number * IDS_PER_WRITER
        if kind == "append" or self.next_id == first:
            low, self.next_id = self.next_id, self.next_id + self.random.randint(1, self.most)
            return Operation("append", low, self.next_id)
        low = self.random.randrange(first, self.next_id)
        return Operation(kind, low, min(low + self.most, self.next_id), self.random.randrange(3))


def frame(spark: SparkSession, rows: Rows) -> DataFrame:
    """The rows of an oracle as data; weights are computed from it without any table."""
    return spark.createDataFrame([(number, x, y) for number, (x, y) in rows.items()], COLUMNS)


def differences(spark: SparkSession, found: DataFrame, rows: Rows) -> list:
    """A few rows that one side has more often than the other; none when they are the same multiset."""
    wanted = frame(spark, rows)
    extra = found.exceptAll(wanted).withColumn("side", F.lit("extra"))
    return extra.unionByName(wanted.exceptAll(found).withColumn("side", F.lit("missing"))).take(10)
