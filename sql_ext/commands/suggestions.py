"""Suggestions for names that Spark does not know: tables, and virtual tables of a table."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from catalog.similar_names import nearest_name
from catalog.sql_names import name_parts, quoted
from catalog.table.near_names import near_table
from catalog.virtual_tables import VIRTUAL_TABLES

# Where these errors have the name: the second one is about a name with a database and a virtual table.
_NAMES = {"TABLE_OR_VIEW_NOT_FOUND": "relationName", "REQUIRES_SINGLE_PART_NAMESPACE": "identifier"}


def suggestion(spark: SparkSession, error: AnalysisException) -> str | None:
    """Returns the name that the user probably meant; None if there is none.

    Args:
        spark: session in which the statement failed.
        error: the error of Spark.
    """
    name = (error.getMessageParameters() or {}).get(_NAMES.get(error.getCondition() or "", ""), "")
    parts = name_parts(name)
    view = nearest_name(parts[-1], VIRTUAL_TABLES, 0.6) if len(parts) > 1 else None
    table = ".".join(map(quoted, parts[:-1]))
    if view is not None and spark.catalog.tableExists(table):
        return f"{table}.{view}"
    return near_table(spark, name)
