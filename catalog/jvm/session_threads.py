"""Several pieces of work at a time in one session, where each waits for the JVM or a file system."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from pyspark import InheritableThread
from pyspark.sql import SparkSession

from catalog.jvm.session import activate, acts_for_another_user, same_active_session

Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST_THREADS = 8


def in_threads(
    spark: SparkSession, work: Callable[[Item], Result], items: Sequence[Item], most: int = _MOST_THREADS
) -> list[Result]:
    """Does the same with several items, a few at a time.

    New threads would have the rights of the process. If the caller acts for another user, its own thread does the work.

    Args:
        spark: session of the caller; each thread works in it, with the local properties of the caller.
        work: what is done with an item.
        items: the items.
        most: number of threads at most.

    Returns:
        The results, in the order of the items.

    Raises:
        Exception: that of the first item whose work has failed.
    """
    if len(items) < 2 or acts_for_another_user(spark):
        return [work(item) for item in items]
    results: dict[int, Result] = {}
    errors: dict[int, BaseException] = {}
    lock, left = threading.Lock(), iter(enumerate(items))

    def loop() -> None:
        activate(spark)
        while not errors:
            with lock:
                number, item = next(left, (None, None))
            if number is None:
                return
            try:
                results[number] = work(item)  # type: ignore[arg-type]
            except BaseException as error:  # noqa: BLE001 - raised by the caller's thread
                errors[number] = error

    threads = [InheritableThread(target=loop, name=f"use-look-{n}") for n in range(min(most, len(items)))]
    with same_active_session():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[min(errors)]
    return [results[number] for number in range(len(items))]
