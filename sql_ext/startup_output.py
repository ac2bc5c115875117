"""The output of the JVM while it starts, which is shown only if the start fails."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_STDOUT, _STDERR = 1, 2
_END_OF_START = b"\0use-spark: the session has started\n"
# Shown at once, because a download takes long.
_SHOWN_AT_ONCE = b"downloading "
_SECONDS_FOR_LINES = 2.0

_passing_on: list[threading.Thread] = []


class StartupOutput:
    """The output of a starting process, which is held back until the process has started.

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
        """Reads lines until the other end of the source or the reader of the target is closed."""
        with suppress(BrokenPipeError), os.fdopen(self._source, "rb") as lines:
            for line in lines:
                if line == _END_OF_START:
                    self._started.set()
                elif self._started.is_set() or line.startswith(_SHOWN_AT_ONCE):
                    os.write(self._target, line)
                else:
                    self._held.append(line)

    def end_start(self, end: int) -> list[bytes]:
        """Stops holding back lines.

        Args:
            end: the other end of the source.

        Returns:
            The lines that were held back.
        """
        os.write(end, _END_OF_START)
        self._started.wait(_SECONDS_FOR_LINES)
        return self._held


@contextmanager
def held_back() -> Iterator[None]:
    """Holds back output of this process and its children on standard error while the block runs.

    Later lines of the children are passed on. If the block fails, all lines are shown.
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
    """Waits until the last lines of ended processes are passed on."""
    for thread in _passing_on:
        thread.join(_SECONDS_FOR_LINES)
