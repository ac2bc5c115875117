"""The JVM that a command starts."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Protocol

from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext

from catalog.errors import SparkFailedError
from catalog.jvm.session import is_stopped

_POLL_SECONDS = 0.2

# Spark has stopped by then. The remaining shutdown hooks delete scratch folders and close the metastore.
SECONDS_TO_END = 15.0
SECONDS_TO_STOP = 1.0
"""For a JVM that afterwards writes an archive of classes, in the background."""


class DriverProcess(Protocol):
    """The part of ``subprocess.Popen`` that is used here."""

    @property
    def stdin(self) -> IO[bytes] | None:
        """Its standard input."""
        ...

    def poll(self) -> int | None:
        """Returns its exit code; None while it runs."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end."""
        ...


def started_driver() -> DriverProcess | None:
    """Returns the JVM that this process started; None under ``spark-submit``, where the JVM started this process."""
    return getattr(SparkContext._gateway, "proc", None)


def serve_until(should_end: Callable[[], bool], context: SparkContext) -> None:
    """Waits until a server should end.

    Args:
        should_end: polled.
        context: of the server.

    Raises:
        SparkFailedError: Spark has stopped before, for example because the system ended its JVM for lack of memory.
    """
    driver = started_driver()
    while not should_end():
        # Py4J would log the stack of a call that a process that has ended does not answer.
        if (driver is not None and driver.poll() is not None) or is_stopped(context):
            raise SparkFailedError.of("it has stopped, or its JVM has ended")
        time.sleep(_POLL_SECONDS)


def unless_jvm_has_ended() -> suppress:
    """Returns a block whose calls of the JVM have no effect if it has ended."""
    return suppress(Py4JNetworkError, OSError)


def release_no_more_objects() -> None:
    """Stops the messages to the JVM about objects that Python has released.

    Py4J would log an error for a message that the JVM cannot answer because it ends.
    """
    if SparkContext._gateway is not None:
        SparkContext._gateway._gateway_client.is_connected = False


def end_driver(process: DriverProcess | None, seconds: float = SECONDS_TO_END) -> bool:
    """Stops the JVM and waits for its end, so that the next command can open the metastore and the ports.

    The JVM exits when its standard input is closed. If it takes longer than ``seconds``, it exits in the background.

    Args:
        process: the JVM, if any.
        seconds: maximum time to wait.

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
        # Another Ctrl-C stops the wait.
        return False
    return True
