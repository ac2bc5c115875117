"""Intervals of estimates, without Spark: their coverage and width over seeded data sets of many shapes."""

import math

import numpy as np
import pytest

from procedures.insight.approximation.aggregate_query import Output, Quantile
from procedures.insight.approximation.estimation import Estimation, Goal, needed_fraction
from procedures.insight.approximation.functions import (
    Arithmetic,
    Constant,
    Moment,
    Root,
    Term,
    count,
    mean,
    total,
    variance,
)
from procedures.insight.approximation.sample_sums import Clusters, QuantileShare, SampleSums, grid

GOAL = Goal(0.05, 0.95, is_absolute=False, is_per_group=True)
FUNCTIONS = {
    "count": count(0),
    "sum": total(0),
    "avg": mean(0),
    "stddev": Root(variance(0, of_sample=True)),
    "ratio": Arithmetic("/", total(0), Arithmetic("+", count(0), Constant(1.0))),
}
SHAPES = ("normal", "lognormal", "pareto", "zero-inflated", "rare", "correlated", "duplicates", "uneven duplicates")


def _data(shape, rng):
    """Values, NaN for NULL, and the ids whose hash is the weight."""
    rows = int(rng.integers(20_000, 100_000))
    ids = np.arange(rows)
    match shape:
        case "normal":
            values = rng.normal(rng.uniform(-5, 50), 10, rows)
        case "lognormal":
            values = rng.lognormal(0, 1.5, rows)
        case "pareto":
            values = rng.pareto(1.5, rows)
        case "zero-inflated":
            values = np.where(rng.random(rows) < 0.01, rng.exponential(100, rows), 0.0)
        case "rare":
            values = np.where(rng.random(rows) < 0.002, rng.normal(10, 3, rows), np.nan)
        case "correlated":
            values = ids / rows + rng.normal(0, 0.1, rows)
        case "duplicates":
            ids = rng.integers(0, rows // 20, rows)
            values = rng.normal(5, 3, rows // 20)[ids] + rng.normal(0, 1, rows)
        case _:
            ids = (rng.pareto(1.2, rows) * 1000).astype(int)
            values = (ids % 97) + rng.normal(0, 1, rows)
    return values, ids


def _terms(values):
    present = ~np.isnan(values)
    numbers = np.nan_to_num(values)
    moments = {Moment.COUNT: present * 1.0, Moment.SUM: numbers, Moment.SQUARES: numbers * numbers}
    return {Term(0, moment): column for moment, column in moments.items()}


def _sums(values, quantiles=()):
    present = values[~np.isnan(values)]
    ends = (present.min(), present.max()) if len(present) else (np.nan, np.nan)
    at = {}
    for quantile in quantiles:
        shares = grid(quantile.share)
        found = np.quantile(present, shares, method="inverted_cdf") if len(present) else np.full(len(shares), np.nan)
        at[quantile] = found[None, :]
    sums = {term: np.array([column.sum()]) for term, column in _terms(values).items()}
    return SampleSums(
        [()], [0], np.array([float(len(values))]), sums, {0: ends[:1] * np.ones(1)}, {0: np.array([ends[1]])}, at
    )


def _clusters(values, ids, functions):
    terms = _terms(values)
    _, inverse = np.unique(ids, return_inverse=True)
    sizes = np.bincount(inverse) if len(inverse) else np.zeros(1)
    influences = []
    for function in functions:
        if isinstance(function, QuantileShare):
            below = np.where(np.isnan(values), 0.0, (values <= function.value[0]) - function.quantile.share)
            influence = below * function.slope[0]
        else:
            influence = sum((slope[0] * terms[term] for term, slope in function.items()), np.zeros(len(values)))
        of_clusters = np.bincount(inverse, weights=influence) if len(inverse) else np.zeros(1)
        size = np.abs(of_clusters)
        powers = (size.sum(), np.sum(size**2), np.sum(of_clusters**3), np.sum(size**4), size.max())
        influences.append([np.array([power]) for power in powers])
    return Clusters(influences, int(sizes.max()), float(np.sum(sizes.astype(float) ** 2)))


def _estimates(values, ids, fraction, rng, *, quantiles=(), known=True, goal=GOAL, rows=None):
    """Estimates from a sample of the clusters, and the sample's share of rows."""
    names, inverse = np.unique(ids, return_inverse=True)
    taken = (rng.random(len(names)) < fraction)[inverse]
    ends = (np.nanmin(values), np.nanmax(values)) if known else (-math.inf, math.inf)
    outputs = [Output(name, function) for name, function in FUNCTIONS.items()]
    outputs += [Output(f"q{quantile.share}", quantile) for quantile in quantiles]
    estimation = Estimation(outputs, [ends], rows, 0)
    sums = _sums(values[taken], quantiles)
    found = _clusters(values[taken], ids[taken], estimation.influences(sums, fraction))
    return estimation.estimates(sums, found, fraction, goal)


def _truth(values, name):
    present = values[~np.isnan(values)]
    match name:
        case "count":
            return len(present)
        case "sum":
            return present.sum()
        case "avg":
            return present.mean()
        case "stddev":
            return present.std(ddof=1)
        case "ratio":
            return present.sum() / (len(present) + 1)
    return np.quantile(present, float(name[1:]), method="inverted_cdf")


def _ideal(values, ids, fraction, name):
    """Half the length of the normal interval with the variance of all clusters."""
    terms = {term: np.array([column.sum()]) for term, column in _terms(values).items()}
    slopes = FUNCTIONS[name].of(terms).slopes
    rows = sum((slope[0] * _terms(values)[term] for term, slope in slopes.items()), np.zeros(len(values)))
    of_clusters = np.bincount(np.unique(ids, return_inverse=True)[1], weights=rows)
    return 1.96 * math.sqrt((1 - fraction) / fraction * np.sum(of_clusters**2))


def _coverage(sets):
    """How often intervals held in data sets of each shape, and their widths over the ideal ones."""
    quantiles = (Quantile(0, 0.5), Quantile(0, 0.9))
    held, widths = {}, []
    for shape in SHAPES:
        rng = np.random.default_rng(SHAPES.index(shape))
        for number in range(sets):
            values, ids = _data(shape, rng)
            fraction = (0.002, 0.01, 0.05, 0.1)[number % 4]
            for made in _estimates(values, ids, fraction, rng, quantiles=quantiles):
                truth, lower, upper = _truth(values, made.name), made.lower[0], made.upper[0]
                # No interval is an honest answer, which is never within a tolerance.
                assert not (np.isnan(lower) and made.is_met[0])
                # Sums of another order differ in the last digits.
                slack = 1e-9 * abs(truth)
                holds = bool(np.isnan(lower) or lower - slack <= truth <= upper + slack)
                held.setdefault((shape, made.name), []).append(holds)
                if made.name in ("avg", "sum") and shape in ("normal", "correlated", "duplicates"):
                    widths.append((upper - lower) / 2 / _ideal(values, ids, fraction, made.name))
    return held, widths


def _check_coverage(sets):
    held, widths = _coverage(sets)
    # 95 % less four standard deviations of the test: there are 56 pairs of shape and aggregate.
    least = 0.95 * sets - 4 * math.sqrt(sets * 0.95 * 0.05)
    assert {name: sum(found) for name, found in held.items() if sum(found) < least} == {}
    assert np.mean([hold for found in held.values() for hold in found]) >= 0.95
    assert np.nanmedian(widths) < 1.3


def test_intervals_contain_the_truth_as_often_as_they_say():
    """20 data sets of each of 8 shapes, each with a prefix of 0.2 to 10 %."""
    _check_coverage(20)


@pytest.mark.slow
def test_intervals_of_1_000_data_sets():
    """125 data sets of each of 8 shapes."""
    _check_coverage(125)


@pytest.mark.parametrize(("share", "rows"), [(0.99, 50), (0.995, 100), (0.999, 300), (0.001, 300)])
@pytest.mark.parametrize("rows_of_a_weight", [1, 20])
def test_quantiles_beyond_the_ends_of_a_sample(share, rows, rows_of_a_weight):
    """No value of the sample is beyond the estimate: the others do not tell how far the quantile may be."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        values = rng.normal(50, 10, 60_000)
        ids = np.arange(60_000)
        if rows_of_a_weight > 1:
            ids //= rows_of_a_weight
            values = values[ids] + rng.normal(0, 0.01, 60_000)
        fraction = rows * rows_of_a_weight / 60_000
        made = _estimates(values, ids, fraction, rng, quantiles=(Quantile(0, share),))[-1]
        assert not made.is_met[0]
        assert made.lower[0] <= _truth(values, made.name) <= made.upper[0]


def test_a_median_has_a_normal_interval_if_there_are_eight_rows_on_each_side():
    values, ids = np.random.default_rng(1).normal(50, 10, 60_000), np.arange(60_000)
    for seed in range(20):
        taken = int((np.random.default_rng(seed).random(60_000) < 15 / 60_000).sum())
        made = _estimates(values, ids, 15 / 60_000, np.random.default_rng(seed), quantiles=(Quantile(0, 0.5),))[-1]
        assert bool(made.is_bounded[0]) == (taken < 16)


def test_a_constant_and_nothing():
    rng = np.random.default_rng(1)
    made = {e.name: e for e in _estimates(np.full(50_000, 7.0), np.arange(50_000), 0.01, rng)}
    assert (made["avg"].lower[0], made["avg"].upper[0], bool(made["avg"].is_met[0])) == (7.0, 7.0, True)
    # The slope of a root at 0 is infinite: no interval.
    assert not made["stddev"].is_met[0]
    # No value in the sample: nothing is known about any aggregate, whatever the log says about its range.
    for known in (True, False):
        values = np.full(50_000, np.nan)
        values[0] = 5.0
        found = _estimates(values, np.arange(50_000), 0.00001, rng, known=known)
        assert not any(one.is_met[0] for one in found)


def test_a_weight_that_the_sample_missed_shows_in_the_number_of_rows():
    """Half of the rows share a weight: an average of the others is met only if nobody knows."""
    rng = np.random.default_rng(4)
    ids = np.concatenate([np.arange(50_000), np.full(50_000, 999_999)])
    values = np.where(ids == 999_999, 100.0, rng.uniform(90, 100, 100_000))
    while True:
        rng = np.random.default_rng(int(rng.integers(1000)))
        state = rng.bit_generator.state
        (_, _, unaware, *_) = _estimates(values, ids, 0.01, rng)
        rng.bit_generator.state = state
        made = _estimates(values, ids, 0.01, rng, rows=100_000)
        if unaware.estimate[0] < 96:
            break
    assert unaware.is_met[0]
    assert not any(one.is_met[0] for one in made)
    assert all(one.needed[0] == 1.0 for one in made)


def test_all_intervals_together_are_wider():
    assert Goal(0.1, 0.95, False, False).confidence_of_each(10) == pytest.approx(0.995)
    assert GOAL.confidence_of_each(10) == 0.95


def test_the_fraction_that_is_needed():
    # From 1 % with twice the margin: four times the odds.
    needed = needed_fraction(0.01, np.array([2.0, 0.0, np.nan, np.inf]), np.array([1.0, 1.0, 1.0, 1.0]))
    assert needed[0] == pytest.approx(1 / (1 + 99 / 4))
    assert needed[1] == 0.01
    assert np.isnan(needed[2])
    assert needed[3] == 1.0
    assert needed_fraction(1.0, np.array([0.0]), np.array([0.0])).tolist() == [1.0]


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.9, 0.99995, 1.0])
def test_the_grid_of_quantiles(share):
    shares = grid(share)
    assert list(shares) == sorted(set(shares))
    assert {0.0, 1.0, round(share, 9)} <= set(shares)


def test_a_bounded_interval_expects_to_become_normal():
    """A small sample has a wide interval, and still does not expect to need all rows."""
    rng = np.random.default_rng(4)
    values = rng.exponential(1.0, 60_000)
    ids = np.arange(len(values))
    small = {made.name: made for made in _estimates(values, ids, 0.002, rng)}["sum"]
    expected = float(small.needed[0])
    assert small.is_bounded[0]
    bounded = needed_fraction(0.002, small.upper - small.estimate, GOAL.allowed(small.estimate))
    assert 0.002 < expected < 0.3 * bounded[0]
    large = {made.name: made for made in _estimates(values, ids, 1.5 * expected, rng)}["sum"]
    assert (large.is_bounded[0], large.is_met[0]) == (False, True)


def test_no_row_expects_nothing():
    empty = np.array([])
    for made in _estimates(np.concatenate([empty, [1.0, 2.0]]), np.arange(2), 1e-9, np.random.default_rng(1)):
        assert np.isnan(made.needed[0]) or 0.0 < made.needed[0] <= 1.0
