"""The rows that a statement writes, of which most were in the table before."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from catalog.jvm.indexed_rows import LaidOutRows
from catalog.jvm.java_values import data_frame, jvm_session


@dataclass(frozen=True)
class KeptFacts:
    """What is known of the rows before they are written.

    Attributes:
        location: root of the table.
        replaces_files: whether they replace all rows of the files that they come from.
        is_row_by_row: whether each comes from one row of a file, so that the rows of a file stay together and in order.
        paths: the files that they come from, as in the log.
        kept_columns: physical names of columns whose values stay as they are, if all rows of the files stay, each in
            its partition; else none.
    """

    location: str
    replaces_files: bool
    is_row_by_row: bool
    paths: tuple[str, ...]
    kept_columns: frozenset[str]


class KeptRows(LaidOutRows):
    """The shim's ``KeptRows``: the rows of DELETE, UPDATE or MERGE, or those that an overwrite leaves."""

    def facts(self) -> KeptFacts:
        """Returns what is known of the rows."""
        facts = json.loads(self._java.facts())
        sequences = {"paths": tuple(facts["paths"]), "kept_columns": frozenset(facts["kept_columns"])}
        return KeptFacts(**{**facts, **sequences})

    def apart(self, session: SparkSession, most_bytes: int) -> DataFrame:
        """Returns the rows with each Spark partition from one file, in the order of the file.

        Args:
            session: a session of its own, whose settings change.
            most_bytes: a larger file has several partitions.
        """
        return data_frame(self._java.apart(jvm_session(session), most_bytes), session)

    def partition_files(self) -> tuple[str, ...]:
        """Returns the file of each Spark partition of ``apart``, as in the log."""
        return tuple(map(str, self._java.partitionFiles()))

    def source_tags(self) -> dict[str, dict[str, str]]:
        """Returns the tags of the files that the statement rewrites, by path."""
        tags: dict[str, dict[str, str]] = json.loads(self._java.sourceTags())
        return tags

    def source_rows(self) -> DataFrame:
        """Returns the rows of the files that the statement rewrites, as they were before."""
        return data_frame(self._java.sourceRows(), self.spark)
