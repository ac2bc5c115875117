"""The share of the files of a commit whose ranges overlap files that were in the table before; no Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

# A commit is judged by so many of its files; which ones depends on the hash of their paths.
SAMPLED_FILES = 32
# Pairs of files that are compared at most, up to 15 seconds; the newest commits come first.
MAX_PAIRS = 500_000_000
LIVE = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class FileLives:
    """Files in the order of ``added``. All arrays have one entry per file.

    Attributes:
        added: version that added the file; -1 for a file from before the commits.
        removed: version that removed it; ``LIVE`` without one.
        order: decides which files of a commit are sampled, such as a hash of the path.
        partition: equal for files of one partition.
        low: smallest value in each column; NaN where it is not known. Shape (files, columns).
        high: largest value, likewise.
    """

    added: Integers
    removed: Integers
    order: Integers
    partition: Integers
    low: Floats
    high: Floats


def overlap_shares(files: FileLives, max_pairs: int = MAX_PAIRS) -> Mapping[int, float]:
    """Returns for each version the share of its files that overlap a file of an earlier version.

    A file counts as earlier if an earlier version added it and the version itself left it in the table. Two files
    overlap if they are in one partition and their ranges overlap in every column, borders included. An unknown range
    overlaps every other.

    Args:
        files: the files.
        max_pairs: pairs of files that are compared at most.

    Returns:
        Shares by version, of at most ``SAMPLED_FILES`` files each. Versions that add no file are left out, and old
        versions once ``max_pairs`` is used up.
    """
    low, high = np.where(np.isnan(files.low), -np.inf, files.low), np.where(np.isnan(files.high), np.inf, files.high)
    versions, first = np.unique(files.added, return_index=True)
    ends = np.append(first, len(files.added))[1:]
    removals = np.sort(files.removed)
    pairs, oldest = 0, len(versions)
    for version, start, end in zip(versions[::-1].tolist(), first[::-1].tolist(), ends[::-1].tolist(), strict=True):
        live = max(start - int(np.searchsorted(removals, version, side="right")), 1)
        pairs += min(end - start, SAMPLED_FILES) * live
        if version < 0 or pairs > max_pairs:
            break
        oldest -= 1
    shares: dict[int, float] = {}
    earlier = np.arange(first[oldest] if oldest < len(versions) else 0)
    for version, start, end in zip(*(column[oldest:].tolist() for column in (versions, first, ends)), strict=True):
        earlier = earlier[files.removed[earlier] > version]
        own = np.arange(start, end)
        sample = own[np.argsort(files.order[start:end], kind="stable")][:SAMPLED_FILES]
        meets = [_meets_any(int(file), earlier, files.partition, low, high) for file in sample]
        shares[version] = sum(meets) / len(meets)
        earlier = np.append(earlier, own)
    return shares


def _meets_any(file: int, others: Integers, partition: Integers, low: Floats, high: Floats) -> bool:
    candidates = others[partition[others] == partition[file]]
    for column in range(low.shape[1]):
        candidates = candidates[low[candidates, column] <= high[file, column]]
        candidates = candidates[high[candidates, column] >= low[file, column]]
    return len(candidates) > 0
