"""Detects changes of many tables at the cost of one file lookup per table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from catalog.jvm.java_values import java_class, jvm_session
from catalog.locations import place_of

_PROBE = "org.apache.spark.sql.delta.usespark.LogProbe"
UNCHANGED, CHANGED, MISSING, FAILED = "unchanged", "changed", "missing", "failed"


@dataclass(frozen=True)
class Sighting:
    """The result of one look at a table's log.

    Attributes:
        state: ``unchanged``, ``changed``, ``missing`` (no Delta table is there) or ``failed`` (nobody can tell).
        version: newest version; -1 unless it changed.
        table_id: Delta's metadata id; '' unless it changed.
        configuration: properties of the table itself; empty unless it changed.
        columns: names of its columns; empty unless it changed.
        detail: why looking failed.
    """

    state: str
    version: int = -1
    table_id: str = ""
    configuration: Mapping[str, str] = field(default_factory=dict)
    columns: Sequence[str] = ()
    detail: str = ""


def look(spark: SparkSession, tables: Sequence[tuple[str, int | None]]) -> list[Sighting]:
    """Looks at the logs of tables, several at a time.

    Args:
        spark: session whose file systems are used.
        tables: location and version last seen; the existence of the next log file decides whether the table changed.
            Without a version, the table's newest state is read in any case.

    Returns:
        One sighting per table, in the same order.
    """
    if not tables:
        return []
    questions = [{"location": place, "version": -1 if version is None else version} for place, version in tables]
    answers = java_class(spark, _PROBE).look(jvm_session(spark), json.dumps(questions))
    return [Sighting(**answer) for answer in json.loads(answers)]


def qualified(spark: SparkSession, location: str) -> str:
    """The one spelling of a location; see ``place_of``."""

    def default_file_system() -> str:
        hadoop = jvm_session(spark).sessionState().newHadoopConf()
        return str(java_class(spark, "org.apache.hadoop.fs.FileSystem").getDefaultUri(hadoop).toString())

    return place_of(location, default_file_system)


def exists(spark: SparkSession, location: str, file: str) -> bool:
    """Whether a table has a file, at the cost of one lookup; ``file`` is relative to the table's root."""
    path = java_class(spark, "org.apache.hadoop.fs.Path")(location, file)
    return bool(path.getFileSystem(jvm_session(spark).sessionState().newHadoopConf()).exists(path))


def commits_since(spark: SparkSession, location: str, operation: str, after: int, most: int) -> int:
    """Counts the commits that are newer than the newest one of an operation.

    Args:
        spark: session whose file systems are used.
        location: the table's root.
        operation: as the commit names it.
        after: commits up to this version do not count.
        most: counting ends here, so that no long history is read.
    """
    return int(java_class(spark, _PROBE).commitsSince(jvm_session(spark), location, operation, after, most))
