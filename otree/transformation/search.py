"""Binary search among quantiles, step by step the one of the row expressions in the JVM."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

Ordered = TypeVar("Ordered", float, bytes)


def found_in(quantiles: Sequence[Ordered], value: Ordered) -> tuple[int, bool]:
    """Return the position of a value among ascending quantiles.

    Args:
        quantiles: Ascending; repetitions are allowed, and then it matters which one is met first.
        value: The value to look for; NaN lies after all of them.

    Returns:
        The position of a quantile that equals the value and True, or the position it would be inserted at and False.
    """
    low, high = 0, len(quantiles) - 1
    while low <= high:
        middle = (low + high) // 2
        if quantiles[middle] == value:
            return middle, True
        if quantiles[middle] > value:
            high = middle - 1
        else:
            low = middle + 1
    return low, False


def range_in(quantiles: Sequence[Ordered], value: Ordered) -> tuple[int, int]:
    """Return the first position of a value and the one after its last; the same twice when it is not among them."""
    if value != value:  # NaN: the comparisons of a bisection are meant for values with an order
        return len(quantiles), len(quantiles)
    return bisect_left(quantiles, value), bisect_right(quantiles, value)


def is_ascending(quantiles: Sequence[Ordered]) -> bool:
    """Say whether no quantile is smaller than the one before; NaN is never in order."""
    return all(low <= high for low, high in pairwise(quantiles))
