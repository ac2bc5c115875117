"""Detects changes of many tables at the cost of one or two file lookups per table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from pyspark.sql import SparkSession

from catalog.jvm.java_values import java_class, jvm_session
from catalog.locations import place_of

_PROBE = "org.apache.spark.sql.delta.usespark.LogProbe"
UNCHANGED, CHANGED, MISSING, FAILED, LATE = "unchanged", "changed", "missing", "failed", "late"
# A look at all tables ends after this time.
LOOK_SECONDS = 10.0


class Question(NamedTuple):
    """A table to look at, and what is known of it.

    Attributes:
        location: the table's root.
        version: version last seen; None reads the newest state in any case.
        modified: when the log file of this version was written, as ``Sighting.modified``. If another file is there now,
            another table is. None does not compare it.
    """

    location: str
    version: int | None = None
    modified: int | None = None


@dataclass(frozen=True)
class Sighting:
    """The result of one look at a table's log.

    Attributes:
        state: ``unchanged``, ``changed``, ``missing`` (no Delta table is there), ``failed`` (nobody can tell), or
            ``late`` (the look ended before it was this table's turn).
        version: newest version; -1 unless it changed.
        table_id: Delta's metadata id; '' unless it changed.
        configuration: properties of the table itself; empty unless it changed.
        columns: names of its columns; empty unless it changed.
        detail: why looking failed.
        modified: when the log file of this version was written, epoch milliseconds; -1 unless it changed.
    """

    state: str
    version: int = -1
    table_id: str = ""
    configuration: Mapping[str, str] = field(default_factory=dict)
    columns: Sequence[str] = ()
    detail: str = ""
    modified: int = -1


_UNCHANGED = Sighting(UNCHANGED)


def look(spark: SparkSession, questions: Sequence[Question], seconds: float = LOOK_SECONDS) -> list[Sighting]:
    """Looks at the logs of tables, several at a time; the existence of the next log file tells whether one changed.

    A table that does not answer in time is ``failed``, and is not asked again until its earlier look has ended. It
    keeps a thread of its file system; other file systems have their own threads.

    Args:
        spark: session whose file systems are used.
        questions: the tables.
        seconds: when the look ends.

    Returns:
        One sighting per table, in the same order.
    """
    if not questions:
        return []
    rows = [[q.location, *(-1 if number is None else number for number in q[1:])] for q in questions]
    answers = java_class(spark, _PROBE).look(jvm_session(spark), json.dumps(rows), int(seconds * 1000))
    sightings = [_UNCHANGED] * len(questions)
    for answer in json.loads(answers):
        index = answer.pop("index")
        sightings[index] = Sighting(**answer)
    return sightings


def qualified(spark: SparkSession, location: str) -> str:
    """The one spelling of a location; see ``place_of``."""
    return qualifier(spark)(location)


def qualifier(spark: SparkSession) -> Callable[[str], str]:
    """Gives locations their one spelling, and asks the JVM at most once."""

    @cache
    def default_file_system() -> str:
        hadoop = jvm_session(spark).sessionState().newHadoopConf()
        return str(java_class(spark, "org.apache.hadoop.fs.FileSystem").getDefaultUri(hadoop).toString())

    return lambda location: place_of(location, default_file_system)


def exists(spark: SparkSession, location: str, file: str) -> bool:
    """Whether a table has a file, at the cost of one lookup; ``file`` is relative to the table's root."""
    path = java_class(spark, "org.apache.hadoop.fs.Path")(location, file)
    return bool(path.getFileSystem(jvm_session(spark).sessionState().newHadoopConf()).exists(path))


def counted_commits(spark: SparkSession, location: str, operation: str, after: int, most: int) -> int:
    """Counts the commits since one of an operation by Delta, which reads them in a Spark job.

    Args:
        spark: session whose file systems are used.
        location: the table's root.
        operation: as the commit names it.
        after: commits up to this version do not count.
        most: so many of the newest commits are read at most.
    """
    return int(java_class(spark, _PROBE).commitsSince(jvm_session(spark), location, operation, after, most))
