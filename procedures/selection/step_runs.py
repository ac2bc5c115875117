"""Runs of neighbours in time that may be consolidated, and the best of them from each file on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from catalog.files.arrays import Flags, Floats, Integers
from catalog.settings.strategy_options import MOST_FILES_WITH_BOXES
from procedures.groups.boxes import Boxes

NO_RUN = 0
# Sums of volumes that are added up in another order may differ by this share.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class StepPolicy:
    """Which runs may be consolidated.

    Attributes:
        steps: steps at most; None = until no run qualifies.
        min_files: files of a run, at least 2.
        max_files: files of a run at most; None = no limit.
        size_ratio: of two neighbours, the smaller one has at least this share of the bytes of the larger one; 0 to 1.
        amplification: volume of the box around a run at most, in multiples of the sum of its files' volumes; None =
            any volume.
        max_bytes: bytes of a result at most; a run with more becomes several files. A single file may have more. None =
            no limit.
    """

    steps: int | None = None
    min_files: int = 2
    max_files: int | None = None
    size_ratio: float = 0.0
    amplification: float | None = None
    max_bytes: int | None = None

    def most_files(self, count: int) -> int:
        """Files of a run at most, among so many files."""
        most = count if self.max_files is None else min(self.max_files, count)
        return most if self.amplification is None else min(most, MOST_FILES_WITH_BOXES)


def widened(low: Floats, high: Floats, level: int) -> tuple[Floats, Floats]:
    """Widens boxes to the borders of the cubes of a level, so that no box is flat.

    Args:
        low: lower corners, coordinates in [0, 1]; NaN where a corner is not known.
        high: upper corners.
        level: the space has 2 ** level cubes in each dimension.

    Returns:
        The corners of the widened boxes.
    """
    cubes = float(2**level)
    first = np.clip(np.floor(low * cubes), 0, cubes - 1)
    end = np.clip(np.floor(high * cubes) + 1, 1, cubes)
    return first / cubes, end / cubes


def best_runs(files: Boxes, policy: StepPolicy, most_files: int) -> tuple[Integers, Integers]:
    """The best run that begins at each file.

    Args:
        files: neighbours.
        policy: which runs qualify.
        most_files: files of a run at most.

    Returns:
        Files and bytes of the run; 0 files where none qualifies.
    """
    count = len(files)
    size = files.size
    if count < 2 or most_files < policy.min_files:
        return np.zeros(count, np.int64), np.zeros(count, np.int64)
    smaller, larger = np.minimum(size[:-1], size[1:]), np.maximum(size[:-1], size[1:])
    are_alike = smaller >= policy.size_ratio * larger
    starts = np.arange(count)
    # Where the files that are alike end, and where the next two files begin that fit into one.
    ends = _next_at(~are_alike, count) + 1
    longest = np.minimum(np.minimum(ends - starts, most_files), count - starts)
    shortest = np.full(count, max(policy.min_files, 2))
    if policy.max_bytes is not None:
        fits = _next_at(size[:-1] + size[1:] <= policy.max_bytes, count)
        shortest = np.maximum(shortest, fits - starts + 2)
    if policy.amplification is not None:
        longest = _longest_within(files, policy.amplification, shortest, longest)
    length = np.where(longest >= shortest, longest, NO_RUN)
    total = np.concatenate([[0], np.cumsum(size)])
    return length, total[starts + length] - total[starts]


def _next_at(wanted: Flags, count: int) -> Integers:
    """The first position from each file on at which a flag is set; the last file where there is none."""
    positions = np.where(wanted, np.arange(count - 1), count - 1)
    nearest: Integers = np.minimum.accumulate(np.append(positions, count - 1)[::-1])[::-1]
    return nearest


def _longest_within(files: Boxes, amplification: float, shortest: Integers, longest: Integers) -> Integers:
    """Files of the longest run from each file on whose box is not too large; 0 where there is none."""
    if not files.low.shape[1]:
        raise ValueError("An amplification needs boxes.")
    # One row per dimension: columns of files are added to columns of runs.
    lows, highs = np.ascontiguousarray(files.low.T), np.ascontiguousarray(files.high.T)
    volume = _volume(lows, highs)
    lengths = np.zeros(len(files), np.int64)
    # Boxes that are not known have no part in the sums, and compare as false.
    total = np.concatenate([[0.0], np.cumsum(np.nan_to_num(volume))])
    most = amplification * (total[np.arange(len(files)) + longest] - total[:-1]) * (1 + _ROUNDING)
    starts: Integers = np.flatnonzero(longest >= shortest)
    low, high, within, around = lows[:, starts], highs[:, starts], volume[starts], volume[starts]
    for length in range(2, int(longest.max(initial=0)) + 1):
        # A box only grows: where it is too large for the longest run already, no longer run qualifies.
        goes_on = (longest[starts] >= length) & (around <= most[starts])
        kept = np.flatnonzero(goes_on)
        if not len(kept):
            break
        # Those that end in between are dropped once they are many, since copies cost more than they do.
        chosen = slice(kept[0], kept[-1] + 1) if 2 * len(kept) > kept[-1] + 1 - kept[0] else kept
        starts, low, high, within, goes_on = (
            starts[chosen],
            low[:, chosen],
            high[:, chosen],
            within[chosen],
            goes_on[chosen],
        )
        is_range = starts[-1] - starts[0] + 1 == len(starts)
        added = slice(starts[0] + length - 1, starts[-1] + length) if is_range else starts + length - 1
        np.minimum(low, lows[:, added], out=low)
        np.maximum(high, highs[:, added], out=high)
        within += volume[added]
        around = _volume(low, high)
        qualifies = goes_on & (around <= amplification * within) & (shortest[starts] <= length)
        lengths[starts[qualifies]] = length
    return lengths


def _volume(low: Floats, high: Floats) -> Floats:
    volume: Floats = high[0] - low[0]
    for dimension in range(1, len(low)):
        volume *= high[dimension] - low[dimension]
    return volume
