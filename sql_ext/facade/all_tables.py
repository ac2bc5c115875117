"""What is known of all tables."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from procedures.result_rows import StatusRow
from sql_ext.facade.reach import check_attached, status_rows, table_rows


def metastore_summary(spark: SparkSession) -> DataFrame:
    """One row per Delta table, with its index and its automatic optimization.

    Only the columns that are read are computed.

    Args:
        spark: an attached session, or a Spark Connect client whose server is attached.

    Raises:
        UseError: the session is not attached.
    """
    check_attached(spark)
    return table_rows(spark, "system_lake_tables.metastore_summary")


def optimizations(spark: SparkSession) -> DataFrame:
    """The optimizations of all tables, with the full name of each table in front.

    Args:
        spark: an attached session, or a Spark Connect client whose server is attached.

    Raises:
        UseError: the session is not attached.
    """
    check_attached(spark)
    return table_rows(spark, "system_lake_tables.optimizations")


def status(spark: SparkSession) -> list[StatusRow]:
    """The runs of the driver, the tables that its service takes care of, and the leases on them.

    Args:
        spark: an attached session, or a Spark Connect client whose server is attached.

    Raises:
        UseError: the session is not attached.
    """
    return status_rows(spark)
