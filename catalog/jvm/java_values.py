"""Converts values between Python and the JVM; for the classes of this package only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

JavaValue: TypeAlias = Any
"""A value of the JVM behind Py4J, which has no types."""


def jvm(spark: SparkSession) -> JavaValue:
    """Returns the Py4J view of the JVM behind ``spark``."""
    return spark._jvm


def java_class(spark: SparkSession, name: str) -> JavaValue:
    """Returns a class of the JVM.

    A look for its packages one by one would search all jars for classes of these names, which takes 4 ms each.

    Args:
        spark: any session.
        name: with all packages.
    """
    # Py4J asks the JVM again each time.
    known = jvm(spark).__dict__.setdefault("use_classes", {})
    if name not in known:
        known[name] = getattr(jvm(spark), name)
    return known[name]


def jvm_session(spark: SparkSession) -> JavaValue:
    """Returns the JVM session behind ``spark``."""
    return spark._jsparkSession


def data_frame(java_data: JavaValue, spark: SparkSession) -> DataFrame:
    """Wraps a JVM DataFrame."""
    return ClassicDataFrame(java_data, spark)


def java_data(data: DataFrame) -> JavaValue:
    """Returns the JVM DataFrame behind ``data``."""
    return data._jdf


def java_column(column: Column) -> JavaValue:
    """Returns the JVM column behind ``column``."""
    return column._jc


def java_list(spark: SparkSession, values: Iterable[JavaValue]) -> JavaValue:
    """Makes a ``java.util.List`` of strings, numbers or Java objects."""
    made = java_class(spark, "java.util.ArrayList")()
    for value in values:
        made.add(value)
    return made


def java_columns(spark: SparkSession, columns: Iterable[Column]) -> JavaValue:
    """Makes a ``java.util.List`` of columns."""
    return java_list(spark, map(java_column, columns))


def java_map(spark: SparkSession, entries: Mapping[str, JavaValue]) -> JavaValue:
    """Makes a ``java.util.Map`` of strings to strings or Java objects."""
    made = java_class(spark, "java.util.HashMap")()
    for key, value in entries.items():
        made.put(key, value)
    return made


def java_maps(spark: SparkSession, entries: Mapping[str, Mapping[str, str]]) -> JavaValue:
    """Makes a ``java.util.Map`` of strings to maps of strings."""
    return java_map(spark, {key: java_map(spark, pairs) for key, pairs in entries.items()})
