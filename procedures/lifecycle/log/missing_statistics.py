"""Statistics of files that lack them: from their footers where these suffice, and else from their rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DoubleType, FloatType, StructType

from catalog.errors import UseError
from catalog.jvm.file_statistics import FileStatistics

_ROWS, _NULLS, _MINIMA, _MAXIMA = "numRecords", "nullCount", "minValues", "maxValues"


def leaves(schema: StructType, kind: str) -> dict[tuple[str, ...], DataType]:
    """Returns the paths of the columns that have a kind of statistics, without the kind, and their types; pure.

    Args:
        schema: of statistics.
        kind: ``nullCount``, ``minValues`` or ``maxValues``.
    """
    return {path[1:]: data_type for path, data_type in _paths(schema) if path[0] == kind}


def _paths(schema: StructType) -> Iterator[tuple[tuple[str, ...], DataType]]:
    for field in schema:
        if isinstance(field.dataType, StructType):
            for path, data_type in _paths(field.dataType):
                yield (field.name, *path), data_type
        else:
            yield (field.name,), field.dataType


def _value(stats: Column, path: tuple[str, ...]) -> Column:
    return reduce(lambda column, name: column.getField(name), path, stats)


def lacks_statistics(stats: Column, schema: StructType) -> Column:
    """Whether the number of rows is unknown, or no column has statistics although some should.

    A file that was written before a column was added has statistics of the others, and counts as complete.

    Args:
        stats: parsed statistics.
        schema: their schema.
    """
    rows = _value(stats, (_ROWS,))
    unknown = stats.isNull() | rows.isNull()
    counts = [_value(stats, (_NULLS, *leaf)).isNotNull() for leaf in leaves(schema, _NULLS)]
    if counts:
        # Delta has no further statistics for a file without rows.
        unknown |= (rows > 0) & ~reduce(Column.__or__, counts)
    return F.coalesce(unknown, F.lit(True))


def is_complete(stats: Column, schema: StructType) -> Column:
    """Whether every column has a count of nulls, and a minimum and maximum unless all its values are null.

    A footer does not say which row groups of FLOAT and DOUBLE columns have NaN, which is above every other value. So
    such columns are complete only without values.

    Args:
        stats: parsed statistics of a footer.
        schema: their schema.
    """
    rows, bounded = _value(stats, (_ROWS,)), leaves(schema, _MINIMA)
    conditions = [rows.isNotNull()]
    for leaf in leaves(schema, _NULLS):
        nulls = _value(stats, (_NULLS, *leaf))
        conditions.append(nulls.isNotNull())
        if isinstance(bounded.get(leaf), (DoubleType, FloatType)):
            conditions.append(nulls == rows)
        elif leaf in bounded:
            low, high = _value(stats, (_MINIMA, *leaf)), _value(stats, (_MAXIMA, *leaf))
            conditions.append((nulls == rows) | (low.isNotNull() & high.isNotNull()))
    return F.coalesce((rows == 0) | reduce(Column.__and__, conditions), F.lit(False))


@dataclass(frozen=True)
class FilesRead:
    """Number and bytes of files."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: FilesRead) -> FilesRead:
        return FilesRead(self.files + other.files, self.bytes + other.bytes)


@dataclass(frozen=True)
class FilesWithStatistics:
    """Files with new statistics.

    Attributes:
        files: AddFile rows.
        by_footer: files whose footers sufficed.
        by_rows: files that were read.
    """

    files: DataFrame
    by_footer: FilesRead
    by_rows: FilesRead


def with_statistics(statistics: FileStatistics, files: DataFrame) -> FilesWithStatistics:
    """Collects the statistics of files.

    Args:
        statistics: of the version of the files.
        files: AddFile rows, a few thousand at most.

    Raises:
        UseError: footers and rows disagree about the number of rows of a file.
    """
    schema = statistics.schema()
    complete = is_complete(F.from_json("stats", schema), schema)
    # Footers are read once.
    footers = statistics.from_footers(files).localCheckpoint()
    totals = {
        row.complete: FilesRead(row.files, row.bytes)
        for row in footers.groupBy(complete.alias("complete"))
        .agg(F.count(F.lit(1)).alias("files"), F.sum("size").alias("bytes"))
        .collect()
    }
    whole, partial = footers.where(complete), footers.where(~complete)
    by_footer, by_rows = totals.get(True, FilesRead()), totals.get(False, FilesRead())
    if not by_rows.files:
        return FilesWithStatistics(whole, by_footer, by_rows)
    read = statistics.from_rows(partial)
    _check_rows(partial, read)
    return FilesWithStatistics(whole.unionByName(read), by_footer, by_rows)


def _check_rows(footers: DataFrame, read: DataFrame) -> None:
    def rows(files: DataFrame, name: str) -> DataFrame:
        return files.select("path", F.get_json_object("stats", f"$.{_ROWS}").alias(name))

    compared = rows(footers, "stored").join(rows(read, "counted"), "path", "full_outer")
    different = compared.where("NOT stored <=> counted").first()
    if different is not None:
        raise UseError(
            f"The file {different.path} has {different.stored} rows by its footer and {different.counted} by its rows: "
            "nothing was committed. Check the file."
        )
