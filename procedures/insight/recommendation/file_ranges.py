"""Ranges of columns in simulated files, extrapolated from sampled rows to all rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from catalog.predicates.operators import BOUND_TESTS, EQUAL, FUNCTIONS

# The values of a file reach beyond the sampled ones. Half of the distance to the fourth value from the end is 1.5 times
# the mean of three spacings, and had the least error of the rules that were tried; see decision 075.
_FOURTH = 3
_DISTANCE_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class FileRanges:
    """Ranges of one column in all files, as places among its sampled distinct values.

    Attributes:
        low: smallest place; infinite without a value.
        high: largest place; minus infinity without a value.
        has_null: whether a value is null.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    has_null: NDArray[np.bool_]

    @classmethod
    def of_rows(
        cls, places: NDArray[np.int64], nulls: NDArray[np.bool_], starts: NDArray[np.int64], unseen: float, last: int
    ) -> FileRanges:
        """Makes the ranges of files from their sampled rows.

        Args:
            places: per row, file by file, the place of its value.
            nulls: per row whether its value is null.
            starts: per file the position of its first row.
            unseen: share of the rows that are not in the sample.
            last: the last place; no range reaches beyond it.
        """
        count = len(starts)
        file = np.repeat(np.arange(count), np.diff(starts, append=len(places)))
        known, owner = places[~nulls], file[~nulls]
        ordered = known[np.lexsort((known, owner))].astype(np.float64)
        rows = np.bincount(owner, minlength=count)
        has_value = rows > 0
        first = (np.cumsum(rows) - rows)[has_value]
        end = first + rows[has_value] - 1
        # With fewer values, the distance is that to the farthest one, in proportion.
        steps = np.minimum(_FOURTH, end - first)
        share = unseen * _DISTANCE_SHARE * _FOURTH / np.maximum(steps, 1)
        low, high = np.full(count, np.inf), np.full(count, -np.inf)
        below = share * (ordered[first + steps] - ordered[first])
        above = share * (ordered[end] - ordered[end - steps])
        low[has_value] = np.maximum(ordered[first] - below, 0.0)
        high[has_value] = np.minimum(ordered[end] + above, last)
        return cls(low, high, np.logical_or.reduceat(nulls, starts))

    @property
    def has_value(self) -> NDArray[np.bool_]:
        """Whether a value is not null."""
        return np.isfinite(self.high)

    def may_have(self, operator: str, place: float, *, is_sampled: bool) -> NDArray[np.bool_]:
        """Returns per file whether it may have a value that satisfies a comparison.

        Args:
            operator: ``=``, ``<``, ``<=``, ``>`` or ``>=``.
            place: of the literal among the sampled values; between two places if the sample lacks it.
            is_sampled: whether the sample has the literal.
        """
        # A value between two places of the sample may be on either side of the literal.
        tests = [
            (end, test if is_sampled or operator == EQUAL else f"{test[0]}=") for end, test in BOUND_TESTS[operator]
        ]
        ends = {"low": self.low, "high": self.high}
        return np.asarray(np.logical_and.reduce([FUNCTIONS[test](ends[end], place) for end, test in tests]), bool)
