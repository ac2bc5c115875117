"""Estimates of a query's aggregates with their intervals, from sums over the rows of a sample; without Spark."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from procedures.insight.approximation.aggregate_query import NoInterval, Output, Quantile
from procedures.insight.approximation.functions import Floats, Function, Moment, Term, Value
from procedures.insight.approximation.intervals import Bools, Influences, Intervals, Method, intervals
from procedures.insight.approximation.sample_sums import ACCURACY, Clusters, QuantileShare, SampleSums, grid
from procedures.insight.approximation.value_bounds import Range

# Clusters that show a value of one row in a thousand with a probability of 95 %.
_FEWEST_WITHOUT_RANGE = 3000
# A row count of the sample that misses the known one by more standard deviations shows a weight with very many rows.
_LARGEST_DEVIATION = 4.0


@dataclass(frozen=True)
class Goal:
    """The precision that a caller requests.

    Attributes:
        tolerance: half the length of an interval, at most; in proportion to the estimate unless it is absolute.
        confidence: probability of the intervals.
        is_absolute: whether ``tolerance`` is in the unit of the aggregate.
        is_per_group: whether each interval has this probability, else all of them together.
    """

    tolerance: float
    confidence: float
    is_absolute: bool
    is_per_group: bool

    def confidence_of_each(self, count: int) -> float:
        """Returns the probability of each of so many intervals (Bonferroni)."""
        return self.confidence if self.is_per_group else 1.0 - (1.0 - self.confidence) / max(count, 1)

    def allowed(self, estimate: Floats) -> Floats:
        """Returns the largest margin of each estimate."""
        return np.full_like(estimate, self.tolerance) if self.is_absolute else self.tolerance * np.abs(estimate)


@dataclass(frozen=True, eq=False)
class Estimates:
    """The estimates of one aggregate; arrays have one value per group.

    Attributes:
        name: column of the query.
        estimate: the estimates; NaN where there is none.
        lower: lower ends of the intervals.
        upper: upper ends.
        is_met: whether the interval is within the tolerance.
        is_bounded: whether it was computed by ``Method.BOUNDED``.
        needed: fraction at which the interval is expected to be within the tolerance; NaN if unknown.
    """

    name: str
    estimate: Floats
    lower: Floats
    upper: Floats
    is_met: Bools
    is_bounded: Bools
    needed: Floats

    def method(self, group: int) -> Method:
        """Returns how the interval of a group was computed."""
        return Method.BOUNDED if self.is_bounded[group] else Method.NORMAL


@dataclass(frozen=True, eq=False)
class Estimation:
    """An estimation of the outputs of a query, with bounds of their inputs.

    Attributes:
        outputs: columns of the query.
        ranges: range of each input, infinite where it is unknown.
        rows: number of rows of the table if each of them is one row of the query; None if that is not known.
        rows_of_a_weight: number of rows that may share a weight according to the log, even if the sample has no such.
    """

    outputs: Sequence[Output]
    ranges: Sequence[Range]
    rows: int | None
    rows_of_a_weight: int

    @property
    def functions(self) -> list[tuple[str, Function]]:
        """Names and functions of the aggregates that are functions of sums."""
        return [(output.name, output.what) for output in self.outputs if isinstance(output.what, Function)]

    @property
    def quantiles(self) -> list[tuple[str, Quantile]]:
        """Names and quantiles of the other aggregates."""
        return [(output.name, output.what) for output in self.outputs if isinstance(output.what, Quantile)]

    @property
    def without_interval(self) -> list[tuple[str, NoInterval]]:
        """Names of the aggregates that have no interval, and why."""
        return [(output.name, output.what) for output in self.outputs if isinstance(output.what, NoInterval)]

    @property
    def terms(self) -> list[Term]:
        """All sums that are needed, in a fixed order."""
        of_functions = frozenset[Term]().union(*(function.terms for _, function in self.functions))
        of_quantiles = frozenset(Term(quantile.input, Moment.COUNT) for _, quantile in self.quantiles)
        return sorted(of_functions | of_quantiles, key=lambda term: (term.input, term.moment))

    def influences(self, sums: SampleSums, fraction: float) -> list[Mapping[Term, Floats] | QuantileShare]:
        """Returns the functions whose influences on the estimates ``clusters`` measures, in proportion to them."""
        values = [self._value(function, sums, fraction) for _, function in self.functions]
        functions: list[Mapping[Term, Floats] | QuantileShare] = [
            {term: slope / _scale(value.value) for term, slope in value.slopes.items()} for value in values
        ]
        return functions + [
            QuantileShare(quantile, _at(sums, quantile), 1.0 / _count(sums, quantile, fraction))
            for _, quantile in self.quantiles
        ]

    def estimates(self, sums: SampleSums, clusters: Clusters, fraction: float, goal: Goal) -> list[Estimates]:
        """Returns the estimates with their intervals.

        Args:
            sums: of the sample.
            clusters: its clusters, measured with ``influences``.
            fraction: of the weights that were read.
            goal: the requested precision.
        """
        count = len(sums.keys) * (len(self.functions) + len(self.quantiles))
        confidence = goal.confidence_of_each(count)
        made = list(self._of_functions(sums, clusters, fraction, goal, confidence))
        made += self._of_quantiles(sums, clusters, fraction, goal, confidence)
        if self._misses_rows(sums, clusters, fraction):
            made = [replace(one, is_met=np.zeros_like(one.is_met), needed=np.ones_like(one.needed)) for one in made]
        order = {output.name: position for position, output in enumerate(self.outputs)}
        return sorted(made, key=lambda one: order[one.name])

    def _of_functions(
        self, sums: SampleSums, clusters: Clusters, fraction: float, goal: Goal, confidence: float
    ) -> Iterator[Estimates]:
        for number, (name, function) in enumerate(self.functions):
            value = self._value(function, sums, fraction)
            scale = _scale(value.value)
            possible = self._possible(value, sums, clusters) / scale
            interval = intervals(_influences(clusters.influences[number], possible), fraction, confidence)
            is_shown = np.ones(len(scale), np.bool_) if self._is_bounded(value) else sums.rows >= self._fewest(clusters)
            below, above = (np.where(is_shown, end * scale, np.nan) for end in (interval.below, interval.above))
            is_unknown = np.isnan(value.value)
            margin = np.where(is_unknown, np.nan, np.maximum(below, above))
            allowed = goal.allowed(value.value)
            yield Estimates(
                name,
                value.value,
                value.value - below,
                value.value + above,
                margin <= allowed,
                interval.is_bounded,
                self._needed(fraction, margin, interval, scale, allowed),
            )

    @staticmethod
    def _needed(fraction: float, margin: Floats, interval: Intervals, scale: Floats, allowed: Floats) -> Floats:
        """The fraction at which an interval is expected to be narrow enough.

        A bounded interval becomes normal, and much narrower, as soon as the sample has enough clusters.
        """
        needed = needed_fraction(fraction, margin, allowed)
        if_normal = np.maximum(needed_fraction(fraction, interval.normal * scale, allowed), interval.normal_from)
        return np.where(interval.is_bounded, np.fmin(needed, np.where(np.isnan(margin), np.nan, if_normal)), needed)

    def _of_quantiles(
        self, sums: SampleSums, clusters: Clusters, fraction: float, goal: Goal, confidence: float
    ) -> Iterator[Estimates]:
        for number, (name, quantile) in enumerate(self.quantiles, start=len(self.functions)):
            slope = 1.0 / _count(sums, quantile, fraction)
            possible = self._rows_of_a_cluster(clusters) * max(quantile.share, 1.0 - quantile.share) * slope
            influences = _influences(clusters.influences[number], possible)
            outer = min(quantile.share, 1.0 - quantile.share) * sums.sums[Term(quantile.input, Moment.COUNT)]
            most_clusters = outer * float(sums.rows.sum()) / max(clusters.square_rows, 1.0)
            interval = intervals(influences, fraction, confidence, most_clusters=most_clusters)
            estimate = _at(sums, quantile)
            lower, upper = self._ends(sums, quantile, interval)
            margin = np.maximum(estimate - lower, upper - estimate)
            allowed = goal.allowed(estimate)
            needed = needed_fraction(fraction, margin, allowed)
            yield Estimates(name, estimate, lower, upper, margin <= allowed, interval.is_bounded, needed)

    def _ends(self, sums: SampleSums, quantile: Quantile, interval: Intervals) -> tuple[Floats, Floats]:
        """The values at the ends of an interval of shares (Woodruff, 1952), rounded outwards to the grid."""
        shares = np.array(grid(quantile.share))
        values = sums.quantiles[quantile]
        low, high = self.ranges[quantile.input]
        # The share of values up to the estimate is low where the estimate is.
        least, most = interval.above + 1.0 / ACCURACY, interval.below + 1.0 / ACCURACY
        first = np.searchsorted(shares, quantile.share - least, side="right") - 1
        last = np.searchsorted(shares, quantile.share + most, side="left")
        groups = np.arange(len(values))
        lower = np.where(first < 0, low, values[groups, np.maximum(first, 0)])
        upper = np.where(last >= len(shares), high, values[groups, np.minimum(last, len(shares) - 1)])
        unknown = np.isnan(least)
        return np.where(unknown, np.nan, lower), np.where(unknown, np.nan, upper)

    @staticmethod
    def _value(function: Function, sums: SampleSums, fraction: float) -> Value:
        return function.of({term: values / fraction for term, values in sums.sums.items()})

    def _possible(self, value: Value, sums: SampleSums, clusters: Clusters) -> Floats:
        """The largest influence that a cluster can have, per group."""
        total = np.zeros_like(value.value)
        for number in {term.input for term in value.slopes}:
            slopes = [value.slopes.get(Term(number, moment), np.zeros_like(total)) for moment in Moment]
            low, high = self._range(number, sums)
            total += _largest(slopes, low, high)
        return total * self._rows_of_a_cluster(clusters)

    def _is_bounded(self, value: Value) -> bool:
        """Whether the range of each input is known."""
        return all(math.isfinite(end) for term in value.slopes for end in self.ranges[term.input])

    def _fewest(self, clusters: Clusters) -> float:
        """The rows of a group without which a sample says nothing of values whose range is unknown."""
        return _FEWEST_WITHOUT_RANGE * self._rows_of_a_cluster(clusters)

    def _range(self, number: int, sums: SampleSums) -> Range:
        """The range of an input; where it is unknown, three times that of the sample."""
        low, high = self.ranges[number]
        if math.isfinite(low) and math.isfinite(high):
            return low, high
        least, most = (
            float(end(values[np.isfinite(values)], initial=start))
            for end, values, start in ((np.min, sums.least[number], np.inf), (np.max, sums.most[number], -np.inf))
        )
        if least > most:
            return math.nan, math.nan
        span = most - least
        return (low if math.isfinite(low) else least - span), (high if math.isfinite(high) else most + span)

    def _rows_of_a_cluster(self, clusters: Clusters) -> float:
        """The most rows that share a weight. Twice what was seen, unless no two rows share one."""
        seen = clusters.most_rows if clusters.most_rows <= 1 else 2 * clusters.most_rows
        return float(max(seen, self.rows_of_a_weight, 1))

    def _misses_rows(self, sums: SampleSums, clusters: Clusters, fraction: float) -> bool:
        """Whether the sample has far more or fewer rows than its fraction of a known number."""
        if self.rows is None or fraction >= 1.0:
            return False
        deviation = math.sqrt(1.0 - fraction) * math.sqrt(max(clusters.square_rows, 1.0)) / fraction
        return abs(float(sums.rows.sum()) / fraction - self.rows) > _LARGEST_DEVIATION * deviation


def _influences(sums: Sequence[Floats], possible: Floats) -> Influences:
    absolutes, squares, cubes, fourths, largest = sums
    return Influences(absolutes, squares, cubes, fourths, largest, possible)


def needed_fraction(fraction: float, margin: Floats, allowed: Floats) -> Floats:
    """Returns the fraction at which a margin is expected to be small enough.

    A margin is proportional to the root of (1 - f) / f.

    Args:
        fraction: that was read.
        margin: that it gave.
        allowed: the requested one.
    """
    if fraction >= 1.0:
        return np.ones_like(margin)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        odds = (1.0 - fraction) / fraction * (allowed / margin) ** 2
        return np.where(margin == 0.0, fraction, 1.0 / (1.0 + odds))


def _scale(values: Floats) -> Floats:
    return np.where(np.isfinite(values) & (values != 0.0), np.abs(values), 1.0)


def _at(sums: SampleSums, quantile: Quantile) -> Floats:
    position = grid(quantile.share).index(round(quantile.share, 9))
    values: Floats = sums.quantiles[quantile][:, position]
    return values


def _count(sums: SampleSums, quantile: Quantile, fraction: float) -> Floats:
    return np.maximum(sums.sums[Term(quantile.input, Moment.COUNT)], 1.0) / fraction


def _largest(slopes: Sequence[Floats], low: float, high: float) -> Floats:
    """The largest absolute value of a polynomial of degree 2 over a range; 0 is the influence of NULL."""
    if low > high:
        return np.zeros_like(slopes[0])
    constant, linear, square = slopes
    if not (linear.any() or square.any()):
        return np.abs(constant)
    with np.errstate(divide="ignore", invalid="ignore"):
        vertex = np.where(square != 0.0, -linear / (2.0 * square), low)
    vertex = np.clip(np.nan_to_num(vertex, nan=low), low, high)
    values = [np.abs(constant + linear * at + square * at * at) for at in (low, high, vertex)]
    largest: Floats = np.maximum.reduce(values)
    return largest
