"""The file of each row: Hilbert's curve over quantiles of the columns, cut into files by a sample of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog.files.file_rows import TEXT_BYTES
from catalog.jvm.row_expressions import RowExpressions, repartition_by_number
from otree.cube import CubeId
from otree.curve import Ranks, RowsBeside, bits_per_dimension, hilbert_keys
from otree.growth import grow
from otree.packing import Packing, pack
from otree.tree import CubeState, Tree
from otree.value_spread import ValueSpread
from procedures.layout.index_columns import IndexColumns
from procedures.layout.row_measures import RowSample

# Targets at which a file is closed whatever the packing says.
_LARGEST_FILE = 1.9
# Pages are sorted by a column with fewer different values in a sample than this share of its rows.
_FEW_VALUES = 0.5
_KEY, _FILE, _PAGE = "__use_curve_key", "__use_file", "__use_page"
# What ``monotonically_increasing_id`` counts with inside a Spark partition.
_POSITION = (1 << 33) - 1


@dataclass(frozen=True, eq=False)
class SampledRows:
    """A random sample of the rows: weights, and places on the curve."""

    weights: NDArray[np.int32]
    keys: NDArray[np.int64]


@dataclass(frozen=True)
class CurveOrder:
    """The curve over the rows of one rewrite.

    It follows the values themselves and not the index's coordinates: ranges of strings stay together in files even
    where their coordinate is a hash, and skewed numbers are spread evenly.

    Attributes:
        values: per indexed column its value as DOUBLE or BINARY, in the column's order.
        ranks: their codes, aligned.
    """

    spark: SparkSession
    values: tuple[Column, ...]
    ranks: tuple[Ranks, ...]

    @property
    def key(self) -> Column:
        """The row's place on the curve, as a BIGINT."""
        expressions = RowExpressions(self.spark)
        codes = [expressions.rank(value, ranks) for value, ranks in zip(self.values, self.ranks, strict=True)]
        return expressions.hilbert_key(codes, bits_per_dimension(len(self.values)))

    def file(self, packing: Packing, weight: Column, key: Column, spread: Column) -> Column:
        """The number of the row's file.

        Args:
            packing: the files.
            weight: the row's weight, INT.
            key: its place on the curve, BIGINT.
            spread: a BIGINT that differs between rows of one place.
        """
        return RowExpressions(self.spark).file(weight, key, spread, packing)


def sampled_order(sample: RowSample, beside: Sequence[ValueSpread | None] = ()) -> tuple[CurveOrder, SampledRows]:
    """Chooses the quantiles by a sample of the rows and the ranges of the files beside them.

    Args:
        sample: the sample.
        beside: how the other rows of the table lie over the values of each column, None where nothing is known; empty
            where there are none.

    Returns:
        The order, and the sample's weights and places in it.
    """
    bits = bits_per_dimension(len(sample.expressions))
    ranks, codes = [], []
    for i in range(len(sample.expressions)):
        value = sample.table.column(f"v{i}").combine_chunks()
        is_double = str(value.type) == "double"
        known = value.drop_null().to_numpy(zero_copy_only=False).astype(float if is_double else object)
        table = Ranks.of_sample(known, bits, _rows_beside(beside[i] if beside else None, sample.rows))
        code = np.zeros(len(value), np.int32)
        code[value.is_valid().to_numpy(zero_copy_only=False)] = table.codes_of(known)
        ranks.append(table)
        codes.append(code)
    order = CurveOrder(sample.columns.spark, sample.expressions, tuple(ranks))
    return order, SampledRows(sample.weights, hilbert_keys(codes, bits))


def _rows_beside(spread: ValueSpread | None, rows: int) -> RowsBeside | None:
    if spread is None:
        return None
    return RowsBeside(spread.rows / (spread.rows + rows), lambda values: spread.below(_numbers(values)))


def _numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    """Values as the ranges of files have them: texts become numbers by their first bytes."""
    if values.dtype.kind == "f":
        return values
    return np.array([float(int.from_bytes(v[:TEXT_BYTES].ljust(TEXT_BYTES, b"\0"), "big")) for v in values])


@dataclass(frozen=True)
class Layout:
    """Where each row goes.

    Attributes:
        tree: thresholds of the cubes.
        order: the curve along which rows are cut and sorted.
        packing: file of each weight and place on the curve.
        rows: number of rows.
        largest_file: rows after which a file is closed and another begun, so that none is above two targets even if
            the sample misled.
        page_column: position of the indexed column by which the rows of a page are sorted; None to leave them along
            the curve.
    """

    tree: Tree
    order: CurveOrder
    packing: Packing
    rows: int
    largest_file: int
    page_column: int | None


def grown_tree(sample: RowSample, current: Tree, existing: Mapping[CubeId, CubeState]) -> Tree:
    """The tree that rows join, grown where cubes would hold too many rows with them.

    Args:
        sample: a sample of the rows.
        current: the current tree of their revision.
        existing: live cubes of the revision without the files that the rows come from.
    """
    return grow(current, existing, sample.placed, sample.columns.revision.desired_cube_size)


def lay_out(
    sample: RowSample,
    tree: Tree,
    file_share: float,
    beside: int = 0,
    weight_span: float = 1.0,
    other_values: Sequence[ValueSpread | None] = (),
    fractions: Sequence[float] = (),
) -> Layout:
    """Packs rows into files by a sample of them.

    Args:
        sample: a sample of the rows to place.
        tree: the tree that they join.
        file_share: rows of one file, as a share of all rows; above 1 when all fit in one.
        beside: rows of the revision in files that stay.
        weight_span: length of the range of weights that the rows come from, as a share of all weights.
        other_values: how the other rows of the table lie over the values of each column; see ``sampled_order``.
        fractions: samples for which bands end too.
    """
    order, sampled = sampled_order(sample, other_values)
    target_rows = max(1, int(sample.rows * file_share))
    packing = pack(sampled.weights, sampled.keys, sample.rows, target_rows, beside, weight_span, fractions)
    return Layout(tree, order, packing, sample.rows, int(target_rows * _LARGEST_FILE) + 1, _page_column(sample))


def _page_column(sample: RowSample) -> int | None:
    """The indexed column with the fewest different values, if it has any value several times.

    Equal values that follow each other take almost no bytes in a file.
    """
    values = [sample.table.column(f"v{i}") for i in range(len(sample.expressions))]
    counts = [pc.count_distinct(each, mode="all").as_py() for each in values]
    fewest = min(counts)
    return counts.index(fewest) if len(counts) > 1 and fewest < _FEW_VALUES * len(sample.table) else None


def arranged(
    rows: DataFrame, layout: Layout, columns: IndexColumns, page_rows: int, partition_columns: Sequence[str] = ()
) -> DataFrame:
    """The same rows, one Spark partition per file, each sorted along the curve so that pages can be skipped.

    Args:
        rows: the rows.
        layout: where each goes.
        columns: their place in the revision.
        page_rows: rows of the smallest pages.
        partition_columns: names of columns that split files, for rows of several table partitions. The rows of a table
            partition then come in one Spark partition, in the order of their files.
    """
    keyed = rows.withColumn(_KEY, layout.order.key)
    file = layout.order.file(layout.packing, columns.weight, F.col(_KEY), _spread(rows, layout.packing))
    if partition_columns:
        split = [F.col("`" + name.replace("`", "``") + "`") for name in partition_columns]
        numbered = keyed.withColumn(_FILE, file).repartition(*split)
        return numbered.sortWithinPartitions(*split, _FILE, _KEY).drop(_KEY, _FILE)
    along_curve = repartition_by_number(keyed, layout.packing.files, file).sortWithinPartitions(_KEY).drop(_KEY)
    if layout.page_column is None:
        return along_curve
    return _sorted_in_pages(along_curve, columns.values[layout.page_column], page_rows)


def _sorted_in_pages(rows: DataFrame, column: Column, page_rows: int) -> DataFrame:
    """The same rows in the same pages, each page sorted by a column so that it takes fewer bytes.

    The first page of a file stays as it is: the writer decides by it whether the column has a dictionary.
    """
    position = F.monotonically_increasing_id().bitwiseAND(_POSITION)
    paged = rows.withColumn(_PAGE, F.floor(position / page_rows))
    return paged.sortWithinPartitions(_PAGE, F.when(F.col(_PAGE) > 0, column)).drop(_PAGE)


def _spread(rows: DataFrame, packing: Packing) -> Column:
    """A number that differs between rows of the same place, where any place is too large for one file."""
    if not packing.spreads:
        return F.lit(0).cast("bigint")
    atomic = [f.name for f in rows.schema.fields if f.dataType.typeName() not in ("map", "variant", "array", "struct")]
    return F.xxhash64(*[F.col("`" + name.replace("`", "``") + "`") for name in atomic])
