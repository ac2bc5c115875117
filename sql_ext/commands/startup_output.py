"""What the JVM prints while it starts: kept from the terminal unless the start fails."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_STDOUT, _STDERR = 1, 2
_END_OF_START = b"\0use-spark: the session has started\n"
# It takes long, and people want to know why.
_SHOWN_AT_ONCE = b"downloading "
_SECONDS_FOR_LINES = 2.0

_passing_on: list[threading.Thread] = []


class StartupOutput:
    """The lines of a starting process: held back first, passed on from the end of the start.

    Args:
        source: file descriptor to read from, to its end.
        target: file descriptor to write to.
    """

    def __init__(self, source: int, target: int) -> None:
        self._source = source
        self._target = target
        self._held: list[bytes] = []
        self._started = threading.Event()

    def read(self) -> None:
        """Reads lines until the other end of the source is closed, or nobody reads the target any more."""
        with suppress(BrokenPipeError), os.fdopen(self._source, "rb") as lines:
            for line in lines:
                if line == _END_OF_START:
                    self._started.set()
                elif self._started.is_set() or line.startswith(_SHOWN_AT_ONCE):
                    os.write(self._target, line)
                else:
                    self._held.append(line)

    def end_start(self, end: int) -> list[bytes]:
        """Ends holding back.

        Args:
            end: the source's other end.

        Returns:
            The lines that were held back.
        """
        os.write(end, _END_OF_START)
        self._started.wait(_SECONDS_FOR_LINES)
        return self._held


@contextmanager
def held_back() -> Iterator[None]:
    """Holds back what this process and those that it starts print on standard error while the block runs.

    Of the processes that are started in it, later lines are passed on. If the block fails, all lines are shown.
    """
    source, end = os.pipe()
    before = {number: os.dup(number) for number in (_STDOUT, _STDERR)}
    output = StartupOutput(source, before[_STDERR])
    thread = threading.Thread(target=output.read, name="use-spark-output", daemon=True)
    thread.start()
    _passing_on.append(thread)
    for number in before:
        os.dup2(end, number)
    try:
        yield
    except BaseException:
        for line in output.end_start(end):
            os.write(before[_STDERR], line)
        raise
    else:
        output.end_start(end)
    finally:
        for number, file in before.items():
            os.dup2(file, number)
        os.close(before[_STDOUT])
        os.close(end)


def wait_for_output() -> None:
    """Waits until the last lines of processes that have ended are passed on."""
    for thread in _passing_on:
        thread.join(_SECONDS_FOR_LINES)
