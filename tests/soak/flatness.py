"""Decides whether a resource stays flat or grows, from samples that were taken at equal distances.

The first third of the samples is the warm-up: caches fill and classes are loaded. A resource grows if both estimates of
its growth from the middle third to the last third exceed what is allowed. The estimates are the difference of the
medians and the slope of Theil and Sen over both thirds. The saw-tooth of periodic clean-ups rarely moves both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

LEAST_SAMPLES = 9
ALLOWED_SHARE = 0.10


@dataclass(frozen=True)
class Allowance:
    """Growth that is allowed: a share of the median of the middle third, and a constant in the unit of the resource."""

    constant: float
    share: float = ALLOWED_SHARE


@dataclass(frozen=True)
class Trend:
    """How a resource developed.

    Attributes:
        first: median of the first third.
        middle: median of the middle third.
        last: median of the last third.
        slope: of Theil and Sen over the last two thirds, from the middle of one third to the middle of the next one.
        allowed: growth that is allowed between the two.
    """

    first: float
    middle: float
    last: float
    slope: float
    allowed: float

    @property
    def grows(self) -> bool:
        """Whether both estimates exceed what is allowed."""
        return min(self.last - self.middle, self.slope) > self.allowed


def trend(samples: Sequence[float], allowance: Allowance) -> Trend:
    """Returns the trend of at least ``LEAST_SAMPLES`` samples.

    Args:
        samples: in the order of time.
        allowance: what is allowed.

    Raises:
        ValueError: there are too few samples.
    """
    if len(samples) < LEAST_SAMPLES:
        raise ValueError(f"{len(samples)} samples; at least {LEAST_SAMPLES} are needed")
    third = len(samples) // 3
    first, middle, last = samples[: -2 * third], samples[-2 * third : -third], samples[-third:]
    allowed = allowance.constant + allowance.share * median(middle)
    return Trend(median(first), median(middle), median(last), third * slope([*middle, *last]), allowed)


def slope(samples: Sequence[float]) -> float:
    """Returns the median of the slopes between all pairs of samples, per distance between two samples."""
    return median((b - a) / (j - i) for (i, a), (j, b) in combinations(enumerate(samples), 2))
