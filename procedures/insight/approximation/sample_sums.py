"""Sums over the rows of a sample, and the influences of its clusters, by Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from catalog.errors import TooComplexError
from catalog.jvm.local_rows import local_data_frame
from procedures.insight.approximation.aggregate_query import Quantile
from procedures.insight.approximation.functions import Floats, Moment, Term
from procedures.insight.approximation.sampled_source import GROUP, WEIGHT, input_column, key_column
from procedures.insight.approximation.source_columns import text_of

MOST_GROUPS = 100_000
# Of percentile_approx: an error of a rank is at most one of so many.
ACCURACY = 10_000
# Distances of the grid of quantiles from a share: each is so many times the one before.
_GRID_RATIO = 1.15
_GRID_FIRST = 1e-4


# Sums over the influences of clusters: the first arguments of ``Influences``.
POWERS: tuple[Callable[[Column], Column], ...] = (
    lambda influence: F.sum(F.abs(influence)),
    lambda influence: F.sum(influence * influence),
    lambda influence: F.sum(influence * influence * influence),
    lambda influence: F.sum(influence * influence * influence * influence),
    lambda influence: F.max(F.abs(influence)),
)


def grid(share: float) -> tuple[float, ...]:
    """Returns the shares whose quantiles are read around one share, ascending.

    Args:
        share: between 0 and 1.
    """
    steps = _GRID_FIRST * _GRID_RATIO ** np.arange(62)
    shares = {share, 0.0, 1.0, *(share - steps), *(share + steps)}
    return tuple(sorted(round(float(s), 9) for s in shares if 0.0 <= s <= 1.0))


@dataclass(frozen=True, eq=False)
class SampleSums:
    """Sums over the rows of a sample.

    Attributes:
        keys: keys of each group as texts.
        groups: hash of each group's keys.
        rows: number of rows, per group.
        sums: each sum, per group.
        least: smallest value of each input, per group; NaN without one.
        most: largest value of each input, per group.
        quantiles: values at ``grid`` of each quantile, a row per group; NaN without a value.
    """

    keys: Sequence[tuple[str | None, ...]]
    groups: Sequence[int]
    rows: Floats
    sums: Mapping[Term, Floats]
    least: Mapping[int, Floats]
    most: Mapping[int, Floats]
    quantiles: Mapping[Quantile, Floats]


@dataclass(frozen=True, eq=False)
class Clusters:
    """The clusters of a sample: rows of one weight and group.

    Attributes:
        influences: sums of powers of the influences on each function, per group, in the order of ``POWERS``.
        most_rows: rows of the largest cluster.
        square_rows: sum over all clusters of the squares of their numbers of rows.
    """

    influences: Sequence[Sequence[Floats]]
    most_rows: int
    square_rows: float


def moment(term: Term) -> Column:
    """Returns a row's share of a sum."""
    value = F.col(input_column(term.input))
    match term.moment:
        case Moment.COUNT:
            return value.isNotNull().cast("double")
        case Moment.SUM:
            return F.coalesce(value, F.lit(0.0))
    return F.coalesce(value * value, F.lit(0.0))


def sample_sums(rows: DataFrame, keys: int, terms: Sequence[Term], quantiles: Sequence[Quantile]) -> SampleSums:
    """Returns the sums of each group, by one Spark job.

    Args:
        rows: of the sample, see ``SampledSource.rows``.
        keys: number of keys.
        terms: the sums.
        quantiles: the quantiles.

    Raises:
        TooComplexError: there are more groups than the driver takes.
    """
    inputs = sorted({term.input for term in terms} | {quantile.input for quantile in quantiles})
    asked = [
        F.count(F.lit(1)).cast("double"),
        *(F.sum(moment(term)) for term in terms),
        *(F.min(input_column(number)) for number in inputs),
        *(F.max(input_column(number)) for number in inputs),
        *(F.percentile_approx(input_column(q.input), list(grid(q.share)), ACCURACY) for q in quantiles),
    ]
    names = [key_column(number) for number in range(keys)]
    asked = [column.alias(f"a{number}") for number, column in enumerate(asked)]
    grouped = rows.groupBy(GROUP, *names).agg(*asked) if keys else rows.agg(F.lit(0).alias(GROUP), *asked)
    texts = [text_of(field) for field in grouped.select(*names).schema.fields]
    ordered = grouped.orderBy(*names) if keys else grouped
    groups = (
        ordered.select(*texts, GROUP, *(f"a{number}" for number in range(len(asked)))).limit(MOST_GROUPS + 1).collect()
    )
    hashes = [row[GROUP] for row in groups]
    if len(groups) > MOST_GROUPS or len(set(hashes)) < len(hashes):
        raise TooComplexError.of("query", f"at most {MOST_GROUPS:,} groups")
    columns = [[row[keys + 1 + number] for row in groups] for number in range(len(asked))]
    numbers = [_floats(column) for column in columns[: len(asked) - len(quantiles)]]
    sums, ends = numbers[1 : 1 + len(terms)], numbers[1 + len(terms) :]
    least, most = ends[: len(inputs)], ends[len(inputs) :]
    return SampleSums(
        [tuple(row[:keys]) for row in groups],
        hashes,
        numbers[0],
        # A sum over no rows is NULL.
        {term: np.where(numbers[0] == 0.0, 0.0, column) for term, column in zip(terms, sums, strict=True)},
        dict(zip(inputs, least, strict=True)),
        dict(zip(inputs, most, strict=True)),
        {
            quantile: np.array([values or [np.nan] * len(grid(quantile.share)) for values in column], dtype=np.float64)
            for quantile, column in zip(quantiles, columns[len(asked) - len(quantiles) :], strict=True)
        },
    )


def _floats(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class QuantileShare:
    """The share of values up to an estimated quantile, as a function whose influence is measured.

    Attributes:
        quantile: which one.
        value: the estimate, per group.
        slope: influence of a row, per group.
    """

    quantile: Quantile
    value: Floats
    slope: Floats


def clusters(
    rows: DataFrame,
    sums: SampleSums,
    functions: Sequence[Mapping[Term, Floats] | QuantileShare],
) -> Clusters:
    """Returns the influences of the clusters on some functions, by one Spark job.

    Args:
        rows: of the sample.
        sums: of the same rows.
        functions: derivative of each function by each sum, per group.
    """
    numbers: list[Floats] = []
    influences: list[Column] = []
    for function in functions:
        influence, parameters = _influence(function, len(numbers))
        influences.append(influence)
        numbers.extend(parameters)
    grouped = _with_parameters(rows, sums, numbers)
    named = [influence.alias(f"e{n}") for n, influence in enumerate(influences)]
    of_rows = grouped.select("n", WEIGHT, *named)
    of_clusters = of_rows.groupBy("n", WEIGHT).agg(
        F.count(F.lit(1)).cast("double").alias("rows"), *(F.sum(f"e{n}").alias(f"e{n}") for n in range(len(named)))
    )
    powers = [power(F.col(f"e{n}")) for n in range(len(named)) for power in POWERS]
    found: list[Row] = of_clusters.groupBy("n").agg(F.max("rows"), F.sum(F.pow("rows", F.lit(2))), *powers).collect()
    result = np.zeros((len(sums.keys), len(powers)))
    for row in found:
        result[row["n"]] = [np.nan if value is None else value for value in row[3:]]
    most_rows = max((int(row[1]) for row in found), default=0)
    square_rows = float(sum(row[2] for row in found))
    columns = [result[:, number] for number in range(len(powers))]
    each = len(POWERS)
    return Clusters([columns[n * each : (n + 1) * each] for n in range(len(named))], most_rows, square_rows)


def _influence(function: Mapping[Term, Floats] | QuantileShare, first: int) -> tuple[Column, list[Floats]]:
    """The influence of a row, and the parameters in it, which are columns ``p<first>`` and on."""
    if isinstance(function, QuantileShare):
        value = F.col(input_column(function.quantile.input))
        below = (value <= F.col(f"p{first}")).cast("double") - F.lit(function.quantile.share)
        return F.coalesce(below, F.lit(0.0)) * F.col(f"p{first + 1}"), [function.value, function.slope]
    terms = list(function)
    parts = [F.col(f"p{first + number}") * moment(term) for number, term in enumerate(terms)]
    return reduce(lambda a, b: a + b, parts, F.lit(0.0)), [function[term] for term in terms]


def _with_parameters(rows: DataFrame, sums: SampleSums, numbers: Sequence[Floats]) -> DataFrame:
    """The rows with the number of their group and the parameters of it."""
    names = [f"p{n}" for n in range(len(numbers))]
    if sums.groups == [0]:
        constants = [F.lit(float(values[0])).alias(name) for name, values in zip(names, numbers, strict=True)]
        return rows.select("*", F.lit(0).alias("n"), *constants)
    ddl = ", ".join(["group bigint", "n int", *(f"{name} double" for name in names)])
    data = [(group, n, *(float(values[n]) for values in numbers)) for n, group in enumerate(sums.groups)]
    parameters = local_data_frame(rows.sparkSession, data, ddl)
    return rows.join(F.broadcast(parameters), rows[GROUP] == parameters["group"])
