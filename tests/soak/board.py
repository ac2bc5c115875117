"""What the threads of a soak share: the table, its history, and the board with what happened."""

import threading
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql import Row, SparkSession

import sql_ext
from catalog.jvm.java_errors import is_conflict, known_error
from soak.engines import Engines
from soak.history import History, Statement

KEY = "spark.databricks.delta.commitInfo.userMetadata"


class Board:
    """What happened: counts by name, and everything that must not happen."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self._lock = threading.Lock()

    def count(self, name: str) -> None:
        with self._lock:
            self.counts[name] += 1

    def fail(self, text: str) -> None:
        with self._lock:
            self.failures.append(text)
        print(f"FAILURE {text}", flush=True)

    def text(self, first: str) -> str:
        """The counts whose names begin so, in one line."""
        named = {name[len(first) :]: count for name, count in sorted(self.counts.items()) if name.startswith(first)}
        return ", ".join(f"{name} {count:,}" for name, count in named.items())


def _is_lost(error: Exception) -> bool:
    """Whether a statement or a procedure has lost to another commit."""
    causes = [error] if error.__cause__ is None else [error, error.__cause__]
    return any(map(is_conflict, causes)) or known_error(error).code == "USE_CONCURRENT_CHANGE"


@dataclass
class Soak:
    """What the threads share.

    Attributes:
        spark: the session.
        name: of the table.
        history: its versions.
        engines: the readers that share no code with USE.
        board: what happened.
        retention: seconds for which a version stays readable.
        ended: set at the end.
    """

    spark: SparkSession
    name: str
    history: History
    engines: Engines
    board: Board
    retention: float
    ended: threading.Event = field(default_factory=threading.Event)

    def thread(self, name: str, step: Callable[[], None], pause: float) -> threading.Thread:
        """A thread that takes step after step; a conflict is counted, and any other error is a failure."""

        def work() -> None:
            while not self.ended.wait(pause):
                self._take(name, step)

        return threading.Thread(target=work, name=name)

    def _take(self, name: str, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - errors are what a soak looks for
            if _is_lost(error):
                self.board.count(f"conflicts: {name}")
            else:
                self.board.fail(f"{name}: {''.join(traceback.format_exception(error))[-3000:]}")

    def call(self, procedure: str, **arguments: object) -> list[Row]:
        """Calls a procedure on the table, with the session's own thread."""
        return sql_ext.call(self.spark, procedure, table=self.name, **arguments).collect()

    def execute(self, session: SparkSession, what: Statement) -> bool:
        """Runs a statement; returns whether the log has it.

        Raises:
            Exception: the statement failed, and neither another commit nor a change of columns explains it.
        """
        key = self.history.begin(what)
        session.conf.set(KEY, key)
        try:
            session.sql(what.sql.format(t=self.name)).collect()
        except Exception as error:
            changed = self.history.newest().columns != what.columns and what.kind != "columns"
            if not _is_lost(error) and not changed:
                raise
            self.board.count("statements: lost to a change of columns" if changed else "statements: lost")
            return self.history.has(key)
        self.board.count(f"statements: {what.kind}")
        is_logged = self.history.has(key)
        if what.kind == "insert" and not is_logged:
            self.board.fail(f"an insert succeeded and is not in the log: {what}")
        return is_logged
