"""Confidence intervals for functions of sums, from the rows whose weights are in a prefix.

Rows with equal indexed values have one weight, and are in a sample together. The unit of sampling is therefore the
*cluster*: the rows of one weight. Weights are hashes, so each cluster is in the prefix of fraction f with probability
f, independently of others: Poisson sampling.

The influence of a cluster on a function g of sums is the sum over g's derivatives times the cluster's share of the
sums. A function of sums is estimated by the same function of the sums of the sample divided by f. Its variance is
estimated by (1 - f) / f² times the sum of the squares of the influences of the clusters in the sample.

Source:
    Särndal, Swensson, Wretman: Model Assisted Survey Sampling (1992), sections 3.2 (Poisson sampling) and 5.5
    (linearization).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# With fewer clusters that matter, the sample says too little about the distribution.
_FEWEST_CLUSTERS = 8.0
# With a larger influence in proportion to the root of the sum of squares, one cluster that was not read can matter as
# much as the spread of those that were (Lindeberg's condition).
_LARGEST_SHARE = 0.35
# Of the doubt that is allowed, the share that one look uses. By simulation of the looks: bench/interval_coverage.py.
_OF_A_LOOK = 0.6
# An unread cluster is assumed to have at most so many times the influence of the largest cluster that was read, if
# nothing else is known.
_UNREAD_TO_READ = 2.0
# Exponential influences have about this ratio of the fourth-order to the second-order number of clusters; that of
# heavier tails is smaller.
_LIGHT_TAIL = 0.3
# Largest influences by which an interval is extended per power of ten of the ratio, and at most. Chosen by simulation
# for a coverage of 0.95 down to tails without a variance (Pareto, index 1.5).
_PER_POWER_OF_TEN = 2.0
_MOST_EXTENSION = 6.0
_LEAST_SKEWNESS = 1e-6


class Method(str, Enum):
    """How an interval was computed."""

    EXACT = "exact"
    """All rows were read."""
    NORMAL = "normal"
    """From the normal distribution, corrected for skewness, for few clusters and for the tail that was not read."""
    BOUNDED = "bounded"
    """From Bernstein's inequality, which holds for every distribution within the bounds of the values. It is wide."""


@dataclass(frozen=True, eq=False)
class Influences:
    """The influences of the clusters of a sample, per group.

    Attributes:
        absolutes: sum of their absolute values.
        squares: sum of their squares.
        cubes: sum of their third powers.
        fourths: sum of their fourth powers.
        largest: the largest absolute influence of a cluster that was read.
        possible: the largest absolute influence that a cluster can have; NaN if unknown. There is no interval if it is
            unknown and no cluster has an influence.
    """

    absolutes: Floats
    squares: Floats
    cubes: Floats
    fourths: Floats
    largest: Floats
    possible: Floats


@dataclass(frozen=True, eq=False)
class Intervals:
    """An interval per group, relative to the estimate; all arrays have one value per group.

    Attributes:
        below: distance of its lower end from the estimate; NaN without an interval.
        above: distance of its upper end.
        is_bounded: whether it is ``Method.BOUNDED``.
        normal: the longer distance of a normal interval, whether or not the interval is one.
        normal_from: the fraction from which on the interval is expected to be normal; infinite if that is not known.
    """

    below: Floats
    above: Floats
    is_bounded: Bools
    normal: Floats
    normal_from: Floats


def intervals(
    influences: Influences, fraction: float, confidence: float, *, most_clusters: Floats | None = None
) -> Intervals:
    """Returns a confidence interval per group.

    The number of clusters that matter is the square of the sum of squares over the sum of fourth powers. With 8 or
    more, and if no cluster can matter as much as the spread of those that were read, the interval is normal: Student's
    quantile for that number, the transformation of Hall for skewness, and an extension on the side of the tail if the
    tail is heavy. Otherwise it is bounded, because the sample does not show the deciding tail.

    Args:
        influences: of the clusters in the sample.
        fraction: of the weights that were read, above 0 and at most 1.
        confidence: probability with which each interval contains the truth, between 0 and 1. The interval of one
            look has a higher one, because the looks before it ended with an interval that was too wide.
        most_clusters: upper limit of the number of clusters that matter, if one is known besides the influences.

    Source:
        Hall: On the Removal of Skewness by Transformation (1992). Lindeberg: Eine neue Herleitung des
        Exponentialgesetzes in der Wahrscheinlichkeitsrechnung (1922).
    """
    if fraction >= 1.0:
        nothing = np.zeros_like(influences.squares)
        return Intervals(nothing, nothing, np.zeros(len(nothing), dtype=np.bool_), nothing, nothing)
    doubt = _OF_A_LOOK * (1.0 - confidence)
    possible = np.where(np.isnan(influences.possible), _UNREAD_TO_READ * influences.largest, influences.possible)
    possible = np.maximum(possible, influences.largest)
    with np.errstate(divide="ignore", invalid="ignore"):
        number = np.where(influences.fourths > 0.0, influences.squares**2 / influences.fourths, 0.0)
        if most_clusters is not None:
            number = np.minimum(number, most_clusters)
        deviation = np.sqrt((1.0 - fraction) * influences.squares) / fraction
        skewness = influences.cubes * (1.0 - 2.0 * fraction) / influences.squares**1.5 / math.sqrt(1.0 - fraction)
        tail = number / (influences.absolutes**2 / influences.squares)
        powers = np.clip(_PER_POWER_OF_TEN * np.log10(_LIGHT_TAIL / tail), 0.0, _MOST_EXTENSION)
    extension = powers * influences.largest * math.sqrt(1.0 - fraction) / fraction
    quantile = _student(np.maximum(number, _FEWEST_CLUSTERS), doubt)
    below = deviation * _unskewed(quantile, skewness) + np.where(skewness < 0.0, extension, 0.0)
    above = -deviation * _unskewed(-quantile, skewness) + np.where(skewness > 0.0, extension, 0.0)
    # Without a spread there is no normal interval: all influences are equal, or there are none.
    is_uneven = possible > _LARGEST_SHARE * np.sqrt(influences.squares)
    is_bounded = ((number < _FEWEST_CLUSTERS) | is_uneven) & (possible > 0.0)
    bound = _bernstein(influences.squares, possible, fraction, doubt)
    is_unknown = np.isnan(influences.squares) | (np.isnan(influences.possible) & (influences.largest == 0.0))
    normal = np.maximum(below, above)
    ends = [np.where(is_bounded, bound, np.where(possible == 0.0, 0.0, end)) for end in (below, above)]
    below, above = (np.where(is_unknown, np.nan, end) for end in ends)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Both the sum of squares and the number of clusters grow in proportion to the fraction.
        growth = np.maximum((possible / _LARGEST_SHARE) ** 2 / influences.squares, _FEWEST_CLUSTERS / number)
    normal_from = np.nan_to_num(fraction * growth, nan=np.inf, posinf=np.inf)
    return Intervals(below, above, is_bounded, normal, normal_from)


def _unskewed(quantile: Floats, skewness: Floats) -> Floats:
    """Returns the quantile of a studentized estimate whose distribution has a skewness."""
    with np.errstate(divide="ignore", invalid="ignore"):
        transformed = 3.0 / skewness * (np.cbrt(1.0 + skewness * (quantile - skewness / 6.0)) - 1.0)
    result: Floats = np.where(np.abs(skewness) < _LEAST_SKEWNESS, quantile, transformed)
    return result


def _student(degrees: Floats, doubt: float) -> Floats:
    """Returns the two-sided quantile of Student's distribution.

    Source:
        Abramowitz, Stegun: Handbook of Mathematical Functions (1964), 26.7.5.
    """
    z = NormalDist().inv_cdf(1.0 - doubt / 2.0)
    first = (z**3 + z) / 4.0
    second = (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    third = (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0
    quantile: Floats = z + first / degrees + second / degrees**2 + third / degrees**3
    return quantile


def _bernstein(squares: Floats, possible: Floats, fraction: float, doubt: float) -> Floats:
    """Returns a margin that an estimate exceeds with probability ``doubt`` at most, whatever the distribution.

    The sum of squares of the sample bounds that of all clusters from above (lower tail), and this bounds both tails of
    the estimate.

    Source:
        Bernstein's inequality for independent bounded summands; Maurer, Pontil: Empirical Bernstein Bounds (2009).
    """
    log = math.log(3.0 / doubt)
    expected = (np.sqrt(squares + possible**2 * log / 2.0) + possible * math.sqrt(log / 2.0)) ** 2
    largest_step = possible * max(fraction, 1.0 - fraction)
    margin: Floats = (np.sqrt(2.0 * (1.0 - fraction) * expected * log) + largest_step * log / 3.0) / fraction
    return margin
