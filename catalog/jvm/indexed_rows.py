"""The rows of one Delta write, which Python lays out and tags."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from catalog.jvm.file_writer import FileWriter
from catalog.jvm.java_values import data_frame, java_maps, jvm_session
from catalog.jvm.query_trees import PlanTree


@dataclass(frozen=True)
class WriteFacts:
    """What is known of a write before it begins.

    Attributes:
        location: root of the table.
        mode: ``append``; ``replace`` when the write replaces all rows of the table; ``partial`` when it replaces some.
        plan_bytes: Spark's estimate of the size of the rows.
        repeatable: whether the rows can be read several times, at the cost of reading; not if metrics are observed on
            them.
        change_type: name of the column that marks rows of a change feed, which are not rows of the table; None
            without one.
        settings: table properties that the write sets.
    """

    location: str
    mode: str
    plan_bytes: int
    repeatable: bool
    change_type: str | None
    settings: Mapping[str, str]


class LaidOutRows(FileWriter):
    """One call of Delta's ``writeFiles``, whose rows Python lays out.

    ``state()`` is the table that the rows join: properties and schema as the commit will have them, files as they are.
    """

    def rows_in(self, session: SparkSession) -> DataFrame:
        """Returns the rows as a query of another session, which has settings of its own."""
        return PlanTree(self._java.rows().queryExecution().analyzed()).data(session)

    def tag(self, tags_by_path: Mapping[str, Mapping[str, str]], write_id: str) -> None:
        """Sets the tags of the files written.

        Args:
            tags_by_path: tags of each file.
            write_id: id of the write; the shim reports it with the version once Delta has committed.
        """
        self._java.tag(java_maps(self.spark, tags_by_path), write_id)


class IndexedRows(LaidOutRows):
    """The shim's ``IndexedRows``: new rows of a table."""

    def facts(self) -> WriteFacts:
        """Returns what is known of the write."""
        return WriteFacts(**json.loads(self._java.facts()))

    def rows(self) -> DataFrame:
        """Returns the rows as they came to Delta, before it adds generated columns and the like."""
        return data_frame(self._java.rows(), self.spark)

    def cached_rows_in(self, session: SparkSession) -> DataFrame:
        """Returns the same rows in Spark's cache, as a query of another session; the caller unpersists them.

        They are computed in the writer's session. If its user observes metrics on them, all rows are computed at once.
        """
        return data_frame(self._java.cachedIn(jvm_session(session)), session)
