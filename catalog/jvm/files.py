"""Facts about files, read through Hadoop's file systems."""

from __future__ import annotations

import json
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from catalog.jvm.java_values import java_class, java_data, jvm_session


def is_plain_folder(spark: SparkSession, path: str) -> bool:
    """Whether a folder exists and has no Delta log; a writer that ended early may have left an empty one."""
    hadoop = java_class(spark, "org.apache.hadoop.fs.Path")
    folder = hadoop(path)
    java_class(spark, "io.usespark.TablePaths").reach(jvm_session(spark), folder)
    files = folder.getFileSystem(jvm_session(spark).sessionState().newHadoopConf())
    log = hadoop(folder, "_delta_log")
    if not files.exists(folder):
        return False
    # The first file decides, however long the log is.
    entries = files.listStatusIterator(log) if files.exists(log) else None
    while entries is not None and entries.hasNext():
        entry = entries.next()
        if entry.isFile() and not entry.getPath().getName().startswith("."):
            return False
    return True


class TextFile(NamedTuple):
    """A file: when it was last written, in epoch milliseconds, and its text; None for a folder or a larger file."""

    modified: int
    text: str | None


def text_file(spark: SparkSession, path: str, most_bytes: int) -> TextFile:
    """Reads a file of a limited size in the driver.

    Args:
        spark: session of the caller.
        path: of the file.
        most_bytes: its size at most.

    Raises:
        Py4JJavaError: the file does not exist or its file system refuses.
    """
    hadoop = java_class(spark, "org.apache.hadoop.fs.Path")(path)
    file_system = hadoop.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    status = file_system.getFileStatus(hadoop)
    modified = int(status.getModificationTime())
    if not status.isFile() or status.getLen() > most_bytes:
        return TextFile(modified, None)
    stream = file_system.open(hadoop)
    try:
        return TextFile(modified, bytes(stream.readNBytes(most_bytes)).decode("utf-8"))
    finally:
        stream.close()


def partition_schema(files: DataFrame) -> StructType:
    """The partition columns that the folders of a data source encode.

    Args:
        files: a read of one data source of files, and nothing else.
    """
    relation = java_data(files).queryExecution().analyzed().collectLeaves().head().relation()
    return StructType.fromJson(json.loads(relation.location().partitionSchema().json()))
