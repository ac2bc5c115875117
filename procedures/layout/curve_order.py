"""The order in which a rewrite cuts rows into files and sorts them: Hilbert's curve over quantiles of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, SparkSession

from catalog.files.file_bounds import TEXT_BYTES
from catalog.jvm.row_expressions import RowExpressions
from otree.curve import Ranks, RowsBeside, bits_per_dimension, hilbert_keys
from otree.packing import Packing
from otree.value_spread import ValueSpread
from procedures.layout.row_sample import RowSample


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
