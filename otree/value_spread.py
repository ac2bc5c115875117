"""The distribution of rows over the values of a column, estimated from the ranges of their files."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# A range is one value where it is shorter than this share of all ranges together, or than this.
_SHORTEST_SHARE = 1e-12
_SHORTEST_RANGE = 1e-290
# Values beyond it count as it, so that differences of two are numbers.
_LARGEST_VALUE = 1e307


@dataclass(frozen=True, eq=False)
class ValueSpread:
    """Cumulated rows over values; the rows of a file are taken to be spread evenly over the file's range.

    Attributes:
        values: the ends of the files' ranges, ascending and distinct.
        before: rows below each of them.
        through: rows up to and including each of them.
    """

    values: Floats
    before: Floats
    through: Floats

    @classmethod
    def of_files(cls, low: Floats, high: Floats, rows: Floats) -> ValueSpread | None:
        """Adds up the rows of files.

        Args:
            low: smallest value per file; NaN = unknown.
            high: largest value per file; NaN = unknown.
            rows: rows per file.

        Returns:
            The spread of the files whose range is known; None where no row is in such a file.
        """
        known = np.isfinite(low) & np.isfinite(high) & (high >= low)
        if not known.any() or rows[known].sum() <= 0:
            return None
        first, last = (np.clip(ends[known], -_LARGEST_VALUE, _LARGEST_VALUE) for ends in (low, high))
        count = rows[known]
        values = np.unique(np.concatenate([first, last]))
        single = last - first <= max(_SHORTEST_SHARE * float(np.ptp(values)), _SHORTEST_RANGE)
        last = np.where(single, first, last)
        jumps, slopes = np.zeros(len(values)), np.zeros(len(values))
        np.add.at(jumps, np.searchsorted(values, first[single]), count[single])
        density = count[~single] / (last[~single] - first[~single])
        np.add.at(slopes, np.searchsorted(values, first[~single]), density)
        np.add.at(slopes, np.searchsorted(values, last[~single]), -density)
        grown = np.concatenate([[0.0], np.cumsum(np.maximum(np.cumsum(slopes)[:-1], 0.0) * np.diff(values))])
        through = grown + np.cumsum(jumps)
        return cls(values, through - jumps, through)

    @property
    def rows(self) -> float:
        """How many rows."""
        return float(self.through[-1])

    def below(self, at: Floats) -> Floats:
        """Returns the share of the rows below each value."""
        return self._share(at, self.before)

    def up_to(self, at: Floats) -> Floats:
        """Returns the share of the rows up to and including each value."""
        return self._share(at, self.through)

    def _share(self, at: Floats, of_ends: Floats) -> Floats:
        """The share of the rows, which for an end of a range is the one given."""
        last = len(self.values) - 1
        # NaN is above every number.
        at = np.where(np.isnan(at), np.inf, at)
        right = np.minimum(np.searchsorted(self.values, at, side="left"), last)
        left = np.maximum(right - 1, 0)
        width = self.values[right] - self.values[left]
        inside = np.clip(at, self.values[left], self.values[right]) - self.values[left]
        part = np.divide(inside, width, out=np.zeros(len(at)), where=width > 0)
        between = self.through[left] + part * (self.before[right] - self.through[left])
        rows_before = np.where(self.values[right] == at, of_ends[right], between)
        rows_before = np.where(at < self.values[0], 0.0, np.where(at > self.values[-1], self.rows, rows_before))
        return np.asarray(rows_before / self.rows, np.float64)
