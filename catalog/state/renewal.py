"""A thread that renews something stored below a table while other work runs, and ends it afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from catalog.clock import Clock
from catalog.jvm.raised_errors import file_errors
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
        end: ends it. The same thread calls it, because an interrupted thread of the caller could not write files.
        failed: called with the reason if the file system refuses either.
    """
    ended = threading.Event()

    def attempt(step: Callable[[], None]) -> None:
        try:
            step()
        except file_errors() as error:
            # Correctness does not depend on the renewal: the work continues, and the next attempt may succeed.
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
