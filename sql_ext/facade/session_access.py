"""Access to a session: procedures as typed rows, virtual and system tables as DataFrames."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from catalog.errors import NotAttachedError
from catalog.jvm.shim_bridge import ShimBridge
from procedures.calls.status import STATUS, StatusRow
from sql_ext.attachment import call, check_running
from sql_ext.facade.operation_methods import rows_of
from sql_ext.remote_calls import is_client


def status_rows(spark: SparkSession, table: str | None = None) -> list[StatusRow]:
    """Returns the rows of ``use.status`` for a table, or for all tables.

    Raises:
        UseError: the session is not attached, or the table is not a Delta table.
    """
    if not is_client(spark):  # a server raises the error itself
        check_attached(spark)
    return rows_of(spark, STATUS, table)


def table_rows(spark: SparkSession, name: str) -> DataFrame:
    """Returns the rows of ``use_catalog.<name>``, which are computed each time they are read.

    Args:
        spark: an attached session, or a client of one.
        name: dotted name, quoted for SQL.

    Raises:
        NotAttachedError: the application of the session has ended.
    """
    check_running(spark)
    return spark.sql(f"SELECT * FROM use_catalog.{name}")


def check_attached(spark: SparkSession) -> None:
    """Raises an error if the session is not attached.

    Raises:
        NotAttachedError: its application is not attached, has ended, or was created without the settings of USE.
    """
    if is_client(spark):
        call(spark, "help", procedure="help")
        return
    check_running(spark)
    if not ShimBridge(spark).is_attached():
        raise NotAttachedError.here()
