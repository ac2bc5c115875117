"""Spark sessions: the JVM session behind one, and private copies with the settings of a rewrite or a write."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePosixPath

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from catalog.jvm.java_values import java_class, jvm_session
from catalog.settings.session_settings import PRUNING_ENABLED, RECORDING_ENABLED, SAMPLING_ENABLED
from otree.pages import LEAST_PAGE_BYTES, MOST_PAGE_ROWS, PAGE_ROWS

TIME_ZONE_KEY = "spark.sql.session.timeZone"
PAGE_ROWS_KEY = "parquet.page.row.count.limit"
# Names of columns as JSON. The shim reads this and the other settings of pages (ColumnPages.scala).
SORTED_COLUMNS_KEY = "use.pages.sortedColumns"
MOST_ROWS_KEY = "spark.sql.files.maxRecordsPerFile"

_WRITE_SETTINGS = {
    # One Spark partition is one file: nothing may merge or re-shuffle what the layout decided.
    # Rows lie along a curve in their file: with small pages, a range filter skips most of a file by its page index.
    PAGE_ROWS_KEY: str(PAGE_ROWS),
    "use.pages.leastBytes": str(LEAST_PAGE_BYTES),
    "use.pages.mostRows": str(MOST_PAGE_ROWS),
    # The older form of timestamps has no minima and maxima in a page index; this one also takes years before 1900.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.databricks.delta.optimizeWrite.enabled": "false",
}
_STRICT_SETTINGS = {
    # Rows of a file that cannot be read would be lost.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
_WORK_SETTINGS = {
    **_WRITE_SETTINGS,
    **_STRICT_SETTINGS,
    # The blocks of a file are noted beside its statistics.
    "spark.databricks.delta.stats.collect": "true",
    # Auto compaction after our commit would write the files again, without their tags.
    "spark.databricks.delta.autoCompact.enabled": "false",
    # Values of CHAR stay as they are stored, which is not always with their padding.
    "spark.sql.readSideCharPadding": "false",
    # Names in files may differ from those of the table in their case, as after a conversion; else, they read as NULL.
    "spark.sql.caseSensitive": "false",
    # A struct without any of its fields in a file is a struct.
    "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": "false",
    # Columns that are found by their ids are NULL in a file without ids, or an error.
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    # Otherwise the values of a partition depend on the time zone of the session that wrote them.
    "spark.databricks.delta.write.utcTimestampPartitionValues": "true",
    # A rewrite reads exactly the files of its plan, never through the rules for queries.
    SAMPLING_ENABLED.name: "false",
    PRUNING_ENABLED.name: "false",
    # Only reads of users count.
    RECORDING_ENABLED.name: "false",
}
# Work on no more bytes than this does without adaptive execution.
_LITTLE_BYTES = 64_000_000
# How values are read that may be of either calendar. Nobody can tell what they are to other sessions.
_CALENDAR_KEYS = ("spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.parquet.int96RebaseModeInRead")
_BYTES_PER_PARTITION = 4_000_000
# Compiling Java for the expressions of a query takes longer than evaluating them for so few bytes of rows.
_FEW_BYTES = 200_000
_WITHOUT_COMPILATION = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def _copy(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A copy of the session with other settings; the user's session stays as it is."""
    copy = SparkSession(spark.sparkContext, jvm_session(spark).cloneSession())
    for key, value in settings.items():
        copy.conf.set(key, value)
    return copy


def work_session(spark: SparkSession, most_bytes: int | None = None) -> SparkSession:
    """Returns a copy of the session with the settings that rewriting needs; the user's session stays as it is.

    Args:
        spark: session of the caller.
        most_bytes: bytes that the work reads, where that is known; see ``reading_session``.
    """
    clone = _copy(spark, _WORK_SETTINGS)
    for key in _CALENDAR_KEYS:
        # Spark knows the setting by a former name, too, takes its value in any case, and returns it as it was set.
        names = key, key.replace("spark.sql.", "spark.sql.legacy.")
        mode = next((value for value in (clone.conf.get(name, None) for name in names) if value), "")
        if mode.upper() == "LEGACY":
            clone.conf.set(key, "EXCEPTION")
    if most_bytes is not None:
        _scale_down(clone, most_bytes)
    if most_bytes is not None and most_bytes <= _FEW_BYTES:
        for key, value in _WITHOUT_COMPILATION.items():
            clone.conf.set(key, value)
    return clone


def reading_session(spark: SparkSession, most_bytes: int) -> SparkSession:
    """Returns a copy of the session for a query of its user, with fewer Spark jobs and tasks where it reads a little.

    Args:
        spark: session of the caller.
        most_bytes: bytes that the query reads.
    """
    clone = _copy(spark, {})
    _scale_down(clone, most_bytes)
    return clone


def _scale_down(spark: SparkSession, most_bytes: int) -> None:
    """Shuffles a little into few partitions without adaptive execution, which makes a Spark job of every exchange."""
    if most_bytes <= _LITTLE_BYTES:
        spark.conf.set("spark.sql.adaptive.enabled", "false")
        _limit(spark, "spark.sql.shuffle.partitions", 1 + most_bytes // _BYTES_PER_PARTITION)


def _limit(spark: SparkSession, key: str, most: int, default: int = 200) -> None:
    """Lowers a number among the settings of a session; ``default`` is what Spark uses where it is not set."""
    if most < int(spark.conf.get(key, None) or default):
        spark.conf.set(key, str(most))


def strict_session(spark: SparkSession) -> SparkSession:
    """Returns a copy of the session that fails at files that cannot be read, whatever its user has set."""
    return _copy(spark, _STRICT_SETTINGS)


def write_session(spark: SparkSession) -> SparkSession:
    """Returns a copy of the session that writes with the settings of a layout and reads with those of the user."""
    return _copy(spark, _WRITE_SETTINGS)


def listing_session(spark: SparkSession) -> SparkSession:
    """Returns a copy of the session that does not keep the status of the files that it reads.

    Spark keeps it for each path of a DataFrame, up to 250 MB of the driver's heap. Files of ours, and those of the log,
    have new names all the time.
    """
    clone = _copy(spark, {})
    clone.conf.set("spark.sql.hive.filesourcePartitionFileCacheSize", "0")
    return clone


def metadata_session(spark: SparkSession, log_bytes: int) -> SparkSession:
    """Returns a copy of the session that reads the list of files of a small log in one Spark job.

    Adaptive execution makes a job of every exchange, and Delta replays a log in 50 partitions, however small it is.

    Args:
        spark: session of the caller.
        log_bytes: bytes of the log that is read.
    """
    clone = listing_session(spark)
    clone.conf.set("spark.sql.adaptive.enabled", "false")
    # Delta's default is 50.
    _limit(clone, "spark.databricks.delta.snapshotPartitions", 1 + log_bytes // _BYTES_PER_PARTITION, 50)
    return clone


def activate(spark: SparkSession) -> None:
    """Makes the session the active one of the calling thread in the JVM, where Delta reads its settings."""
    java_class(spark, "org.apache.spark.sql.SparkSession").setActiveSession(jvm_session(spark))


def acts_for_another_user(spark: SparkSession) -> bool:
    """Whether the calling JVM thread has rights that new threads of Python do not have, as with impersonation.

    The user of the process alone does not tell: a whole driver may run for another one, as with ``--proxy-user``.
    """
    users = java_class(spark, "org.apache.hadoop.security.UserGroupInformation")

    def user() -> str:
        return str(users.getCurrentUser().getShortUserName())

    own = user()
    if own == users.getLoginUser().getShortUserName():
        return False
    of_thread: list[str] = []
    thread = threading.Thread(target=lambda: of_thread.append(user()), name="use-user")
    thread.start()
    thread.join()
    return of_thread != [own]


def has_jvm(spark: SparkSession) -> bool:
    """Whether the session works in a JVM of this driver; a Spark Connect client has none."""
    return hasattr(spark, "_jsparkSession")


def is_stopped(context: SparkContext) -> bool:
    """Whether the context is stopped or stopping."""
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


def forget_interrupt(spark: SparkSession) -> bool:
    """Lets the calling JVM thread read and write files again after it was asked to stop; ``interrupted`` stays true.

    Returns:
        Whether the thread is one that serves a statement. An interrupt of any other thread is left to its owner.
    """
    return bool(java_class(spark, "org.apache.spark.sql.usespark.CallbackThreads").forgetInterrupt())


@contextmanager
def same_active_session() -> Iterator[None]:
    """Keeps the active session, of which PySpark makes the session of each new DataFrame, for the whole process.

    Sessions of ours have settings of their own, such as samples that Spark takes, and are not for users.
    """
    active = SparkSession._activeSession
    try:
        yield
    finally:
        SparkSession._activeSession = active
