"""What one look at rows tells before they are laid out: a sample, and the ranges of the indexed columns.

Tree, quantiles, curve and files all follow from the sample: weight, cell and values of the indexed columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, DateType, StringType, TimestampNTZType, TimestampType

from catalog.jvm.observed_rows import collect_observed
from catalog.properties.index_properties import HASH_TYPES_KEY_PREFIX, IndexConfiguration
from catalog.table.snapshot import TableSnapshot
from otree.cardinality import WEIGHT_PARTS, WeightCardinality, has_gaps
from otree.growth import CELL_BITS, PlacedRows
from otree.revision import Revision
from otree.transformation import ColumnStats, DeclaredStats
from otree.transformer import Transformer, needs_quantiles
from procedures.layout.index_columns import IndexColumns, columns_of, finite_value
from procedures.layout.quantile_estimates import numeric_quantiles, string_quantiles
from procedures.layout.weight_gaps import PART_BITS, WEIGHTS, found_gaps, gap_aggregates

if TYPE_CHECKING:
    import pyarrow as pa

# Enough rows for the quantiles, for files of about equal size, and for cubes within 10 % of their size (three standard
# deviations); few enough for the driver.
_SAMPLE_ROWS = 100_000
_SAMPLE_ROWS_PER_FILE = 200
_SAMPLE_ROWS_PER_CUBE = 1_000
_LARGEST_SAMPLE = 2_000_000
# Bytes of a text in the sample: two million rows of a column are 0.25 GB in the driver.
_LONGEST_VALUE = 128
# Rows of one point are not split for ever, and the ids of cubes stay short.
_MOST_LEVELS = 24
_ROWS = "rows"
# So many that neighbours differ by little, and the borders of cubes fall on quantiles; strings are not interpolated.
_NUMERIC_QUANTILES = 65
_STRING_QUANTILES = 257
_RELATIVE_ERROR = 0.005


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
    def cardinality(self) -> WeightCardinality:
        """The number of all rows, what is known of their weights."""
        found = np.unique(self.weights)
        parts = 0
        for part in np.unique(found >> PART_BITS) + WEIGHT_PARTS // 2:
            parts |= 1 << int(part)
        has_found = len(found) > 0
        gaps = has_found and has_gaps(parts, len(found), int(found[0]), int(found[-1]))
        return WeightCardinality(self.rows, self.distinct_weights, gaps)

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
    values = tuple(sampled_value(rows.select(column).schema[0].dataType, column) for column in columns.values)
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
            return F.unix_micros(column.cast(TimestampType())).cast("double")
        case _:
            return column.cast("double")


def sampled_value(data_type: DataType, column: Column) -> Column:
    """The ordered value of a column, of texts and bytes the beginning only: the driver collects the sample."""
    value = ordered_value(data_type, column)
    return F.substring(value, 1, _LONGEST_VALUE) if isinstance(data_type, StringType | BinaryType) else value


@dataclass(frozen=True)
class RowMeasures:
    """What one look at the data tells before it is indexed.

    Attributes:
        stats: per indexed column.
        weights: number of rows, and about how many different weights they have.
        sample: a sample of the rows in the newest revision, where the same look has taken one.
    """

    stats: tuple[ColumnStats, ...]
    weights: WeightCardinality
    sample: RowSample | None = None


def measure_columns(
    rows: DataFrame,
    transformers: Sequence[Transformer],
    columns: Sequence[str],
    declared: Sequence[DeclaredStats] = (),
    latest: Revision | None = None,
) -> RowMeasures:
    """Looks at the indexed columns in one pass; in a second one where string quantiles must be estimated.

    Args:
        rows: the data.
        transformers: what is indexed.
        columns: their logical names as ``F.col`` reads them, aligned.
        declared: what the owner declares, aligned; nothing when left out.
        latest: the newest revision; columns for which it has quantiles need no new ones.
    """
    spark = rows.sparkSession
    declared = declared or (DeclaredStats(),) * len(columns)
    spaces = dict(zip(latest.transformers, latest.transformations, strict=False)) if latest is not None else {}
    estimated = [
        needs_quantiles(t, spaces.get(t)) and d.quantiles is None for t, d in zip(transformers, declared, strict=True)
    ]
    aggregates = [
        F.count(F.lit(1)).alias("rows"),
        *gap_aggregates(F.hash(*[F.col(name) for name in columns])),
    ]
    for i, (transformer, name) in enumerate(zip(transformers, columns, strict=True)):
        if not transformer.data_facts.span:
            continue
        value = finite_value(spark, transformer, F.col(name))
        aggregates += [F.min(value).alias(f"min{i}"), F.max(value).alias(f"max{i}")]
        if estimated[i]:
            aggregates.append(numeric_quantiles(value, _NUMERIC_QUANTILES, _RELATIVE_ERROR).alias(f"quantiles{i}"))
    measures = rows.agg(*aggregates).collect()[0].asDict()
    texts = [i for i, t in enumerate(transformers) if estimated[i] and not t.data_facts.span]
    strings: dict[int, tuple[str, ...]] = {}
    if texts:
        wanted = [F.col(columns[i]) for i in texts]
        of_each = string_quantiles(rows, wanted, measures["rows"], _STRING_QUANTILES, _RELATIVE_ERROR)
        strings = dict(zip(texts, of_each, strict=True))
    stats = tuple(
        ColumnStats(
            measures.get(f"min{i}"),
            measures.get(f"max{i}"),
            strings.get(i) or tuple(measures.get(f"quantiles{i}") or ()),
            said,
        )
        for i, said in enumerate(declared)
    )
    return RowMeasures(stats, WeightCardinality(measures["rows"], measures[WEIGHTS], found_gaps(measures)))


def measure_rows(
    rows: DataFrame,
    snapshot: TableSnapshot,
    configuration: IndexConfiguration,
    expected: int | None = None,
    file_share: float = 1.0,
) -> RowMeasures:
    """Looks at the indexed columns of rows.

    If the number of rows is known and the table's newest revision may hold them, one Spark job tells the ranges and
    takes the sample by which they are laid out. The ranges are those of all rows.

    Args:
        rows: the rows.
        snapshot: the table that they join.
        configuration: what is to be indexed.
        expected: how many rows there are, as the log tells; None when it does not.
        file_share: rows of one file, as a share of all.
    """
    latest, names, declared = snapshot.latest_revision, configuration.logical_columns, configuration.declared
    if latest is None or not expected or not _may_join(snapshot, configuration, latest):
        return measure_columns(rows, configuration.transformers, names, declared, latest)
    spark = rows.sparkSession
    facts: dict[str, Column] = {}
    for i, (transformer, name) in enumerate(zip(configuration.transformers, names, strict=True)):
        if transformer.data_facts.span:
            value = finite_value(spark, transformer, F.col(name))
            facts |= {f"min{i}": F.min(value), f"max{i}": F.max(value)}
    sample, known = sample_of(rows, expected, columns_of(spark, snapshot, latest), file_share, facts)
    # No quantiles are estimated, as none are needed; an empty tuple says so.
    stats = tuple(ColumnStats(known.get(f"min{i}"), known.get(f"max{i}"), (), said) for i, said in enumerate(declared))
    return RowMeasures(stats, sample.cardinality, sample)


def _may_join(snapshot: TableSnapshot, configuration: IndexConfiguration, latest: Revision) -> bool:
    return (
        latest.transformers == configuration.transformers
        and configuration.cube_size in (None, latest.desired_cube_size)
        and not has_other_hash_types(snapshot, configuration)
        and not any(map(needs_quantiles, latest.transformers, latest.transformations))
    )


def has_other_hash_types(snapshot: TableSnapshot, configuration: IndexConfiguration) -> bool:
    """Whether the columns' types hash differently from when the newest revision was made."""
    latest = snapshot.latest_revision
    written_as = snapshot.configuration.get(f"{HASH_TYPES_KEY_PREFIX}{latest.revision_id}") if latest else None
    return written_as is not None and written_as != ";".join(configuration.hash_types)
