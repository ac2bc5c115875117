"""The line on a terminal while a command makes its user wait."""

import io
import os
import pty
import threading

import pytest

from sql_ext.commands.waiting import waiting


@pytest.fixture
def terminal():
    """A terminal: what to read from, and the stream to write to."""
    reader, writer = pty.openpty()
    with os.fdopen(writer, "w") as stream:
        yield reader, stream
    os.close(reader)


def test_a_long_wait_is_shown_and_removed(terminal):
    reader, stream = terminal
    with waiting("starting Spark", 0.0, 0.001, stream):
        shown = os.read(reader, 1000).decode()
    assert shown.startswith("\r\x1b[Kuse-spark: starting Spark (0 s)")
    print("own", file=stream, flush=True)
    while not shown.endswith("own\r\n"):
        shown += os.read(reader, 1000).decode()
    assert shown.endswith("\r\x1b[Kown\r\n")
    assert not [thread for thread in threading.enumerate() if thread.name == "use-spark-waiting"]


def test_a_short_wait_shows_nothing(terminal):
    reader, stream = terminal
    with waiting("starting Spark", 60.0, stream=stream) as end:
        end()
        end()
    print("own", file=stream, flush=True)
    assert os.read(reader, 1000).decode() == "own\r\n"


def test_what_is_no_terminal_gets_nothing():
    stream = io.StringIO()
    with waiting("starting Spark", 0.0, 0.001, stream):
        pass
    assert stream.getvalue() == ""
