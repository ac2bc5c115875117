"""``CALL use.clustering_information``: shows from metadata how well columns separate the files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    LongType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from catalog.columns.column_names import find_column, written_name
from catalog.counted_nouns import agreeing, counted
from catalog.errors import IndexConfigurationError, InvalidArgumentError, UnknownNameError
from catalog.jvm.session import described_jobs
from catalog.quantities import share_text
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from procedures.declare.declaration import Call
from procedures.declare.operation import TableName, operation
from procedures.declare.result_rows import ShownRow
from procedures.insight.checking.clustering_overlap import Overlap, overlap_of
from procedures.selection.table_plan import column_names

# Shares above which the advice is to act.
_UNINDEXED_SHARE = 0.1
_DEPTH_SHARE = 0.5
_FEW_FILES = 4
_ACCEPTED = "column names separated by commas, each once; names with a comma, colon or dot in backquotes"


@dataclass(frozen=True)
class ClusteringInformationRow(ShownRow):
    """How well a column, or several columns, separate the files.

    Attributes:
        columns: the column, or all columns.
        files: files of the table.
        bytes: their bytes.
        rows: their rows; None if a file has no statistics.
        unindexed_files_share: in [0, 1].
        unindexed_bytes_share: in [0, 1].
        unknown_files: files without a range for the column.
        constant_files: files whose range is a single value.
        average_overlaps: average number of other files whose range overlaps a file's range.
        max_overlaps: maximum of these numbers.
        average_depth: average number of files that overlap at the deepest point of a file's range, including the file
            itself; 1 is best.
        max_depth: maximum of these numbers.
        depth_histogram: files per depth; empty for several columns together.
        advice: ``WELL_CLUSTERED``, ``OVERLAPPING``, ``UNINDEXED``, ``OTHER_COLUMNS``, ``NO_STATISTICS`` or
            ``FEW_FILES``.
        message: one-sentence summary.
    """

    columns: str
    files: int
    bytes: int
    rows: int | None
    unindexed_files_share: float
    unindexed_bytes_share: float
    unknown_files: int
    constant_files: int
    average_overlaps: float
    max_overlaps: int
    average_depth: float
    max_depth: int
    depth_histogram: dict[int, int]
    advice: str
    message: str


@dataclass(frozen=True)
class _MeasuredColumn:
    """A column as in the statistics: display name, physical path, type, and whether it is a partition column."""

    name: str
    path: tuple[str, ...]
    data_type: DataType
    is_partition: bool

    @classmethod
    def of(cls, snapshot: TableSnapshot, name: str) -> _MeasuredColumn:
        """Resolves a name; ``a.b`` is a field of a struct unless a top-level column has exactly this name."""
        column = find_column(snapshot.schema, name)
        if column is None:
            raise UnknownNameError.of("column", name, snapshot.schema.names, "columns")
        if not isinstance(column.data_type, (NumericType, DateType, TimestampType, TimestampNTZType, StringType)):
            accepted = "columns of numbers, dates, timestamps or strings, which have ranges in the statistics"
            raise InvalidArgumentError.of("columns", f"{name} of type {column.type_name}", accepted)
        shown = written_name(snapshot.schema, column)
        partition = not column.is_nested and column.path[0] in snapshot.partition_columns
        return cls(shown, column.stored_path, column.data_type, partition)

    def ranges(self, snapshot: TableSnapshot) -> DataFrame:
        """Returns path, range and whether all values are null, per file."""
        files = snapshot.log_files
        if self.is_partition:
            value = F.col("partitionValues")[self.path[0]]
            typed = value.cast(self.data_type)
            return files.select("path", typed.alias("low"), typed.alias("high"), value.isNull().alias("empty"))
        as_stored = self._nested(self.data_type)
        schema = StructType(
            [
                StructField("numRecords", LongType()),
                StructField("minValues", as_stored),
                StructField("maxValues", as_stored),
                StructField("nullCount", self._nested(LongType())),
            ]
        )
        stats = files.select("path", F.from_json("stats", schema).alias("stats"))
        low, high, nulls = (self._at(f"stats.{kind}") for kind in ("minValues", "maxValues", "nullCount"))
        if isinstance(self.data_type, (TimestampType, TimestampNTZType)):
            # Statistics truncate timestamps to milliseconds.
            high = high + F.expr("INTERVAL 1 MILLISECOND")
        empty = F.coalesce(nulls == F.col("stats.numRecords"), F.lit(False))
        return stats.select("path", low.alias("low"), high.alias("high"), empty.alias("empty"))

    def _nested(self, leaf: DataType) -> StructType:
        inner = leaf
        for part in reversed(self.path):
            inner = StructType([StructField(part, inner)])
        if not isinstance(inner, StructType):
            raise TypeError(f"{self.name} has no path")
        return inner

    def _at(self, root: str) -> Column:
        column = F.col(root)
        for part in self.path:
            column = column.getField(part)
        return column


def _columns(text: str | None, snapshot: TableSnapshot, table: ManagedTable) -> list[_MeasuredColumn]:
    if text is None:
        index = snapshot.index_configuration
        if index is None:
            raise IndexConfigurationError.no_columns(table.name, "clustering_information without columns")
        names = list(index.logical_columns)
    else:
        names = column_names(text)
    measured = [_MeasuredColumn.of(snapshot, name) for name in names]
    if len({column.path for column in measured}) != len(measured):
        raise InvalidArgumentError.of("columns", text, _ACCEPTED)
    return measured


def _validate(arguments: Mapping[str, Any]) -> None:
    if arguments["columns"] is not None:
        column_names(arguments["columns"])


def clustering_information(call: Call, table: TableName, columns: str | None = None) -> list[ClusteringInformationRow]:
    """Shows from metadata how well some columns, indexed or not, separate the files of a table.

    Args:
        columns: Columns separated by commas; the indexed columns by default.

    Returns:
        A row per column, and for several columns one more row for all of them.

    Raises:
        UseError: a column does not exist or has no ranges, or no column is given and none is indexed.
    """
    found = ManagedTable.find(call.spark, table)
    snapshot = found.snapshot()
    chosen = _columns(columns, snapshot, found)
    with described_jobs(call.spark, f"USE clustering_information: {found.name}"):
        unindexed = F.col("revision") == 0
        totals = snapshot.files.agg(
            F.count(F.lit(1)).alias("files"),
            F.coalesce(F.sum("size"), F.lit(0)).alias("bytes"),
            F.when(F.count("rows") == F.count(F.lit(1)), F.coalesce(F.sum("rows"), F.lit(0))).alias("rows"),
            F.count_if(unindexed).alias("unindexed_files"),
            F.coalesce(F.sum(F.when(unindexed, F.col("size"))), F.lit(0)).alias("unindexed_bytes"),
        ).collect()[0]
        measured = [(column.name, overlap_of(column.ranges(snapshot))) for column in chosen]
    if len(measured) > 1:
        measured.append((", ".join(name for name, _ in measured), _combined([o for _, o in measured], totals.files)))
    shares = (
        totals.unindexed_files / totals.files if totals.files else 0.0,
        totals.unindexed_bytes / totals.bytes if totals.bytes else 0.0,
    )
    indexed = snapshot.latest_revision.columns if snapshot.latest_revision else ()
    is_indexed = all(".".join(c.path) in indexed for c in chosen)
    return [
        ClusteringInformationRow(
            name,
            totals.files,
            totals.bytes,
            totals["rows"],
            *shares,
            overlap.unknown_files,
            overlap.constant_files,
            overlap.average_overlaps,
            overlap.max_overlaps,
            overlap.average_depth,
            overlap.max_depth,
            overlap.histogram,
            *_advice(found.name, overlap, totals.files, shares[1], is_indexed=is_indexed),
        )
        for name, overlap in measured
    ]


def _combined(per_column: list[Overlap], files: int) -> Overlap:
    """Combines several columns as if they were independent: shares of files multiply.

    A query that filters by all of them reads about the product of the shares for each column.
    """
    depth = files * math.prod(o.average_depth / files for o in per_column) if files else 0.0
    others = max(files - 1, 1)
    overlaps = others * math.prod(o.average_overlaps / others for o in per_column)
    return Overlap(
        max(o.unknown_files for o in per_column),
        min(o.constant_files for o in per_column),
        overlaps,
        min(o.max_overlaps for o in per_column),
        max(depth, 1.0) if files else 0.0,
        min(o.max_depth for o in per_column),
        {},
    )


def _advice(name: str, overlap: Overlap, files: int, unindexed_share: float, *, is_indexed: bool) -> tuple[str, str]:
    """Returns a code and a sentence that says what to do."""
    depth = f"On average {overlap.average_depth:.1f} of {counted(files, 'file')} overlap at a value"
    if files < _FEW_FILES:
        return "FEW_FILES", f"The table has only {counted(files, 'file')}; a better layout would not help."
    if overlap.unknown_files > files * _UNINDEXED_SHARE:
        unknown = overlap.unknown_files
        have, them = agreeing(unknown, "has", "have"), agreeing(unknown, "it", "them")
        return (
            "NO_STATISTICS",
            f"{counted(unknown, 'file')} {have} no range for these columns, so queries cannot skip {them}.",
        )
    if is_indexed and unindexed_share > _UNINDEXED_SHARE:
        return (
            "UNINDEXED",
            f"{share_text(unindexed_share, 0)} of the bytes are not indexed: CALL use.optimize(table => '{name}').",
        )
    if overlap.average_depth <= max(files * _DEPTH_SHARE, 1.0):
        return "WELL_CLUSTERED", f"{depth}."
    if is_indexed:
        return "OVERLAPPING", f"{depth}: CALL use.optimize(table => '{name}', revision_rewrite => true)."
    return "OTHER_COLUMNS", f"{depth}, and these columns are not indexed: index them with CALL use.index."


CLUSTERING_INFORMATION = operation(clustering_information, validate=_validate)
