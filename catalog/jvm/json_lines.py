"""Files with one JSON object per line as a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from catalog.jvm.java_values import data_frame, java_class, java_data, jvm_session
from catalog.jvm.session import listing_session

# A file that was deleted, or that is not an event, must not make the others unreadable.
_TOLERANT: Mapping[str, str | bool] = {
    "mode": "PERMISSIVE",
    "ignoreMissingFiles": True,
    "ignoreCorruptFiles": True,
}


def json_reader(spark: SparkSession, schema: str) -> DataFrameReader:
    """Returns a reader of JSON for which brackets and stars in the name of a folder are not patterns.

    Args:
        spark: session of the DataFrame.
        schema: in SQL.
    """
    return spark.read.schema(schema).option("__globPaths__", "false")


def json_lines(spark: SparkSession, files: Sequence[str], schema: str) -> DataFrame:
    """Returns the objects in files; fields that a line lacks, or that have another type, are null.

    Args:
        spark: session of the DataFrame.
        files: URIs, at least one.
        schema: in SQL.
    """
    lines = json_reader(listing_session(spark), schema).options(**_TOLERANT).json(list(files))
    plan = java_data(lines).queryExecution().analyzed()
    return data_frame(java_class(spark, "org.apache.spark.sql.classic.Dataset").ofRows(jvm_session(spark), plan), spark)
