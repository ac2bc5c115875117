"""The classes of errors that Spark raises, in processes that may run without Spark."""

from __future__ import annotations

import sys


def spark_errors() -> tuple[type[Exception], ...]:
    """Returns the classes of errors of Spark and of the JVM; none in a process that has not imported Spark."""
    if "pyspark" not in sys.modules:
        return ()
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError


def file_errors() -> tuple[type[Exception], ...]:
    """Returns the classes of errors of reading and writing files: those of Spark and of the operating system."""
    return *spark_errors(), OSError
