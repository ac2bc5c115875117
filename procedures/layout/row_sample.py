"""A sample of rows: weight, cell and values of the indexed columns, from one pass over these columns.

Tree, quantiles, curve and files all follow from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, DateType, StringType, TimestampNTZType, TimestampType

from catalog.jvm.observed_rows import collect_observed
from otree.growth import CELL_BITS, PlacedRows
from procedures.layout.index_columns import IndexColumns

if TYPE_CHECKING:
    import pyarrow as pa

# Enough rows for the quantiles, for files of about equal size, and for cubes within 10 % of their size (three standard
# deviations); few enough for the driver.
_SAMPLE_ROWS = 100_000
_SAMPLE_ROWS_PER_FILE = 200
_SAMPLE_ROWS_PER_CUBE = 1_000
_LARGEST_SAMPLE = 2_000_000
# Rows of one point are not split for ever, and the ids of cubes stay short.
_MOST_LEVELS = 24
_ROWS = "rows"


@dataclass(frozen=True, eq=False)
class RowSample:
    """A random sample of rows, or all of them.

    Attributes:
        columns: the indexed columns and their revision.
        rows: how many rows there are in all, counted.
        depth: levels of the cells.
        expressions: per indexed column its value as DOUBLE or BINARY, in the column's order.
        table: columns ``weight``, ``cell``, and ``v0`` and so on for the values.
    """

    columns: IndexColumns
    rows: int
    depth: int
    expressions: tuple[Column, ...]
    table: pa.Table

    @property
    def weights(self) -> NDArray[np.int32]:
        """Weight per sampled row."""
        return np.asarray(self.table.column("weight").to_numpy(), np.int32)

    @property
    def placed(self) -> PlacedRows:
        """Weights and cells, as the growth of a tree takes them."""
        cells = np.asarray(self.table.column("cell").to_numpy(), np.int64)
        return PlacedRows(self.weights, cells, self.depth, self.rows / max(len(cells), 1))

    @property
    def distinct_weights(self) -> int:
        """About how many different weights all rows have; exact where all rows are in the sample.

        Source:
            A. Chao, "Nonparametric estimation of the number of classes in a population", Scandinavian Journal of
            Statistics 11 (1984).
        """
        _, counts = np.unique(self.weights, return_counts=True)
        if len(self.table) >= self.rows:
            return len(counts)
        once, twice = int(np.count_nonzero(counts == 1)), int(np.count_nonzero(counts == 2))
        return min(self.rows, len(counts) + once * (once - 1) // (2 * (twice + 1)))


def sample_of(
    rows: DataFrame,
    expected: int,
    columns: IndexColumns,
    file_share: float,
    facts: Mapping[str, Column] | None = None,
) -> tuple[RowSample, dict[str, Any]]:
    """Takes a sample of rows and counts all of them, in one Spark job.

    Args:
        rows: the rows.
        expected: how many they are, at least about.
        columns: the indexed columns.
        file_share: rows of one file, as a share of all.
        facts: further aggregates over all rows, by name.

    Returns:
        The sample, and the values of the aggregates.
    """
    revision = columns.revision
    depth = cell_depth(revision.dimensions)
    values = tuple(ordered_value(rows.select(column).schema[0].dataType, column) for column in columns.values)
    wanted = sample_rows(expected, file_share, revision.desired_cube_size)
    counted, table = collect_observed(
        rows,
        {_ROWS: F.count(F.lit(1)), **(facts or {})},
        {
            "weight": columns.weight,
            "cell": columns.cell(depth),
            **{f"v{i}": value for i, value in enumerate(values)},
        },
        min(1.0, wanted / max(expected, 1)),
    )
    return RowSample(columns, counted.pop(_ROWS), depth, values, table), counted


def sample_rows(rows: int, file_share: float, cube_size: int) -> int:
    """Returns how many rows a sample should have.

    Args:
        rows: how many rows there are in all.
        file_share: rows of one file, as a share of all.
        cube_size: rows that an inner cube should hold.
    """
    for_files = _SAMPLE_ROWS_PER_FILE / file_share
    for_cubes = _SAMPLE_ROWS_PER_CUBE * rows / cube_size
    return int(min(max(_SAMPLE_ROWS, for_files, for_cubes), _LARGEST_SAMPLE))


def cell_depth(dimensions: int) -> int:
    """Levels of the cells, and of the deepest cubes."""
    return max(1, min(CELL_BITS // dimensions, _MOST_LEVELS))


def ordered_value(data_type: DataType, column: Column) -> Column:
    """The column as DOUBLE or BINARY, in its own order as far as a double tells values apart."""
    match data_type:
        case StringType() | BinaryType():
            return column.cast("binary")
        case DateType():
            return F.unix_date(column).cast("double")
        case TimestampType() | TimestampNTZType():
            return F.unix_micros(column.cast("timestamp")).cast("double")
        case _:
            return column.cast("double")
