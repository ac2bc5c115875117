"""Access to a session: procedures as typed rows, virtual and system tables as DataFrames."""

from __future__ import annotations

from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession

from catalog.errors import NotAttachedError
from catalog.jvm.shim_bridge import ShimBridge
from procedures.calls.registry import procedures
from procedures.declare.declaration import DETAILS
from procedures.declare.result_rows import PlanRow, StatusRow
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
        UseError: the procedure failed or rejected an argument.
    """
    declared = procedures().get(procedure)
    if declared is not None and declared.short:
        arguments[DETAILS] = True
    return typed_rows(kind, call(spark, procedure, **arguments))


def consolidation_plan(
    spark: SparkSession, table: str, max_file_bytes: int, columns: str | None, where: str | None, *, store: bool
) -> list[PlanRow]:
    """Returns the rows of ``use.plan``; see ``Inspect.consolidation_plan``."""
    arguments = {"table": table, "max_file_bytes": max_file_bytes, "columns": columns, "where": where, "store": store}
    return report(spark, PlanRow, "plan", **arguments)


def status_rows(spark: SparkSession, table: str | None = None) -> list[StatusRow]:
    """Returns the rows of ``use.status`` for a table, or for all tables.

    Raises:
        UseError: the session is not attached, or the table is not a Delta table.
    """
    if not is_client(spark):  # a server raises the error itself
        check_attached(spark)
    return report(spark, StatusRow, "status", table=table)


def table_rows(spark: SparkSession, name: str) -> DataFrame:
    """Returns the rows of ``use_catalog.<name>``, which are computed each time they are read.

    Args:
        spark: an attached session, or a client of one.
        name: dotted name, quoted for SQL.
    """
    return spark.sql(f"SELECT * FROM use_catalog.{name}")


def check_attached(spark: SparkSession) -> None:
    """Raises an error if the session is not attached.

    Raises:
        NotAttachedError: its application is not attached, or was created without the settings of USE.
    """
    if is_client(spark):
        call(spark, "help", procedure="help")
        return
    if not ShimBridge(spark).is_attached():
        raise NotAttachedError.here()
