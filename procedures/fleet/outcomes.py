"""What was predicted of a table's rewrites and what reads have saved since; corrects the next prediction; pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

# So many scans after a rewrite say what it has saved.
LEAST_SCANS = 5
# Within these limits, predictions are corrected; the newest outcome counts for half.
LEAST_CORRECTION, MOST_CORRECTION = 1 / 16, 4.0
_NEWEST = 0.5
_MILLIS_PER_DAY = 86_400_000
# Shares of a table's bytes that scans read differ by so much for other reasons, too.
NOISE = 0.2


@dataclass(frozen=True)
class Outcome:
    """A run of the fleet on a table, and what reads saved since.

    Attributes:
        at: end of the run, epoch milliseconds.
        cost: bytes that it rewrote.
        predicted: share of the table's bytes that a scan was expected not to read afterwards, before any correction.
        share_before: share of the table's bytes that a scan read before it.
        saving: bytes that reads were expected to save per day, after correction.
        measured: share that scans read less since; None while there are too few of them.
    """

    at: int
    cost: int
    predicted: float
    share_before: float
    saving: float
    measured: float | None = None

    def judged(self, scans: int, share_after: float) -> Outcome:
        """The same with what scans have read since.

        Args:
            scans: how many there were.
            share_after: share of the table's bytes that they read, on average.
        """
        return self if scans < LEAST_SCANS else replace(self, measured=self.share_before - share_after)

    @property
    def measured_saving(self) -> float | None:
        """Bytes per day that reads have saved, as measured; None while there are too few of them."""
        if self.measured is None or self.predicted <= 0:
            return None
        return max(0.0, self.saving * self.measured / self.predicted)

    def saved_since(self, since: int, now: int) -> float:
        """Bytes that reads have saved between two times, as measured; 0 while nothing was measured.

        Args:
            since: epoch milliseconds.
            now: epoch milliseconds.
        """
        return (self.measured_saving or 0.0) * max(0, now - max(since, self.at)) / _MILLIS_PER_DAY

    @property
    def ratio(self) -> float | None:
        """What was measured, in proportion to what was predicted, within the limits of a correction.

        Both are compared with the noise of measurements added, so that the outcome of a small rewrite proves little.
        """
        if self.measured is None or self.predicted <= 0:
            return None
        ratio = (self.measured + NOISE) / (self.predicted + NOISE)
        return min(MOST_CORRECTION, max(LEAST_CORRECTION, ratio))


def correction(outcomes: Sequence[Outcome]) -> float:
    """By how much the next prediction is multiplied: what became of earlier ones, newer outcomes counting more.

    A table whose predictions fail falls back in the ranking, to a sixteenth of what is predicted.

    Args:
        outcomes: of a table, the oldest first.
    """
    logarithm = 0.0
    for outcome in outcomes:
        if outcome.ratio is not None:
            logarithm = (1 - _NEWEST) * logarithm + _NEWEST * math.log(outcome.ratio)
    return math.exp(logarithm)
