"""Groups at work: each in a thread of its own, while the caller watches for requests to stop."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from pyspark import InheritableThread
from pyspark.sql import SparkSession

from catalog.jvm.session import activate, interrupted
from procedures.optimizer.plan import FileGroup
from procedures.optimizer.runs import Run
from procedures.rewrite.group_rewrite import RewriteResult

_LOOK_SECONDS = 0.1


@dataclass
class GroupOutcome:
    """What became of one group: a result or an error, and the time it took."""

    group: FileGroup
    milliseconds: int = 0
    result: RewriteResult | None = None
    error: BaseException | None = None


def run_groups(
    spark: SparkSession, run: Run, groups: Sequence[FileGroup], work: Callable[[FileGroup], RewriteResult]
) -> list[GroupOutcome]:
    """Rewrites groups side by side and waits for all of them; a request to stop lets them end.

    Each has a thread, and so a thread of the JVM, of its own: an interrupt of the caller's, as cancelling a JDBC
    statement causes, then reaches this loop and not a Spark job in the middle of a group.

    Args:
        spark: session of the caller.
        run: told when the caller is interrupted.
        groups: they share no file.
        work: rewrites one.
    """
    outcomes = [GroupOutcome(group) for group in groups]

    def one(outcome: GroupOutcome) -> None:
        begun = time.monotonic()
        activate(spark)
        # Not the statement's group and tags, by which a client cancels its jobs.
        spark.sparkContext.clearJobTags()
        spark.sparkContext.setJobGroup(f"use-{run.run_id}", f"USE {run.trigger} run {run.run_id}", False)
        try:
            outcome.result = work(outcome.group)
        except BaseException as error:  # noqa: BLE001 - handed to the caller, who decides
            outcome.error = error
        outcome.milliseconds = int((time.monotonic() - begun) * 1000)

    threads = [
        InheritableThread(target=one, args=(outcome,), name=f"use-{run.run_id}-{i}")
        for i, outcome in enumerate(outcomes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(_LOOK_SECONDS)
            if interrupted(spark):
                run.request_stop("INTERRUPTED", "interrupted")
    return outcomes


@contextmanager
def stopped_by_keyboard(run: Run) -> Iterator[None]:
    """Makes the first Ctrl-C end the run at the next boundary, and the second one whatever it did before.

    Without it, Spark would cancel all jobs of the application at the first.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def stop(_: int, __: FrameType | None) -> None:
        run.request_stop("INTERRUPTED", "interrupted")
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
