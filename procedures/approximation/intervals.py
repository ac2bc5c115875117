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

# The skewness of an estimate that is normal enough: Cochran's rule of 25 squared skewnesses (Sampling Techniques,
# 1977, section 2.15).
_LARGEST_SKEWNESS = 0.25
# An unread cluster is taken to have at most so many times the influence of the largest that was read, where nothing
# else is known.
_UNREAD_TO_READ = 2.0
# The series for quantiles of Student's distribution is exact to 1 % from here; more doubt makes an interval bounded
# anyway.
_FEWEST_DEGREES = 4.0


class Method(str, Enum):
    """How an interval was computed."""

    EXACT = "exact"
    """All rows were read."""
    NORMAL = "normal"
    """From the normal distribution: no cluster can have so much influence that the estimate is skewed."""
    BOUNDED = "bounded"
    """From Bernstein's inequality, which holds for every distribution within the bounds of the values. It is wide."""


@dataclass(frozen=True, eq=False)
class Influences:
    """The influences of the clusters of a sample, per group.

    Attributes:
        squares: sum of their squares.
        fourths: sum of their fourth powers.
        largest: the largest absolute influence of a cluster that was read.
        possible: the largest absolute influence that a cluster can have; NaN if unknown. There is no interval if it is
            unknown and no cluster has an influence.
    """

    squares: Floats
    fourths: Floats
    largest: Floats
    possible: Floats


@dataclass(frozen=True, eq=False)
class Intervals:
    """An interval per group; all arrays have one value per group.

    Attributes:
        estimate: the estimate.
        margin: half the length of the interval.
        bounded: whether it is ``Method.BOUNDED``.
    """

    estimate: Floats
    margin: Floats
    bounded: Bools


def intervals(estimate: Floats, influences: Influences, fraction: float, confidence: float) -> Intervals:
    """Returns a confidence interval per group.

    Args:
        estimate: the estimates.
        influences: of the clusters in the sample.
        fraction: of the weights that were read, above 0 and at most 1.
        confidence: probability with which each interval contains the truth, between 0 and 1.
    """
    if fraction >= 1.0:
        return Intervals(estimate, np.zeros_like(estimate), np.zeros(len(estimate), dtype=np.bool_))
    doubt = 1.0 - confidence
    possible = np.where(np.isnan(influences.possible), _UNREAD_TO_READ * influences.largest, influences.possible)
    possible = np.maximum(possible, influences.largest)
    variance = (1.0 - fraction) * influences.squares
    # The third moment is at most the largest influence times the second one.
    skewed = possible > _LARGEST_SKEWNESS * np.sqrt(variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        # The variance of the estimated variance has as many degrees of freedom.
        degrees = np.where(influences.fourths > 0.0, 2.0 * influences.squares**2 / influences.fourths, np.inf)
    normal = _student(np.maximum(degrees, _FEWEST_DEGREES), doubt) * np.sqrt(variance) / fraction
    margin = np.where(skewed, _bernstein(influences.squares, possible, fraction, doubt), normal)
    unknown = np.isnan(estimate) | (np.isnan(influences.possible) & (influences.largest == 0.0))
    return Intervals(estimate, np.where(unknown, np.nan, margin), skewed & (margin > 0.0))


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
