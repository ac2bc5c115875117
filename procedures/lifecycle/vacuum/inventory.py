"""Inventories: tables that list the files which exist, so that a vacuum needs no listing."""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from catalog.errors import InvalidArgumentError
from catalog.jvm.files import is_plain_folder
from catalog.jvm.java_errors import one_line, text_of

_COLUMNS = {"path": "string", "length": "bigint", "isDir": "boolean", "modificationTime": "bigint"}
_ACCEPTED = (
    "a table, or the path of a Delta or Parquet table, with the columns path STRING, length BIGINT, isDir BOOLEAN and "
    "modificationTime BIGINT (epoch milliseconds)"
)
_PATH = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*:)?/.*")


def read_inventory(spark: SparkSession, name: str) -> DataFrame:
    """Returns the rows of an inventory, with the columns that Delta's vacuum needs.

    Args:
        spark: session of the work.
        name: table, or path of a Delta or Parquet table.

    Raises:
        InvalidArgumentError: it does not exist, cannot be read, or lacks a column of the right type.
    """
    try:
        data = _read(spark, name)
        types = dict(data.dtypes)
    except (PySparkException, Py4JJavaError) as error:
        raise _refused(name, f"it cannot be read: {one_line(text_of(error)).rstrip('.')}") from error
    for column, wanted in _COLUMNS.items():
        if column not in types:
            raise _refused(name, f"it has no column {column}")
        if types[column] != wanted:
            raise _refused(name, f"its column {column} is {types[column].upper()}")
    return data.select(*_COLUMNS)


def _read(spark: SparkSession, name: str) -> DataFrame:
    if not _PATH.fullmatch(name):
        return spark.table(name)
    return spark.read.format("parquet" if is_plain_folder(spark, name) else "delta").load(name)


def _refused(name: str, problem: str) -> InvalidArgumentError:
    return InvalidArgumentError.of("inventory", name, f"{_ACCEPTED} is expected; {problem}")
