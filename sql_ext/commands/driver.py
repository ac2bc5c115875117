"""The JVM that a command has started, and the wait for its end."""

from __future__ import annotations

import subprocess
from typing import IO, Protocol

from pyspark import SparkContext

# Spark has stopped by then: what is left are shutdown hooks that delete scratch folders and close the metastore.
_SECONDS_TO_END = 15.0


class DriverProcess(Protocol):
    """What is needed of ``subprocess.Popen``."""

    @property
    def stdin(self) -> IO[bytes] | None:
        """Its standard input."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end."""
        ...


def started_driver() -> DriverProcess | None:
    """The JVM that this process has started; None under ``spark-submit``, which has started this process."""
    return getattr(SparkContext._gateway, "proc", None)


def end_driver(process: DriverProcess | None, seconds: float = _SECONDS_TO_END) -> bool:
    """Ends the JVM and waits for it, so that the next command finds its metastore and its ports free.

    The JVM ends when its standard input does. One that takes longer than ``seconds`` goes on to its end alone.

    Args:
        process: the JVM; None where there is none.
        seconds: to wait at most.

    Returns:
        Whether it has ended.
    """
    if process is None:
        return True
    try:
        if process.stdin is not None:
            process.stdin.close()
        process.wait(seconds)
    except (OSError, subprocess.TimeoutExpired, KeyboardInterrupt):
        # Another Ctrl-C asks not to wait.
        return False
    return True
