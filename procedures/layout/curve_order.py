"""The order in which a rewrite cuts rows into files and sorts them: Hilbert's curve over quantiles of the columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, DateType, StringType, TimestampNTZType, TimestampType

from catalog.jvm.row_expressions import RowExpressions
from otree.curve import Ranks, bits_per_dimension, hilbert_keys
from otree.packing import Packing
from procedures.layout.index_columns import IndexColumns

# Enough rows for the quantiles, and for files of about equal size; few enough for the driver.
_SAMPLE_ROWS = 100_000
_SAMPLE_ROWS_PER_FILE = 200
_LARGEST_SAMPLE = 2_000_000
_SEED = 42


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


def sampled_order(
    rows: DataFrame, count: int, columns: IndexColumns, file_share: float
) -> tuple[CurveOrder, SampledRows]:
    """Chooses the quantiles by a sample of the rows, in one pass over the indexed columns.

    Args:
        rows: the rows.
        count: how many they are.
        columns: the indexed columns.
        file_share: rows of one file, as a share of all.

    Returns:
        The order, and the sample's weights and places in it.
    """
    values = [ordered_value(rows.select(column).schema[0].dataType, column) for column in columns.values]
    wanted = min(max(_SAMPLE_ROWS, int(_SAMPLE_ROWS_PER_FILE / file_share)), _LARGEST_SAMPLE)
    # Not DataFrame.sample: over an indexed source that would be a sample by weight, of low weights only.
    taken = rows if count <= wanted else rows.where(F.rand(_SEED) < wanted / count)
    found = taken.select(columns.weight.alias("weight"), *[v.alias(f"v{i}") for i, v in enumerate(values)]).toArrow()
    bits = bits_per_dimension(len(values))
    ranks, codes = [], []
    for i in range(len(values)):
        value = found.column(f"v{i}").combine_chunks()
        is_double = str(value.type) == "double"
        known = value.drop_null().to_numpy(zero_copy_only=False).astype(float if is_double else object)
        table = Ranks.of_sample(known, bits)
        code = np.zeros(len(value), np.int32)
        code[value.is_valid().to_numpy(zero_copy_only=False)] = table.codes_of(known)
        ranks.append(table)
        codes.append(code)
    weights = found.column("weight").to_numpy().astype(np.int32)
    return CurveOrder(columns.spark, tuple(values), tuple(ranks)), SampledRows(weights, hilbert_keys(codes, bits))


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
