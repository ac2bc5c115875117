"""Shallow clones: Delta tables that name files of another table, which a vacuum of that table must not delete."""

from __future__ import annotations

import logging
import re

from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog.errors import UseError
from catalog.jvm.java_errors import known_error
from catalog.jvm.log_probe import qualified
from catalog.jvm.metastore import KnownTable, is_restricting, tables_of
from catalog.table.managed_table import ManagedTable

logger = logging.getLogger(__name__)

# Scheme, and authority where there is one: a clone may name the same place by another scheme, such as s3 and s3a.
_SCHEME = "^[a-zA-Z][a-zA-Z0-9+.-]*:(//[^/]*)?"


def key_of(path: Column) -> Column:
    """A path without the scheme and authority of its file system."""
    return F.regexp_replace(path, _SCHEME, "")


def name_of(key: Column) -> Column:
    """The last part of a path, which Delta makes unique."""
    return F.regexp_replace(key, "^.*/", "")


def cloned_files(session: SparkSession, table: ManagedTable) -> list[DataFrame]:
    """Returns the ``name`` of the files of other tables that can be those of a table, one cached DataFrame per clone.

    All Delta tables of the session's catalog are looked at. A clone needs the files of each version that its log can
    make. It may name the folder of the table in a way of its own, through a link for example, so that only the names of
    files tell. A table that cannot be read is left out, and logged.

    Args:
        session: session of the work.
        table: the table whose files may be deleted.
    """
    place, files_of_clones = qualified(session, table.location), []
    for known in tables_of(session, every=True):
        try:
            if qualified(session, known.location) == place:
                continue
            files = _named_below(session, _table_of(session, known), table.root)
        except (UseError, Py4JJavaError, PySparkException) as error:
            text = known_error(error).message
            logger.warning("%s cannot be read, so that files it has of %s are unknown: %s", known, table.name, text)
            continue
        if files is not None:
            files_of_clones.append(files)
    return files_of_clones


def _table_of(session: SparkSession, known: KnownTable) -> ManagedTable:
    try:
        return ManagedTable.find(session, known.full_name)
    except (UseError, Py4JJavaError, PySparkException):
        if not is_restricting(session):
            raise
        # A clone needs its files also if the user may not see it.
        return ManagedTable.find(session, known.location)


def _named_below(session: SparkSession, other: ManagedTable, root: str) -> DataFrame | None:
    """The names of the files of a table that are below another root, or elsewhere than below its own."""
    versions = other.handle.versions(session)
    oldest, newest = versions.oldest(), versions.newest()
    added = versions.changes(oldest + 1, newest).where("is_added").select("path")
    keys = versions.files(oldest).select("path").union(added).select(key_of(F.col("path")).alias("key"))
    below, own = (F.col("key").startswith(re.sub(_SCHEME, "", place).rstrip("/") + "/") for place in (root, other.root))
    cached = keys.where(below | ~own).select(name_of(F.col("key")).alias("name")).distinct()
    cached = cached.persist(StorageLevel.MEMORY_AND_DISK)
    if cached.isEmpty():
        cached.unpersist()
        return None
    return cached
