"""Writes data files inside a Delta transaction; the base of rewrites and indexed writes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession

from catalog.jvm.java_values import JavaValue, data_frame, java_column, java_data, java_list, java_map
from catalog.jvm.table_state import TableState


class CountedBlock(NamedTuple):
    """The rows of one cube in one file, as counted while they were written.

    Attributes:
        cube: ordinal of the cube, as the cube column gives it.
        rows: number of rows.
        lowest: smallest weight.
        highest: largest weight.
    """

    cube: int
    rows: int
    lowest: int
    highest: int


@dataclass(frozen=True)
class DataFile:
    """A file that a transaction has written and not yet committed.

    Attributes:
        path: as in the log.
        size: bytes.
        rows: number of rows; None without statistics.
        stats: Delta's statistics as JSON; None without.
        blocks: rows per cube; None when the write collected no statistics.
    """

    path: str
    size: int
    rows: int | None = None
    stats: str | None = None
    blocks: tuple[CountedBlock, ...] | None = None


class FileWriter:
    """A transaction of the shim that writes files.

    Args:
        spark: session of the DataFrames that this class returns.
        java: the shim's object.
    """

    def __init__(self, spark: SparkSession, java: JavaValue) -> None:
        self.spark = spark
        self._java = java

    def state(self) -> TableState:
        """Returns the table that the files join."""
        return TableState(self.spark, self._java.state())

    def configure(self, entries: Mapping[str, str], removed: Sequence[str] = ()) -> None:
        """Changes table properties within the commit of this transaction; nothing when there is nothing to change.

        A rewrite has to call it before ``write``.

        Args:
            entries: properties to set.
            removed: keys of properties to remove.
        """
        if entries or removed:
            self._java.configure(java_map(self.spark, entries), java_list(self.spark, removed))

    def write(self, rows: DataFrame, cube: Column | None = None, weight: Column | None = None) -> list[DataFile]:
        """Writes rows, one file per Spark partition and table partition.

        Args:
            rows: the rows, in the order in which the files should have them.
            cube: ordinal of the cube of a row, BIGINT, over the names that columns have in data files; None counts
                no blocks.
            weight: weight of a row, INT, likewise.

        Returns:
            The files written by this call.
        """
        cube, weight = (None if column is None else java_column(column) for column in (cube, weight))
        return [_data_file(entry) for entry in json.loads(self._java.write(java_data(rows), cube, weight))]

    def read_written(self) -> DataFrame:
        """Returns the rows of the files that ``write`` has written."""
        return data_frame(self._java.readWritten(), self.spark)


def _data_file(entry: Mapping[str, JavaValue]) -> DataFile:
    blocks = entry.get("blocks")
    rows = int(entry.get("rows", -1))
    return DataFile(
        path=str(entry["path"]),
        size=int(entry["size"]),
        rows=None if rows < 0 else rows,
        stats=entry.get("stats"),
        blocks=None if blocks is None else tuple(CountedBlock(*block) for block in blocks),
    )
