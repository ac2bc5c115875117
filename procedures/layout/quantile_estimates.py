"""Quantiles of columns, estimated from the data."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from otree.transformation.string_quantiles import LONGEST_ESTIMATE

# Strings are estimated from a sample that the driver holds.
LARGEST_SAMPLE = 250_000
_SEED = 42


def fractions(count: int) -> list[float]:
    """The fractions that ``count`` quantiles stand for, from 0 to 1."""
    return [i / (count - 1) for i in range(count)]


def numeric_quantiles(value: Column, count: int, relative_error: float) -> Column:
    """An aggregate: ``count`` quantiles of a numeric column as an array, null when all values are null.

    Args:
        value: the column.
        count: number of quantiles, at least 2.
        relative_error: how far a quantile's rank may be off, as a share of the rows.
    """
    return F.percentile_approx(value, fractions(count), max(1, math.ceil(1 / relative_error)))


def string_quantiles(
    rows: DataFrame, columns: Sequence[Column], row_count: int, count: int, relative_error: float
) -> list[tuple[str, ...]]:
    """Quantiles of string columns, from one bounded random sample of the rows.

    Args:
        rows: the data.
        columns: the columns.
        row_count: rows in the data, about.
        count: number of quantiles, at least 2.
        relative_error: how far a quantile's rank may be off (in 19 of 20 cases), as a share of the rows; what needs
            more than ``LARGEST_SAMPLE`` rows is estimated from so many.

    Returns:
        Per column, the quantiles with repetitions; none when all strings are null. They are cut to the length that
        an index keeps.
    """
    # The Dvoretzky-Kiefer-Wolfowitz bound: ln(2 / 0.05) / (2 error^2) rows.
    wanted = min(LARGEST_SAMPLE, math.ceil(math.log(40) / (2 * relative_error**2)))
    if row_count > wanted:
        rows = rows.where(F.rand(_SEED) < wanted / row_count)
    shortened = [F.substring(column, 1, LONGEST_ESTIMATE).alias(f"c{i}") for i, column in enumerate(columns)]
    sample = rows.select(*shortened).collect()
    quantiles = []
    for i in range(len(columns)):
        # Python compares strings by code points, which is the order of their UTF-8 bytes.
        values = sorted(row[i] for row in sample if row[i] is not None)
        quantiles.append(tuple(values[round(f * (len(values) - 1))] for f in fractions(count)) if values else ())
    return quantiles
