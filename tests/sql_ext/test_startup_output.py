"""What a process prints while it starts; child processes in place of the JVM."""

import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from sql_ext.startup_output import StartupOutput, held_back, wait_for_output

CHILD = """
import sys
for line in sys.stdin:
    print(line, end="", flush=True)
    print(line, end="", file=sys.stderr, flush=True)
"""


@contextmanager
def terminal(path):
    """Standard output and error of this process as one file."""
    before = [os.dup(1), os.dup(2)]
    with path.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        for number, kept in enumerate(before, 1):
            os.dup2(kept, number)
            os.close(kept)


def child():
    return subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, text=True)


def print_lines(process, *lines):
    process.stdin.write("".join(f"{line}\n" for line in lines))
    process.stdin.close()
    process.wait()


def test_a_start_is_silent_and_later_lines_are_passed_on(tmp_path):
    with terminal(tmp_path / "shown"):
        with held_back():
            late = child()
            print_lines(child(), ":: resolving dependencies ::", "downloading a jar ...")
        os.write(2, b"of our own\n")
        print_lines(late, "ERROR of later")
        wait_for_output()
    shown = (tmp_path / "shown").read_text().splitlines()
    assert shown == ["downloading a jar ..."] * 2 + ["of our own"] + ["ERROR of later"] * 2


def test_a_terminal_that_is_gone_does_no_harm():
    source, end = os.pipe()
    nobody, target = os.pipe()
    os.close(nobody)
    output = StartupOutput(source, target)
    os.write(end, b"downloading a jar\n")
    output.read()
    with pytest.raises(BrokenPipeError):
        os.write(end, b"more\n")
    os.close(end)
    os.close(target)


def fail():
    with held_back():
        print_lines(child(), "one", "two")
        raise KeyboardInterrupt


def test_a_start_that_fails_shows_everything(tmp_path):
    with terminal(tmp_path / "shown"):
        with pytest.raises(KeyboardInterrupt):
            fail()
        os.write(2, b"and later\n")
    assert (tmp_path / "shown").read_text().split("\n") == ["one", "one", "two", "two", "and later", ""]
