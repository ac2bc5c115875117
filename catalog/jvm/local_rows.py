"""Rows that Python has computed, as a DataFrame that is read without a Spark job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from catalog.jvm.java_errors import despite_interrupt
from catalog.jvm.session import same_active_session


def local_data_frame(spark: SparkSession, rows: Iterable[Sequence[Any]], schema: str | StructType) -> DataFrame:
    """Returns rows as a DataFrame over a local relation.

    A DataFrame that Spark makes of a list of Python rows is an RDD, whose rows cost a job. Spark keeps an Arrow table
    of up to 48 MB (``spark.sql.execution.arrow.localRelationThreshold``) as a local relation.

    Args:
        spark: session of the DataFrame.
        rows: the values of each row, in the order of the columns. Timestamps have a time zone.
        schema: the columns, as DDL or as a type.
    """
    # The static type of what fromDDL returns is that of any data type.
    columns: Any = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    arrow = _arrow_schema(columns)
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    arrays = [pa.array(map(_entries, column), field.type) for column, field in zip(values, arrow, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=arrow)
    with same_active_session():
        # Spark hands the rows over in a file, and a thread that is asked to stop cannot read files.
        return despite_interrupt(spark, lambda: spark.createDataFrame(table, schema=columns))


def _arrow_schema(columns: StructType) -> pa.Schema:
    # Before Spark 4.2, UTC is the only time zone.
    zone: Any = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    return to_arrow_schema(columns, **zone)


def _entries(value: Any) -> Any:
    """A map as Arrow takes it; other values as they are."""
    return list(value.items()) if isinstance(value, Mapping) else value
