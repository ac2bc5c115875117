"""Reads of files that other processes delete: commits that a purge takes, records that are merged or too old."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from catalog.jvm.java_errors import causes_of

T = TypeVar("T")

_TIMES = 3
_VANISHED = frozenset({"FAILED_READ_FILE.FILE_NOT_EXIST", "PATH_NOT_FOUND"})


def read_again(read: Callable[[], T], times: int = _TIMES) -> T:
    """Reads files, and again if one of them was deleted after the folder was listed.

    Args:
        read: lists the folder and reads its files.
        times: how often at most.
    """
    try:
        return read()
    except (PySparkException, Py4JJavaError) as error:
        if times <= 1 or _VANISHED.isdisjoint(cause.condition for cause in causes_of(error)):
            raise
    return read_again(read, times - 1)
