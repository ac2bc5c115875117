"""Rewrites groups side by side: each in a thread of its own, while the caller watches for requests to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from pyspark import InheritableThread
from pyspark.sql import SparkSession

from catalog.clock import Clock
from catalog.jvm.session import activate
from procedures.declare.runs import Run
from procedures.groups.group import Group
from procedures.loop.interfaces import GroupThreads
from procedures.rewrite.results import RewriteResult

_LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class CommittedGroup:
    """A group whose commit is in the log, and the time that it took."""

    group: Group
    milliseconds: int
    result: RewriteResult


@dataclass(frozen=True)
class FailedGroup:
    """A group that ended with an error, and the time that it took."""

    group: Group
    milliseconds: int
    error: BaseException


GroupOutcome = CommittedGroup | FailedGroup


def run_groups(
    groups: Sequence[Group],
    rewrite: Callable[[Group], RewriteResult],
    run: Run,
    threads: GroupThreads,
    interrupted: Callable[[], bool],
    clock: Clock,
) -> list[GroupOutcome]:
    """Rewrites groups side by side and waits for all of them; a request to stop does not end them.

    Args:
        groups: they share no file.
        rewrite: rewrites one.
        run: is asked to stop when the caller is interrupted.
        threads: starts a thread per group.
        interrupted: whether the caller was interrupted.
        clock: the time.

    Returns:
        One outcome per group, in the order of the groups.
    """
    outcomes: dict[int, GroupOutcome] = {}

    def work(number: int, group: Group) -> None:
        started = clock.monotonic()

        def milliseconds() -> int:
            return int((clock.monotonic() - started) * 1000)

        try:
            threads.prepare()
            result = rewrite(group)
            outcomes[number] = CommittedGroup(group, milliseconds(), result)
        except BaseException as error:  # noqa: BLE001 - the caller of run_groups decides
            outcomes[number] = FailedGroup(group, milliseconds(), error)

    started = [
        threads.start(number, lambda number=number, group=group: work(number, group))  # type: ignore[misc]
        for number, group in enumerate(groups)
    ]
    for thread in started:
        while thread.is_alive():
            thread.join(_LOOK_SECONDS)
            if interrupted():
                run.interrupt()
    return [outcomes[number] for number in range(len(groups))]


class SparkThreads:
    """Threads with a JVM thread each, in the caller's session but outside its job group.

    An interrupt of the caller, as cancelling a JDBC statement causes, then reaches the loop and no Spark job in the
    middle of a group.

    Args:
        spark: session of the caller.
        run: names the threads and the job group.
    """

    def __init__(self, spark: SparkSession, run: Run) -> None:
        self._spark = spark
        self._run = run

    def start(self, number: int, work: Callable[[], None]) -> threading.Thread:
        """See ``GroupThreads.start``."""
        thread: threading.Thread = InheritableThread(target=work, name=f"use-{self._run.run_id}-{number}")
        thread.start()
        return thread

    def prepare(self) -> None:
        """See ``GroupThreads.prepare``."""
        spark, run = self._spark, self._run
        activate(spark)
        # A client cancels its jobs by the group and the tags of the statement: those of a group must have others.
        spark.sparkContext.clearJobTags()
        spark.sparkContext.setJobGroup(f"use-{run.run_id}", f"USE {run.trigger} run {run.run_id}", False)


@contextmanager
def stopped_by_keyboard(run: Run) -> Iterator[None]:
    """Makes the first Ctrl-C end the run at the next boundary, and the second one do what it did before.

    Otherwise Spark would cancel all jobs of the application at the first.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def stop(_: int, __: FrameType | None) -> None:
        run.interrupt()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
