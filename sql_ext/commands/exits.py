"""How commands end: exit codes, and errors as one line."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import NoReturn, TypeVar

import click
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from catalog.errors import InvalidArgumentError, NotSupportedError, UnknownNameError, UseError, first_line
from catalog.jvm.java_errors import text_of
from sql_ext.commands.output import say

Result = TypeVar("Result")

# Wrong arguments, wherever they are noticed; the others of our errors are of the table or the run.
_USAGE_ERRORS = (InvalidArgumentError, UnknownNameError, NotSupportedError)


class ExitCode(enum.IntEnum):
    """How a command ended."""

    DONE = 0
    """What was asked for was done, or planned by a dry run."""
    FAILED = 1
    """An error; what was committed before it stays."""
    USAGE = 2
    """The options are wrong; nothing was touched."""
    NOTHING_TO_DO = 3
    """There was nothing to work on, or another run holds the table's lease; nothing was written."""
    STOPPED = 4
    """It was asked to stop and ended at a boundary between groups; more may remain."""


def exit_codes_text() -> str:
    """The codes in one sentence, for the help of a command."""
    return "Exit codes: " + ", ".join(f"{c.value} {c.name.lower().replace('_', ' ')}" for c in ExitCode) + "."


def guarded(work: Callable[[], Result]) -> Result:
    """Does it; an error becomes one line and an exit code."""
    try:
        return work()
    except UseError as error:
        fail(f"{error.code}: {error.message}", ExitCode.USAGE if isinstance(error, _USAGE_ERRORS) else ExitCode.FAILED)
    except (PySparkException, Py4JError) as error:
        fail(f"SPARK: {spark_line(error)}", ExitCode.FAILED)
    except KeyboardInterrupt:
        fail("INTERRUPTED: ended at once; groups that were not committed changed nothing", ExitCode.FAILED)


def fail(text: str, code: ExitCode = ExitCode.FAILED) -> NoReturn:
    """Says the line and ends the command."""
    say(text)
    raise click.exceptions.Exit(code)


def spark_line(error: BaseException) -> str:
    """An error of Spark's or of the JVM's in one line, with its SQLSTATE where it has one."""
    line = text_of(error) if isinstance(error, Py4JJavaError) else first_line(error)
    state = error.getSqlState() if isinstance(error, PySparkException) else None
    return f"{line} SQLSTATE: {state}" if state and "SQLSTATE" not in line else line
