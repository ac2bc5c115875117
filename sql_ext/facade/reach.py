"""How the facade reaches a session: procedures as typed rows, tables of ours as DataFrames."""

from __future__ import annotations

from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession

from catalog.errors import NotAttachedError
from catalog.jvm.shim_bridge import ShimBridge
from procedures.result_rows import StatusRow
from sql_ext.attachment import call
from sql_ext.facade.rows import typed_rows
from sql_ext.remote_calls import is_client

_Row = TypeVar("_Row")


def report(spark: SparkSession, kind: type[_Row], procedure: str, **arguments: Any) -> list[_Row]:
    """Calls a procedure and returns its rows.

    Args:
        spark: an attached session, or a client of one.
        kind: dataclass of the rows.
        procedure: its name.
        **arguments: as in SQL.

    Raises:
        UseError: a refusal or failure.
    """
    return typed_rows(kind, call(spark, procedure, **arguments))


def status_rows(spark: SparkSession, table: str | None = None) -> list[StatusRow]:
    """What ``use.status`` shows of a table, of all when left out.

    Raises:
        UseError: the session is not attached, or the table is none that can be worked on.
    """
    if not is_client(spark):  # of a client, the server says so itself
        check_attached(spark)
    return report(spark, StatusRow, "status", table=table)


def table_rows(spark: SparkSession, name: str) -> DataFrame:
    """Rows of ``use_catalog.<name>``; they are computed when they are read, anew each time.

    Args:
        spark: an attached session, or a client of one.
        name: dotted, quoted as SQL reads it.
    """
    return spark.sql(f"SELECT * FROM use_catalog.{name}")


def check_attached(spark: SparkSession) -> None:
    """Refuses a session whose SQL does not reach us.

    Raises:
        NotAttachedError: its application is not attached, or was created without our settings.
    """
    if is_client(spark):
        call(spark, "help", procedure="help")
        return
    if not ShimBridge(spark).is_attached():
        raise NotAttachedError.here()
