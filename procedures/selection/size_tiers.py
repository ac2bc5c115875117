"""Which small files are merged, by size-tiered compaction: files of like size, once there are enough of them.

Source:
    The size-tiered policy of log-structured merge trees, as described in C. Luo, M. J. Carey, "LSM-based storage
    techniques: a survey", VLDB Journal 29 (2020).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from catalog.files.arrays import Integers
from catalog.files.file_table import FileTable
from procedures.groups.cutter import Limits, pieces


@dataclass(frozen=True)
class TierPolicy:
    """When files are merged.

    Attributes:
        min_files: a tier with so many files is merged.
        min_bytes: a tier with so many bytes is merged too, however few files it has; None = only the number counts.
        tier_ratio: how many times larger the files of a tier are than those of the tier below.
        isolate_bytes: files of at least this size are not merged. A merged file is less than twice as large.
        max_time_range: milliseconds between the first and the last time at which rows of a merged file were written, at
            most; None = no limit.
    """

    min_files: int
    min_bytes: int | None
    tier_ratio: int
    isolate_bytes: int
    max_time_range: int | None = None

    @property
    def ratio(self) -> int:
        """The ratio that counts: not above ``min_files``, so that a merge lifts every row by at least one tier."""
        return max(2, min(self.tier_ratio, self.min_files))

    def tiers(self, size: Integers) -> Integers:
        """The tier of each file; files of tier t have between ratio^t and ratio^(t + 1) bytes.

        Args:
            size: their bytes.
        """
        powers = [1]
        while powers[-1] <= np.iinfo(np.int64).max // self.ratio:
            powers.append(powers[-1] * self.ratio)
        tiers: Integers = np.searchsorted(np.array(powers, np.int64), np.maximum(size, 1), side="right") - 1
        return tiers

    def tier(self, size: int) -> int:
        """The tier of a file of so many bytes."""
        return int(self.tiers(np.array([size], np.int64))[0])

    @property
    def top(self) -> int:
        """The highest tier whose files are merged."""
        return self.tier(self.isolate_bytes - 1)


@dataclass(frozen=True)
class MergedRun:
    """Files that become one.

    Attributes:
        positions: of the files, in their order.
        tier: tier of the file that they become, however small it is.
    """

    positions: tuple[int, ...]
    tier: int


def merges(files: FileTable, positions: Integers, policy: TierPolicy) -> list[MergedRun]:
    """Chooses runs of files, each of which becomes one file; pure.

    The lowest tier that qualifies is merged together with all lower ones, which saves a rewrite of their rows later.
    Each run lifts its rows by a tier at least. A merged file stays in the tier that it was lifted to even if it is
    smaller than its inputs, as footers are written once. So no row is rewritten more often than there are tiers between
    its first file and ``isolate_bytes``.

    Args:
        files: files of a table.
        positions: of those of one partition that may be merged, smaller than ``isolate_bytes``, in the order in which
            their rows were written.
        policy: when to merge.

    Returns:
        The runs; no file is in two of them.
    """
    runs: list[MergedRun] = []
    for window in _windows(files, positions, policy):
        tiers = np.maximum(policy.tiers(files.size[window]), files.tier[window])
        mergeable = tiers <= policy.top
        runs += _merges_within(files, window[mergeable], tiers[mergeable], policy)
    return runs


def _windows(files: FileTable, positions: Integers, policy: TierPolicy) -> Iterator[Integers]:
    """Divides the files by time, each window as long as the policy allows from its first file on."""
    most = policy.max_time_range
    if most is None:
        yield positions
        return
    positions = positions[files.last_time[positions] - files.first_time[positions] <= most]
    start = 0
    for index, position in enumerate(positions.tolist()):
        if int(files.last_time[position]) - int(files.first_time[positions[start]]) > most:
            yield positions[start:index]
            start = index
    if start < len(positions):
        yield positions[start:]


def _merges_within(files: FileTable, positions: Integers, tiers: Integers, policy: TierPolicy) -> list[MergedRun]:
    for tier in np.unique(tiers).tolist():
        of_tier = positions[tiers == tier]
        enough = len(of_tier) >= policy.min_files
        if policy.min_bytes is not None and len(of_tier) > 1:
            enough = enough or int(files.size[of_tier].sum()) >= policy.min_bytes
        if not enough:
            continue
        floor = min(policy.ratio ** (tier + 1), policy.isolate_bytes)
        lifted = []
        is_mergeable = tiers <= tier
        mergeable, of_highest = positions[is_mergeable], tiers[is_mergeable] == tier
        for first, end in pieces(files.size[mergeable], Limits(policy.isolate_bytes, len(mergeable)), crossing=True):
            run = mergeable[first:end]
            size, largest = int(files.size[run].sum()), int(of_highest[first:end].sum())
            if len(run) > 1 and (size >= floor or largest >= policy.min_files):
                lifted.append(MergedRun(tuple(run.tolist()), max(tier + 1, policy.tier(size))))
        if lifted:
            return lifted
    return []
