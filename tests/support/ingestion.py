"""Plain Delta writers that append all the time while the optimizer works, and what the table must hold afterwards."""

import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from tables import DeltaTable, checksum

from catalog.jvm.java_errors import is_conflict

COLUMNS = "id BIGINT, at TIMESTAMP, x DOUBLE"
IDS_PER_WRITER = 1_000_000_000
# 2026-01-01, in seconds.
_START = 1_767_225_600
_X = "(id * 2654435761 % 1000003) / 1000003D"


@dataclass
class Appends:
    """What one writer did.

    Attributes:
        done: first id, number of rows and first second of each append that succeeded and was not deleted.
        count: appends that succeeded.
        deleted: deletes that succeeded; each takes the rows of one append.
        lost_deletes: deletes that Delta refused because of another commit.
        conflicts: appends that Delta refused because of another commit.
        errors: any other error.
    """

    done: list[tuple[int, int, int]] = field(default_factory=list)
    count: int = 0
    deleted: int = 0
    lost_deletes: int = 0
    conflicts: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class PlainWriter:
    """Appends rows whose event time moves on; it knows nothing of the index.

    Args:
        spark: a session of its own.
        table: path of the table.
        number: of the writer, from 0.
        rows: of one append.
        seconds: event time between two appends; each append may change it.
        event: the time of the append of a number, in seconds from the first one; evenly spaced when left out.
        appends_per_delete: after so many appends, the writer deletes the rows of its newest but one; None = never.
    """

    def __init__(
        self,
        spark: SparkSession,
        table: str,
        number: int,
        rows: int = 200,
        event: Callable[[int], int] = lambda count: count * 600,
        appends_per_delete: int | None = None,
    ) -> None:
        self.spark, self.table, self.number, self.rows, self.event = spark, table, number, rows, event
        self.appends_per_delete = appends_per_delete
        self.appends = Appends()
        self._count = 0

    def append(self) -> None:
        """One append of the next rows; a failed one is noted, and its rows are never written again."""
        first = self.number * IDS_PER_WRITER + self._count * self.rows
        second = _START + self.event(self._count)
        self._count += 1
        try:
            rows = rows_of(self.spark, [(first, self.rows, second)]).coalesce(1)
            rows.write.format("delta").mode("append").save(self.table)
            self.appends.done.append((first, self.rows, second))
            self.appends.count += 1
        except Exception as error:  # noqa: BLE001 - it is what is counted
            text = "".join(traceback.format_exception_only(error))[:300]
            (self.appends.conflicts if is_conflict(error) else self.appends.errors).append(text)

    def delete(self) -> None:
        """Deletes the rows of an append; they stay if another commit comes first."""
        first, rows, second = self.appends.done[-2]
        try:
            self.spark.sql(f"DELETE FROM delta.`{self.table}` WHERE id >= {first} AND id < {first + rows}")
            self.appends.done.remove((first, rows, second))
            self.appends.deleted += 1
        except Exception as error:  # noqa: BLE001 - it is what is counted
            if is_conflict(error):
                self.appends.lost_deletes += 1
            else:
                self.appends.errors.append("".join(traceback.format_exception_only(error))[:300])

    def work(self, ended: threading.Event, pause: float) -> None:
        """Appends at a steady rate, one every ``pause`` seconds or as fast as the machine allows."""
        due = time.monotonic()
        while not ended.is_set():
            self.append()
            if self.appends_per_delete and self._count % self.appends_per_delete == 0 and len(self.appends.done) > 1:
                self.delete()
            due = max(due + pause, time.monotonic())
            ended.wait(max(0.0, due - time.monotonic()))


def rows_of(spark: SparkSession, appends: list[tuple[int, int, int]]) -> DataFrame:
    """The rows of appends, computed without any table."""
    ranges = " UNION ALL ".join(
        f"SELECT id, {second} + (id - {first}) AS second FROM range({first}, {first + rows}, 1, 1)"
        for first, rows, second in appends
    )
    return spark.sql(f"SELECT id, timestamp_seconds(second) AS at, {_X} AS x FROM ({ranges})")


def expected_checksum(spark: SparkSession, writers: list[PlainWriter]) -> tuple:
    """The checksum of all rows that the writers were told are written."""
    appends = [append for writer in writers for append in writer.appends.done]
    listed = spark.createDataFrame(appends, "first BIGINT, rows BIGINT, second BIGINT").coalesce(1)
    listed.createOrReplaceTempView("appends_of_writers")
    rows = spark.sql(
        "SELECT id, second + (id - first) AS second FROM "
        "(SELECT first, second, explode(sequence(first, first + rows - 1)) AS id FROM appends_of_writers)"
    )
    return checksum(rows.selectExpr("id", "timestamp_seconds(second) AS at", f"{_X} AS x"))


@dataclass(frozen=True)
class Pass:
    """One ``CALL use.optimize`` among the appends.

    Attributes:
        before: unindexed files when it began.
        after: unindexed files when it had ended.
        arrived: appends that were committed meanwhile.
        states: the state of each group in its report.
        revisions: revisions that it made.
    """

    before: int
    after: int
    arrived: int
    states: tuple[str, ...]
    revisions: int


class Ingestion:
    """Writers in threads of their own, and passes of the optimizer among them."""

    def __init__(self, table: DeltaTable, writers: list[PlainWriter], pause: float) -> None:
        self.table, self.writers = table, writers
        self.passes: list[Pass] = []
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=w.work, args=(self._ended, pause), daemon=True) for w in writers]

    def __enter__(self) -> "Ingestion":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    @property
    def appended(self) -> int:
        """Appends that have succeeded so far."""
        return sum(writer.appends.count for writer in self.writers)

    def optimize(self) -> Pass:
        """One call, with its defaults."""
        before, appended = len(self.table.unindexed), self.appended
        report = self.table.optimize()
        after, arrived = len(self.table.unindexed), self.appended - appended
        made = sum("made revision" in row.message for row in report)
        states = tuple(row.state for row in report if row.input_files)
        self.passes.append(Pass(before, after, arrived, states, made))
        return self.passes[-1]

    @property
    def conflicts(self) -> list[str]:
        """Appends that failed because of another commit."""
        return [text for writer in self.writers for text in writer.appends.conflicts]

    @property
    def errors(self) -> list[str]:
        """Appends that failed for any other reason."""
        return [text for writer in self.writers for text in writer.appends.errors]

    def summary(self) -> str:
        """What happened so far, in one line."""
        unindexed = max((one.before for one in self.passes), default=0)
        states = [state for one in self.passes for state in one.states]
        return (
            f"{self.appended} appends, {len(self.conflicts)} failed by a conflict, {len(self.errors)} otherwise; "
            f"{sum(w.appends.deleted for w in self.writers)} deletes, "
            f"{sum(w.appends.lost_deletes for w in self.writers)} lost; "
            f"{len(self.passes)} passes, groups committed {states.count('committed')}, lost {states.count('failed')}, "
            f"most unindexed files {unindexed}, now {len(self.table.unindexed)}, "
            f"revisions made {sum(one.revisions for one in self.passes)}"
        )
