"""The files that a sample reads in part, which ``SamplingOverheadReduction`` chooses from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from otree.packing import band_limits, weight_bands
from otree.weight import MAX_WEIGHT, MIN_WEIGHT, WeightRange

_DECADES = 4
_ESTIMATE = 20_000
# A rewrite closes files at 1.9 targets of rows, whose bytes differ. Larger files than this had another target.
OVERSIZED = 3.0


def first_unsampled(fraction: float) -> int:
    """The smallest weight that a sample of a fraction leaves out."""
    taken = WeightRange.of_sample(0.0, fraction)
    return MIN_WEIGHT if taken is None else taken.last + 1


def limits_for(fraction: float, fractions: Sequence[float] = ()) -> list[int]:
    """The weights below which rows are counted: the ends of bands and of the sample, ascending, the largest last.

    Args:
        fraction: the sample.
        fractions: samples for which bands end.
    """
    return sorted({*band_limits(_DECADES, fractions), first_unsampled(fraction), MAX_WEIGHT + 1})


@dataclass(frozen=True)
class SampledWeights:
    """A sample as weights.

    Attributes:
        fraction: the sample.
        fractions: samples for which bands end.
        end: the smallest weight that the sample leaves out.
        band_end: the smallest weight at or above it at which a band may end.
        limits: see ``limits_for``.
    """

    fraction: float
    fractions: tuple[float, ...]
    end: int
    band_end: int
    limits: tuple[int, ...]

    @classmethod
    def of(cls, fraction: float, fractions: tuple[float, ...] = ()) -> SampledWeights:
        """The weights of a sample of a fraction."""
        end = first_unsampled(fraction)
        limits = (*band_limits(_DECADES, fractions), MAX_WEIGHT + 1)
        band_end = next(limit for limit in limits if limit >= end)
        return cls(fraction, fractions, end, band_end, tuple(limits_for(fraction, fractions)))


@dataclass(frozen=True)
class Overhead:
    """Files that a sample reads in part, together; the estimate is that rows are spread evenly over a block's weights.

    Attributes:
        files: how many.
        bytes: their size.
        below: rows with a weight below each of the limits.
        writes: how many writes they are of.
        can_change: whether a rewrite may lay any of them out in another way, however few writes they are of.
        of_revision: rows of the whole revision.
    """

    files: int
    bytes: int
    below: tuple[float, ...]
    writes: int
    can_change: bool
    of_revision: int

    def gain(self, sampled: SampledWeights, target_bytes: int) -> float:
        """The share of these files that a sample no longer reads once they are rewritten together; pure.

        Args:
            sampled: the sample.
            target_bytes: size of the files that would be written.
        """
        rows = self.below[-1] if self.below else 0.0
        # What one write laid out, another would lay out the same way.
        if rows < 1 or (self.writes < 2 and not self.can_change):
            return 0.0
        limits, end = list(sampled.limits), sampled.end
        counts = np.diff(np.array([0.0, *self.below])) * (_ESTIMATE / rows)
        starts = np.array([MIN_WEIGHT, *limits[:-1]], dtype=np.int64)
        sample = np.repeat(starts, np.maximum(np.rint(counts), 0).astype(np.int64)).astype(np.int32)
        target_rows = max(1, int(rows * target_bytes / max(self.bytes, 1)))
        beside = max(0, self.of_revision - int(rows))
        bands = weight_bands(sample, int(rows), target_rows, beside, fractions=sampled.fractions)
        last = max(band_end for first, band_end in bands if first < end)
        return 1.0 - self.below[limits.index(last)] / rows if last in limits else 0.0
