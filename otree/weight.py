"""Row weights: 32-bit hashes that stand for fractions of a random sample."""

import math
from dataclasses import dataclass
from typing import ClassVar

MIN_WEIGHT = -(2**31)
MAX_WEIGHT = 2**31 - 1

# A weight is its fraction times the span, less the offset.
OFFSET = 2147483648.0
SPAN = 4294967295.0
# Half the distance between two weights. Sums of rounded shares, such as the bounds of a random split, miss 1 by less.
_ROUNDING = 2.0**-33


def weight_of(fraction: float) -> int:
    """Return the weight that stands for a fraction.

    Args:
        fraction: Usually in [0, 1]; what lies outside saturates.

    Returns:
        The weight, cut toward zero, in [MIN_WEIGHT, MAX_WEIGHT].

    Raises:
        ValueError: If the fraction is NaN.

    Source:
        Index format, section 6 (weights).
    """
    if math.isnan(fraction):
        raise ValueError("A fraction cannot be NaN")
    scaled = fraction * SPAN - OFFSET
    return int(min(max(scaled, float(MIN_WEIGHT)), float(MAX_WEIGHT)))


def fraction_of(weight: int) -> float:
    """Return the fraction in [0, 1] that a weight stands for.

    Source:
        Index format, section 6 (weights).
    """
    return (weight + OFFSET) / SPAN


def draws_of(fraction: float) -> int:
    """Return how many disjoint samples of a fraction there are.

    Args:
        fraction: Above 0, at most 1.
    """
    return max(math.floor(1.0 / fraction + _ROUNDING), 1)


def bounds_of_draw(fraction: float, draw: int) -> tuple[float, float]:
    """Return the fractions at which one of several disjoint samples starts and ends.

    The draws of a fraction whose reciprocal is whole contain all rows together.

    Args:
        fraction: Of the rows of each sample, above 0, at most 1.
        draw: Number of the sample, from 1 to ``draws_of(fraction)``.

    Raises:
        ValueError: If the fraction or the number is out of range.
    """
    if not 0.0 < fraction <= 1.0:
        raise ValueError(f"A fraction is above 0, at most 1, got {fraction}")
    draws = draws_of(fraction)
    if not 1 <= draw <= draws:
        raise ValueError(f"A draw of {fraction} is a number from 1 to {draws}, got {draw}")
    # The same number, however it is reached: the end of a draw is the start of the next one.
    upper = 1.0 if draw == draws and draws * fraction > 1.0 - _ROUNDING else draw * fraction
    return (draw - 1) * fraction, upper


def _first_weight_from(bound: float) -> int:
    """The smallest weight at or above a bound of a sample; above MAX_WEIGHT when there is none."""
    if bound <= 0.0:
        return MIN_WEIGHT
    return MAX_WEIGHT + 1 if bound >= 1.0 - _ROUNDING else weight_of(bound)


@dataclass(frozen=True)
class WeightRange:
    """Weights from first to last, both inclusive; empty when first > last.

    Attributes:
        first: Smallest weight.
        last: Largest weight.
    """

    first: int
    last: int

    ALL: ClassVar["WeightRange"]

    @classmethod
    def of_sample(cls, lower: float, upper: float) -> "WeightRange | None":
        """Return the weights of a sample's rows.

        Each end of the range follows from one bound alone, so samples that share a bound never share a row and leave
        no row out between them. The upper bound is exclusive, except that a sample up to 1 holds the largest weight.

        Args:
            lower: Fraction at which the sample starts; 0 or less means from the first row.
            upper: Fraction at which it ends; 1 or more means to the last row, and so does 1 less a rounding error.

        Returns:
            The range, or None when no weight is in it.

        Raises:
            ValueError: If a bound is NaN.
        """
        if math.isnan(lower) or math.isnan(upper):
            raise ValueError(f"The bounds of a sample cannot be NaN, got {lower} and {upper}")
        first, last = _first_weight_from(lower), _first_weight_from(upper) - 1
        return cls(first, last) if first <= last else None

    def overlaps(self, first: int, last: int) -> bool:
        """Say whether a weight lies both in this range and in [first, last]."""
        return max(self.first, first) <= min(self.last, last)


ALL = WeightRange(MIN_WEIGHT, MAX_WEIGHT)
WeightRange.ALL = ALL
