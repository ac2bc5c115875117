"""A line on a terminal while a command makes its user wait."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from catalog.clock import SYSTEM_CLOCK

_SECONDS_UNTIL_SHOWN = 2.0
_SECONDS_BETWEEN = 0.5
_CLEAR = "\r\x1b[K"


@contextmanager
def waiting(
    text: str,
    until_shown: float = _SECONDS_UNTIL_SHOWN,
    between: float = _SECONDS_BETWEEN,
    stream: TextIO | None = None,
) -> Iterator[Callable[[], None]]:
    """Shows a text and the seconds so far while the block runs for long; only if standard error is a terminal.

    Yields a function that removes the line earlier, for blocks that print something themselves. The line goes to the
    terminal that standard error is at the beginning, because output is redirected while Spark starts.

    Args:
        text: what the user waits for.
        until_shown: seconds until the line is shown.
        between: seconds between two changes of the line.
        stream: where to show it; standard error by default.
    """
    stream = sys.stderr if stream is None else stream
    if not stream.isatty():
        yield lambda: None
        return
    terminal, ended = os.dup(stream.fileno()), threading.Event()
    thread = threading.Thread(
        target=_show, args=(terminal, text, ended, until_shown, between), name="use-spark-waiting", daemon=True
    )

    def end() -> None:
        if not ended.is_set():
            ended.set()
            thread.join()
            os.close(terminal)

    thread.start()
    try:
        yield end
    finally:
        end()


def _show(terminal: int, text: str, ended: threading.Event, until_shown: float, between: float) -> None:
    started = SYSTEM_CLOCK.monotonic()
    if ended.wait(until_shown):
        return
    while True:
        os.write(terminal, f"{_CLEAR}use-spark: {text} ({SYSTEM_CLOCK.monotonic() - started:.0f} s)".encode())
        if ended.wait(between):
            break
    os.write(terminal, _CLEAR.encode())
