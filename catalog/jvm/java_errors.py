"""Translates errors of Spark, Delta and Hadoop into typed errors: one line, a code and a hint."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from catalog.errors import FileSystemError, IndexUnreadableError, SparkFailedError, TableError, UseError, first_line
from catalog.jvm.java_values import JavaValue
from catalog.jvm.session import forget_interrupt, interrupted
from otree.errors import IndexFormatError

logger = logging.getLogger(__name__)

T = TypeVar("T")

_MOST_CAUSES = 20
_LONGEST = 400
_CLASS_NAME = re.compile(r"(?:\b[a-z_$][\w$]*\.)+[A-Z][\w$]*(?:Exception|Error)(?::\s+|\s*$)")
_CONDITION = re.compile(r"^\[[A-Z][A-Z0-9_.]*\]\s*")
_STATE = re.compile(r"\s*SQLSTATE: [0-9A-Z]{5}(?:; line \d+,? pos \d+)?\s*$")
# What follows the sentence: the statement with a mark below the place, the plan, or a stack.
_REST = re.compile(r"\s*(?:== SQL|== DataFrame|;\s*line \d+ pos \d+|;?\n'?[A-Z]\w+ |\n\tat |\nJVM stacktrace)")
_CANCELLED = ("InterruptedException", "InterruptedIOException", "ClosedByInterruptException", "CancellationException")
_NO_CONNECTOR = re.compile(r"Class (\S+) not found")
_NO_ANSWER = ("ConnectException", "ConnectTimeoutException", "NoRouteToHostException", "SocketTimeoutException",
              "SocketException", "PortUnreachableException", "FTPConnectionClosedException", "RpcException",
              "RemoteException")  # fmt: skip
_METASTORE = ("HiveException", "MetaException", "TTransportException", "SQLException")
_CHANNEL = re.compile(r"[.;]? ch : .*")
# All of Delta's "another writer was first" errors descend from it; Delta raises them before it writes the log entry.
_CONFLICT = "io.delta.exceptions.DeltaConcurrentModificationException"
# Once an application imports the Python package of Delta, PySpark raises conflicts as exceptions of this module, which
# has no others. They have no exception of the JVM.
_DELTA_CONFLICTS = "delta.exceptions.base"
_DENIED = ("AccessControlException", "AccessDeniedException", "HadoopAccessControlException")


@dataclass(frozen=True)
class Cause:
    """An exception of the JVM.

    Attributes:
        kind: simple name of its class.
        text: its message; '' without one.
        condition: its error condition, where it has one.
        sql_state: likewise.
    """

    kind: str
    text: str
    condition: str | None = None
    sql_state: str | None = None


def java_error(error: BaseException) -> JavaValue | None:
    """The JVM exception behind a Python one, or None."""
    if isinstance(error, Py4JJavaError):
        return error.java_exception
    return getattr(error, "_origin", None)


def is_conflict(error: BaseException) -> bool:
    """Whether Delta rejected a commit because of a conflict with another one."""
    if any(base.__module__ == _DELTA_CONFLICTS for base in type(error).__mro__):
        return True
    java = java_error(error)
    kind = java.getClass() if java is not None else None
    while kind is not None:
        if kind.getName() == _CONFLICT:
            return True
        kind = kind.getSuperclass()
    return False


def is_stack_overflow(error: BaseException) -> bool:
    """Whether the JVM ran out of stack."""
    return "java.lang.StackOverflowError" in first_line(error) + str(getattr(error, "java_exception", ""))


def one_line(text: str) -> str:
    """The message in a text of Spark or the JVM, without condition, state, class name, statement, plan and stack."""
    sentence = _REST.split(_CLASS_NAME.sub("", text).strip(), maxsplit=1)[0]
    sentence = " ".join(_STATE.sub("", _CONDITION.sub("", sentence)).split())
    return sentence if len(sentence) <= _LONGEST else f"{sentence[:_LONGEST]}…"


def causes_of(error: BaseException) -> list[Cause]:
    """An exception and its causes, the outermost first."""
    java = java_error(error)
    if java is None:
        condition, state = (
            (error.getCondition(), error.getSqlState()) if isinstance(error, PySparkException) else (None, None)
        )
        return [Cause(type(error).__name__, str(error), condition, state)]
    causes: list[Cause] = []
    while java is not None and len(causes) < _MOST_CAUSES:
        name = str(java.getClass().getName())
        causes.append(Cause(re.split(r"[.$]", name)[-1], str(java.getMessage() or ""), *_condition_of(java)))
        java = java.getCause()
    return causes


def _condition_of(java: JavaValue) -> tuple[str | None, str | None]:
    try:
        return java.getCondition(), java.getSqlState()
    except (Py4JError, TypeError):
        return None, None  # only exceptions of Spark's have one


def is_cancellation(causes: Sequence[Cause]) -> bool:
    """Whether the work was cancelled."""
    return any(c.kind in _CANCELLED or c.condition == "SPARK_JOB_CANCELLED" for c in causes)


def file_system_trouble(causes: Sequence[Cause]) -> str | None:
    """What is wrong with a file system, and what to do; None for other errors. Pure."""
    if _of_metastore(causes):
        return None
    for cause in causes:
        text = one_line(cause.text)
        missing = _NO_CONNECTOR.search(cause.text) if cause.kind == "ClassNotFoundException" else None
        if missing is not None and ".fs." in missing[1]:
            return f"Spark has no connector for it, {missing[1]}: add its package to spark.jars.packages"
        if text == 'No FileSystem for scheme "null"':
            return "Hadoop takes what follows two slashes at the beginning for a host: begin the path with one slash"
        if cause.kind == "UnsupportedFileSystemException":
            return f"{text}: check the scheme, or add its connector to spark.jars.packages"
        if cause.kind == "UnknownHostException":
            return f"there is no host {text.split(':')[0] or 'of this name'}: check the name of the server"
        if cause.kind in _NO_ANSWER:
            inner = next(_CHANNEL.sub("", one_line(c.text)) for c in reversed(causes) if c.kind in _NO_ANSWER)
            return f"its server does not answer ({inner or 'no connection'}): check host, port and network"
        if cause.kind in _DENIED:
            return f"it denies access ({text}): give this user the right to it"
        if text.startswith("Wrong FS:"):
            return "the path names a host that this file system does not have: leave the host out"
        if text.startswith("Incomplete HDFS URI"):
            return "the path names no host and the default file system is another: write hdfs://host:port/path"
    return None


def _of_metastore(causes: Sequence[Cause]) -> bool:
    return any(cause.kind in _METASTORE for cause in causes)


def table_failure(name: str, causes: Sequence[Cause]) -> UseError:
    """Why a table cannot be read; pure.

    Args:
        name: as the user gave it.
        causes: see ``causes_of``.
    """
    trouble = file_system_trouble(causes)
    if trouble is None and causes and causes[-1].kind == "UnsupportedOperationException":
        trouble = "it has no folders that could hold a table: use a file system such as file, hdfs or s3a"
    if trouble is not None:
        return FileSystemError.of(name, trouble)
    return failure(causes) if _of_metastore(causes) else TableError.unreadable(name, _summary(causes))


def failure(causes: Sequence[Cause]) -> UseError:
    """The typed form of an error of Spark or the JVM; its condition, if any, becomes the code. Pure."""
    trouble = file_system_trouble(causes)
    if trouble is not None:
        return FileSystemError(f"A file system cannot be used: {trouble}.")
    known = next((c for c in causes if c.condition), None)
    if known is not None and one_line(known.text):
        return UseError(one_line(known.text), code=known.condition, sql_state=known.sql_state)
    return SparkFailedError.of(_summary(causes))


def text_of(error: BaseException) -> str:
    """The message of an error, in one line and without its code."""
    return error.message if isinstance(error, UseError) else _summary(causes_of(error))


def _summary(causes: Sequence[Cause]) -> str:
    """The outermost message, followed by the innermost one if it says more."""
    texts = [text for text in (one_line(cause.text) for cause in causes) if text]
    if not texts:
        return f"it says only {causes[0].kind}" if causes else "it says nothing"
    outer, inner = texts[0].rstrip(".?!"), texts[-1].rstrip(".?!")
    return outer if inner in outer else f"{outer} ({inner})"


def known_error(error: BaseException) -> UseError:
    """The error itself if it is a ``UseError``, else a ``UseError`` with the same message in one line."""
    if isinstance(error, UseError):
        return error
    if isinstance(error, (PySparkException, Py4JJavaError)):
        return failure(causes_of(error))
    if isinstance(error, IndexFormatError):
        return IndexUnreadableError(str(error))
    return UseError(f"{type(error).__name__}: {first_line(error)}")


@contextmanager
def looking_at(name: str) -> Iterator[None]:
    """Turns JVM exceptions inside the block into errors of the table.

    Args:
        name: as the user gave it.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        causes = causes_of(error)
        if is_cancellation(causes):
            raise
        logger.debug("%s cannot be read", name, exc_info=True)
        raise table_failure(name, causes) from error


@contextmanager
def as_one_line(spark: SparkSession) -> Iterator[None]:
    """Turns errors of the JVM and of the index inside the block into a ``UseError``, except a cancelled statement."""
    try:
        yield
    except IndexFormatError as error:
        raise known_error(error) from error
    except (PySparkException, Py4JJavaError) as error:
        causes = causes_of(error)
        if is_cancellation(causes) or interrupted(spark):
            raise
        logger.debug("Spark failed", exc_info=True)
        raise failure(causes) from error


def despite_interrupt(spark: SparkSession, work: Callable[[], T]) -> T:
    """Does short work that must be finished though the calling JVM thread is asked to stop.

    Args:
        spark: session whose thread does the work.
        work: may be done twice.
    """
    try:
        return work()
    except (PySparkException, Py4JJavaError) as error:
        if not (is_cancellation(causes_of(error)) and forget_interrupt(spark)):
            raise
        return work()
