"""Functions about all tables."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from procedures.calls.status import StatusRow
from sql_ext.facade.session_access import check_attached, status_rows, table_rows


def metastore_summary(spark: SparkSession) -> DataFrame:
    """One row per Delta table, with its index and its automatic optimization.

    Only the columns that a query uses are computed.

    Args:
        spark: an attached session, or a Spark Connect client whose server is attached.

    Raises:
        UseError: the session is not attached.
    """
    check_attached(spark)
    return table_rows(spark, "system_lake_tables.metastore_summary")


def optimizations(spark: SparkSession) -> DataFrame:
    """The optimizations of all tables; the first column is the full name of the table.

    Args:
        spark: an attached session, or a Spark Connect client whose server is attached.

    Raises:
        UseError: the session is not attached.
    """
    check_attached(spark)
    return table_rows(spark, "system_lake_tables.optimizations")


def fleet(spark: SparkSession) -> DataFrame:
    """The tables that the service looks after, in the order in which the budget goes to them, and sums.

    Args:
        spark: an attached session, or a Spark Connect client whose server is attached.

    Raises:
        UseError: the session is not attached.
    """
    check_attached(spark)
    return table_rows(spark, "system_lake_tables.fleet")


def ingestion(spark: SparkSession) -> DataFrame:
    """The commits of all tables; the first column is the full name of the table.

    Args:
        spark: an attached session, or a Spark Connect client whose server is attached.

    Raises:
        UseError: the session is not attached.
    """
    check_attached(spark)
    return table_rows(spark, "system_lake_tables.ingestion")


def consumption(spark: SparkSession) -> DataFrame:
    """The recorded scans of all tables; the first column is the full name of the table.

    Args:
        spark: an attached session, or a Spark Connect client whose server is attached.

    Raises:
        UseError: the session is not attached.
    """
    check_attached(spark)
    return table_rows(spark, "system_lake_tables.consumption")


def status(spark: SparkSession) -> list[StatusRow]:
    """The runs of the driver, the tables that its service optimizes, and the leases on them.

    Args:
        spark: an attached session, or a Spark Connect client whose server is attached.

    Raises:
        UseError: the session is not attached.
    """
    return status_rows(spark)
