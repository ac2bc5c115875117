"""Spark sessions as we use them: the JVM behind one, and a private copy for work with settings of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from catalog.jvm.java_values import java_class, jvm_session
from catalog.properties.session_settings import PRUNING_ENABLED, SAMPLING_ENABLED

TIME_ZONE_KEY = "spark.sql.session.timeZone"

_WRITE_SETTINGS = {
    # One Spark partition is one file: nothing may merge or re-shuffle what the layout decided.
    # Rows lie along a curve in their file: with small pages, a range filter skips most of a file by its page index.
    "parquet.page.row.count.limit": "5000",
    # The older form of timestamps has no minima and maxima in a page index; this one also takes years before 1900.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.databricks.delta.optimizeWrite.enabled": "false",
}
_WORK_SETTINGS = {
    **_WRITE_SETTINGS,
    # The blocks of a file are noted beside its statistics.
    "spark.databricks.delta.stats.collect": "true",
    # Auto compaction after our commit would write the files again, without their tags.
    "spark.databricks.delta.autoCompact.enabled": "false",
    # A rewrite reads exactly the files of its plan, never through the rules for queries.
    SAMPLING_ENABLED.name: "false",
    PRUNING_ENABLED.name: "false",
}


def work_session(spark: SparkSession) -> SparkSession:
    """Returns a copy of the session with the settings that rewriting needs; the user's session stays as it is."""
    clone = SparkSession(spark.sparkContext, jvm_session(spark).cloneSession())
    for key, value in _WORK_SETTINGS.items():
        clone.conf.set(key, value)
    return clone


def write_session(spark: SparkSession) -> SparkSession:
    """Returns a copy of the session that writes as a layout asks, and reads as the user's session does."""
    clone = SparkSession(spark.sparkContext, jvm_session(spark).cloneSession())
    for key, value in _WRITE_SETTINGS.items():
        clone.conf.set(key, value)
    return clone


def activate(spark: SparkSession) -> None:
    """Makes the session the active one of the calling thread in the JVM, where Delta reads its settings."""
    java_class(spark, "org.apache.spark.sql.SparkSession").setActiveSession(jvm_session(spark))


def has_jvm(spark: SparkSession) -> bool:
    """Whether the session works in a JVM of this driver; a Spark Connect client has none."""
    return hasattr(spark, "_jsparkSession")


def is_stopped(context: SparkContext) -> bool:
    """Whether somebody has stopped the context, or is stopping it."""
    if context._jsc is None:
        return True
    try:
        return bool(context._jsc.sc().isStopped())
    except (Py4JError, OSError):
        return True  # its JVM is gone


def set_system_property(spark: SparkSession, name: str, value: str) -> None:
    """Sets a system property of the JVM."""
    java_class(spark, "java.lang.System").setProperty(name, value)


def give_jars_to_executors(spark: SparkSession) -> None:
    """Gives executors the jars of packages where pyspark has hidden them.

    Spark's launcher adds what it resolves for ``spark.jars.packages`` to ``spark.jars``, as the JVM's properties have
    it. Pyspark then sets the builder's own ``spark.jars`` over that: executors would get the shim without Delta.
    """
    context = spark.sparkContext._jsc.sc()
    if context.isLocal():  # the driver's own class loader has them
        return
    known = {PurePosixPath(jar).name for jar in context.listJars().mkString(",").split(",")}
    resolved = java_class(spark, "java.lang.System").getProperty("spark.jars", "") or ""
    for jar in resolved.split(","):
        if jar and PurePosixPath(jar).name not in known:
            context.addJar(jar)


@contextmanager
def described_jobs(spark: SparkSession, description: str) -> Iterator[None]:
    """Gives the Spark jobs started inside the block a readable description, as seen in Spark's UI."""
    context = spark.sparkContext
    before = context.getLocalProperty("spark.job.description")
    context.setLocalProperty("spark.job.description", description)
    try:
        yield
    finally:
        context.setLocalProperty("spark.job.description", before)  # type: ignore[arg-type]


def interrupted(spark: SparkSession) -> bool:
    """Whether the calling JVM thread was asked to stop, as a cancelled JDBC statement asks."""
    return bool(java_class(spark, "org.apache.spark.sql.usespark.CallbackThreads").stopAsked())
