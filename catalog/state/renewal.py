"""A thread that renews something stored below a table while work goes on, and ends it afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from catalog.clock import Clock
from catalog.state.state_files import NOT_ACCESSIBLE, Unreadable, access_problem


@contextmanager
def renewed_in_background(
    name: str,
    clock: Clock,
    seconds: float,
    renew: Callable[[], None],
    end: Callable[[], None],
    failed: Callable[[Unreadable], None],
) -> Iterator[None]:
    """Renews something in the background while the block runs, and ends it afterwards.

    Args:
        name: of the thread.
        clock: the time.
        seconds: between two renewals.
        renew: renews it.
        end: ends it. The same thread calls it: that of the caller may be interrupted, and then cannot write files.
        failed: gets the error when the file system refuses either.
    """
    ended = threading.Event()

    def attempt(step: Callable[[], None]) -> None:
        try:
            step()
        except (Py4JError, PySparkException, OSError) as error:
            # Correctness does not depend on what is renewed: work goes on, and the next attempt may succeed.
            failed(Unreadable(NOT_ACCESSIBLE, access_problem(error)))

    def keep() -> None:
        while not clock.wait(ended, seconds):
            attempt(renew)
        attempt(end)

    thread = threading.Thread(target=keep, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
