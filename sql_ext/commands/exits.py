"""Exit codes of commands, and errors as one line."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeVar

import click

from catalog.errors import InvalidArgumentError, NotSupportedError, UnknownNameError, UseError, first_line
from catalog.jvm.raised_errors import spark_errors
from sql_ext.commands.output import Row, say

if TYPE_CHECKING:
    from pyspark.errors import AnalysisException

Result = TypeVar("Result")

# Errors of usage. All other errors of USE concern the table or the run.
_USAGE_ERRORS = (InvalidArgumentError, UnknownNameError, NotSupportedError)


class ExitCode(enum.IntEnum):
    """How a command ended."""

    DONE = 0
    """The command finished, or a dry run showed its plan."""
    FAILED = 1
    """An error. Earlier commits stay."""
    USAGE = 2
    """The options are invalid. Nothing was changed."""
    NOTHING_TO_DO = 3
    """There was nothing to do, or another run holds the table's lease. Nothing was written."""
    STOPPED = 4
    """The command was stopped at a boundary between groups. There may be more to do."""


class SuggestedNameError(Exception):
    """An error of Spark about an unknown table, with a similar name.

    Attributes:
        error: the error of Spark.
        name: the similar name.
    """

    def __init__(self, error: AnalysisException, name: str) -> None:
        super().__init__(str(error))
        self.error = error
        self.name = name


def is_stopped(rows: Sequence[Row]) -> bool:
    """Returns whether a report ends because the run was asked to stop."""
    return bool(rows) and rows[-1].get("reason") in ("INTERRUPTED", "CANCELLED")


def exit_codes_text() -> str:
    """Returns the codes in one sentence, for the help of a command."""
    return "Exit codes: " + ", ".join(f"{c.value} {c.name.lower().replace('_', ' ')}" for c in ExitCode) + "."


def guarded(work: Callable[[], Result]) -> Result:
    """Runs a function; turns an error into one line and an exit code."""
    try:
        return work()
    except UseError as error:
        fail(f"{error.code}: {error.message}", ExitCode.USAGE if isinstance(error, _USAGE_ERRORS) else ExitCode.FAILED)
    except SuggestedNameError as suggested:
        fail(f"SPARK: {spark_line(suggested.error)}. Did you mean {suggested.name}?", ExitCode.FAILED)
    except spark_errors() as error:
        line = spark_line(error)
        fail(line if line.startswith("[USE_") else f"SPARK: {line}", ExitCode.FAILED)
    except ConnectionRefusedError:
        fail("SPARK: its JVM has ended; earlier commits stay", ExitCode.FAILED)
    except KeyboardInterrupt:
        fail("INTERRUPTED: stopped at once; uncommitted groups have no effect", ExitCode.FAILED)


def fail(text: str, code: ExitCode = ExitCode.FAILED) -> NoReturn:
    """Prints a line and ends the command."""
    say(text)
    raise click.exceptions.Exit(code)


def spark_line(error: BaseException) -> str:
    """Returns an error of Spark or of the JVM in one line, with its SQLSTATE if there is one."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    from catalog.jvm.java_errors import text_of

    line = text_of(error) if isinstance(error, Py4JJavaError) else first_line(error)
    state = error.getSqlState() if isinstance(error, PySparkException) else None
    return f"{line} SQLSTATE: {state}" if state and "SQLSTATE" not in line else line
