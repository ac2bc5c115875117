"""Calls with a time limit, for file systems that may never answer."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeVar

_Answer = TypeVar("_Answer")
# A file system with so many calls that have not returned is not asked for other tables.
_MOST_HANGING = 16
_SCHEME_AND_SERVER = re.compile(r"[^/]*(//[^/]*)?")


class TimedCalls:
    """Calls about tables, each in a thread of its own.

    A call that does not return in time keeps its thread. Its table is not asked again until it returns, and other
    tables of its file system get less time: half of it, a third, and so on.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: dict[str, threading.Thread] = {}
        # Tables whose call has not returned in time.
        self._late: set[str] = set()

    def answers(self, calls: Mapping[str, Callable[[], _Answer]], seconds: float) -> dict[str, _Answer | Exception]:
        """Makes calls at the same time.

        Args:
            calls: by the locations or names of their tables.
            seconds: time for all of them together, at most.

        Returns:
            What they have returned or raised in time. A table without an answer, or whose earlier call has not
            returned, is missing.
        """
        answers: dict[str, _Answer | Exception] = {}

        def work(table: str, call: Callable[[], _Answer]) -> None:
            try:
                answers[table] = call()
            except Exception as error:  # noqa: BLE001 - the caller decides what it means for the table
                answers[table] = error

        waits = []
        with self._lock:
            self._threads = {table: thread for table, thread in self._threads.items() if thread.is_alive()}
            self._late &= self._threads.keys()
            hanging = Counter(map(_store, self._late))
            for table, call in calls.items():
                if table not in self._threads and hanging[_store(table)] < _MOST_HANGING:
                    thread = threading.Thread(target=work, args=(table, call), name="use-check", daemon=True)
                    try:
                        thread.start()
                    except RuntimeError as error:  # no thread is left; others may have ended when it is asked again
                        answers[table] = error
                        continue
                    self._threads[table] = thread
                    waits.append((table, thread, seconds / (1 + hanging[_store(table)])))
        begun = time.monotonic()
        for _, thread, patience in waits:
            thread.join(max(0.0, begun + patience - time.monotonic()))
        with self._lock:
            self._late.update(table for table, thread, _ in waits if thread.is_alive())
        return dict(answers)


def _store(table: str) -> str:
    found = _SCHEME_AND_SERVER.match(table)
    return found[0] if found is not None else ""
