"""A process with a real session, which runs operations as it is told on standard input; see ``worker_process.py``.

Each line of standard input is a JSON object with a command and its arguments; each answer is a line of standard output.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "support")]
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
os.environ["TZ"] = "UTC"
time.tzset()

from pyspark import InheritableThread  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

import sql_ext  # noqa: E402
from catalog.clock import SystemClock  # noqa: E402
from catalog.jvm.java_errors import known_error  # noqa: E402
from catalog.jvm.session import activate  # noqa: E402
from faults import acts  # noqa: E402
from faults.operations import OPERATIONS, Operation  # noqa: E402
from faults.points import CASE, DELAY, Points, is_writing  # noqa: E402
from faults.templates import TEMPLATES  # noqa: E402

# Longer than a lease and than a claim of a process that was killed.
_LATER_MILLIS = 60_000


class LateClock:
    """Lets all clocks of the process be ahead while the block runs, so that leases of killed runs are over."""

    def __init__(self) -> None:
        self._real = SystemClock.now
        self._ahead = 0
        SystemClock.now = lambda clock: self._real(clock) + self._ahead  # type: ignore[method-assign]

    def __enter__(self) -> None:
        self._ahead = _LATER_MILLIS

    def __exit__(self, *_: object) -> None:
        self._ahead = 0


class Worker:
    """The commands.

    Args:
        spark: the session.
        points: of the process.
    """

    def __init__(self, spark: SparkSession, points: Points) -> None:
        self._spark, self._points, self._late = spark, points, LateClock()
        self._other = spark.newSession()

    def make(self, template: str, path: str) -> dict[str, Any]:
        """Makes a table."""
        TEMPLATES[template](self._spark, Path(path))
        return {}

    def operations(self) -> dict[str, Any]:
        """The template of each operation."""
        return {"templates": {o.name: o.template for o in OPERATIONS.values()}}

    def record(self, operation: str, path: str) -> dict[str, Any]:
        """Runs an operation without a fault; returns the points that it reaches, and how long it takes."""
        began = time.monotonic()
        with self._points.watched():
            OPERATIONS[operation].run(self._spark, Path(path))
        reached = dict(self._points.reached)
        writing = [point for point in reached if is_writing(point)]
        return {"points": reached, "writing": writing, "seconds": time.monotonic() - began}

    def fault(self, operation: str, path: str, point: str, nth: int, kind: str) -> dict[str, Any]:
        """Runs an operation in which a fault strikes; returns the error with which it ended, if any."""
        act = acts.act(kind, self._other, OPERATIONS[operation], Path(path))
        with self._points.watched((point, nth, kind), act.strike):
            error = _error_of(lambda: OPERATIONS[operation].run(self._spark, Path(path)))
        act.end()
        struck = self._points.has_struck
        appended = struck and kind == DELAY and OPERATIONS[operation].may_append
        return {"struck": struck, "appended": appended, **error}

    def run(self, operation: str, path: str) -> dict[str, Any]:
        """Runs an operation; returns the error with which it ended, if any."""
        return _error_of(lambda: OPERATIONS[operation].run(self._spark, Path(path)))

    def recover(self, operation: str, path: str, accepted: Sequence[str] = ()) -> dict[str, Any]:
        """The next run after a fault, a minute later, and a vacuum of what the newest version does not need.

        Args:
            operation: its name.
            path: of the table.
            accepted: codes of errors that name a step of the owner, as documented.
        """
        return self._recovered(self._spark, OPERATIONS[operation], Path(path), accepted)

    def recover_all(self, cases: list[dict[str, Any]]) -> dict[str, Any]:
        """``recover`` for several tables, two at a time."""
        answers: dict[int, dict[str, Any]] = {}
        waiting = deque(cases)

        def work() -> None:
            session = self._spark.newSession()
            activate(session)
            while waiting:
                case = waiting.popleft()
                operation, path = OPERATIONS[case["operation"]], Path(case["path"])
                answers[case["number"]] = self._recovered(session, operation, path)

        _in_threads([work, work])
        return {"answers": answers}

    def race(self, cases: list[dict[str, Any]], threads: int) -> dict[str, Any]:
        """Runs operations on tables of their own, several at a time, until this process is killed."""
        waiting = deque(cases)

        def work() -> None:
            session = self._spark.newSession()
            activate(session)
            while waiting:
                case = waiting.popleft()
                self._spark.sparkContext.setLocalProperty(CASE, str(case["number"]))
                self._points.note(f"begin {case['number']}")
                error = _error_of(lambda c=case: OPERATIONS[c["operation"]].run(session, Path(c["path"])))  # type: ignore[misc]
                self._points.note(f"end {case['number']} {json.dumps(error)}")

        with self._points.watched():
            _in_threads([work] * threads)
        return {}

    def _recovered(
        self, spark: SparkSession, operation: Operation, path: Path, accepted: Sequence[str] = ()
    ) -> dict[str, Any]:
        with self._late:
            again = _error_of(lambda: operation.run(spark, path))
            if again.get("code") in (*operation.done, *accepted):
                again = {}
            if again:
                return {"step": "the next run", **again}

            def vacuum() -> None:
                rows = sql_ext.call(spark, "vacuum", table=str(path), retention_hours=0.0, force=True).collect()
                assert {row.state for row in rows} <= {"deleted", "kept"}, rows

            def vacuum_all() -> None:
                if operation.protects:
                    # A protection that was left half written would stop it.
                    vacuum()
                for name in [f.stem for f in (path / "_use" / "protected").glob("*.json")]:
                    sql_ext.call(spark, "unprotect", table=str(path), name=name)
                vacuum()

            cleaned = _error_of(vacuum_all)
            return {"step": "the vacuum", **cleaned} if cleaned else {}


def _in_threads(works: list[Callable[[], None]]) -> None:
    threads = [InheritableThread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _error_of(work: Callable[[], object]) -> dict[str, Any]:
    """The error of a call as its caller sees it; nothing if it succeeds."""
    try:
        work()
    except Exception as error:  # noqa: BLE001 - the parent judges it
        known = known_error(error)
        return {"code": known.code, "message": known.message[:500], "type": type(error).__name__}
    return {}


def serve(folder: Path) -> None:
    """Starts the session, and answers commands until standard input ends."""
    from sessions import start_session

    folder.mkdir(parents=True)
    answers = os.fdopen(os.dup(1), "w")
    # Whatever else is printed is for the log.
    os.dup2(2, 1)
    spark = start_session(folder)
    worker = Worker(spark, Points(spark, folder / "notes"))
    print("{}", file=answers, flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        answer = getattr(worker, command.pop("do"))(**command)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    # A thread of a rewrite that waits does not keep the process.
    threading.current_thread().name = "worker"
    serve(parser.parse_args().folder)
