"""Which small files are merged, by size-tiered compaction: files of like size, once there are enough of them.

Source:
    The size-tiered policy of log-structured merge trees, as described in C. Luo, M. J. Carey, "LSM-based storage
    techniques: a survey", VLDB Journal 29 (2020).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from catalog.files.file_table import Integers


@dataclass(frozen=True)
class TierPolicy:
    """When files are merged.

    Attributes:
        min_files: a tier with so many files is merged.
        min_bytes: a tier with so many bytes is merged too, however few files it has; None = only the number counts.
        tier_ratio: how many times larger the files of a tier are than those of the tier below.
        isolate_bytes: files of this size are never merged again. A merged file is less than twice as large.
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

    def tier(self, size: int) -> int:
        """The tier of a file; files of tier t have between ratio^t and ratio^(t + 1) bytes.

        Args:
            size: its bytes.
        """
        tier = int(math.log(max(size, 1), self.ratio))
        # The logarithm of an exact power may be a little too small or too large.
        while self.ratio ** (tier + 1) <= size:
            tier += 1
        while tier and self.ratio**tier > size:
            tier -= 1
        return tier


@dataclass(frozen=True, eq=False)
class SmallFiles:
    """Files of one table partition, in the order in which their rows were written. One entry per file.

    Attributes:
        size: bytes.
        first_time: when its first rows were written, in epoch milliseconds; ascending.
        last_time: when its last rows were written.
        lifted_to: tier that a merge has lifted the file to, 0 for a file that no merge has made.
    """

    size: Integers
    first_time: Integers
    last_time: Integers
    lifted_to: Integers

    def __len__(self) -> int:
        """The number of files."""
        return len(self.size)


@dataclass(frozen=True)
class MergedRun:
    """Files that become one.

    Attributes:
        positions: of the files, in their order.
        tier: tier of the file that they become, however small it is.
    """

    positions: tuple[int, ...]
    tier: int


def merges(files: SmallFiles, policy: TierPolicy) -> list[MergedRun]:
    """Chooses runs of files, each of which becomes one file; pure.

    The lowest tier that qualifies is merged together with all lower ones, which saves a rewrite of their rows later.
    Each run lifts its rows by a tier at least. A merged file stays in the tier that it was lifted to even if it is
    smaller than its inputs, as footers are written once. So no row is rewritten more often than there are tiers between
    its first file and ``isolate_bytes``.

    Args:
        files: the files of a partition that may be merged, smaller than ``isolate_bytes``.
        policy: when to merge.

    Returns:
        The runs; no file is in two of them.
    """
    runs: list[MergedRun] = []
    top = policy.tier(policy.isolate_bytes - 1)
    tiers = np.array([policy.tier(int(size)) for size in files.size], np.int64)
    tiers = np.maximum(tiers, files.lifted_to)
    for window in _windows(files, policy):
        positions = np.array(window, np.int64)
        positions = positions[tiers[positions] <= top]
        runs += _merges_within(files, positions, tiers[positions], policy)
    return runs


def _windows(files: SmallFiles, policy: TierPolicy) -> Iterator[Sequence[int]]:
    """Divides the files by time, each window as long as the policy allows from its first file on."""
    most = policy.max_time_range
    if most is None:
        yield range(len(files))
        return
    window: list[int] = []
    for position in range(len(files)):
        if int(files.last_time[position]) - int(files.first_time[position]) > most:
            continue
        if window and int(files.last_time[position]) - int(files.first_time[window[0]]) > most:
            yield window
            window = []
        window.append(position)
    if window:
        yield window


def _merges_within(files: SmallFiles, positions: Integers, tiers: Integers, policy: TierPolicy) -> list[MergedRun]:
    tier_of = dict(zip(positions.tolist(), tiers.tolist(), strict=True))
    for tier in np.unique(tiers).tolist():
        of_tier = positions[tiers == tier]
        enough = len(of_tier) >= policy.min_files
        if policy.min_bytes is not None and len(of_tier) > 1:
            enough = enough or int(files.size[of_tier].sum()) >= policy.min_bytes
        if not enough:
            continue
        floor = min(policy.ratio ** (tier + 1), policy.isolate_bytes)
        lifted = []
        for run in _runs(files, positions[tiers <= tier], policy.isolate_bytes):
            size, largest = int(files.size[run].sum()), sum(tier_of[position] == tier for position in run)
            if len(run) > 1 and (size >= floor or largest >= policy.min_files):
                lifted.append(MergedRun(tuple(run), max(tier + 1, policy.tier(size))))
        if lifted:
            return lifted
    return []


def _runs(files: SmallFiles, positions: Integers, most_bytes: int) -> list[list[int]]:
    """Cuts files into runs of consecutive ones, each closed by the file with which it reaches a size."""
    runs: list[list[int]] = [[]]
    size = 0
    for position in positions:
        if size >= most_bytes:
            runs.append([])
            size = 0
        runs[-1].append(int(position))
        size += int(files.size[position])
    return runs
