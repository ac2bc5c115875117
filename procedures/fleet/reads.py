"""How often a table is read, and how much a scan reads: as recorded, or as is assumed where nothing is; pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

# What is assumed of a table before anything is recorded: it weighs as much as so many days of records.
PRIOR_DAYS = 0.5
PRIOR_SCANS_PER_DAY = 1.0
PRIOR_SHARE_READ = 0.25
# A record counts half as much after so many days, because tables become hot and cold.
HALF_LIFE_DAYS = 2.0


def recency(age_days: float) -> float:
    """How much a recorded scan counts: 1 now, half after two days.

    Args:
        age_days: days since the scan.
    """
    return math.pow(0.5, max(age_days, 0.0) / HALF_LIFE_DAYS)


def recent_days(days: float) -> float:
    """How much some days of records count together, when each moment counts by its recency; 2.9 days at most.

    Args:
        days: their length, up to now.
    """
    return (1 - recency(days)) * HALF_LIFE_DAYS / math.log(2)


@dataclass(frozen=True)
class RecordedUse:
    """The recorded scans of a table over some time.

    Attributes:
        scans: how many, each counted by its ``recency``.
        days: length of the time, counted likewise; see ``recent_days``.
        share_read: mean share of the table's bytes that a scan has read, with the same weights.
    """

    scans: float
    days: float
    share_read: float


@dataclass(frozen=True)
class ReadRate:
    """How a table is expected to be read.

    Attributes:
        scans_per_day: how often.
        share_read: share of the table's bytes that a scan reads, on average.
        is_recorded: whether scans were recorded; otherwise it is an assumption.
    """

    scans_per_day: float
    share_read: float
    is_recorded: bool

    @classmethod
    def of(cls, use: RecordedUse | None) -> ReadRate:
        """The expected rate: the records, and the assumption with the weight of half a day.

        A table that was hardly watched counts about as assumed. One without a scan for weeks counts as read every
        seventh day.

        Args:
            use: the records; None if reads of the table are not recorded.

        Source:
            The mean of a Gamma posterior of a Poisson rate: A. Gelman et al., "Bayesian Data Analysis", 2.6.
        """
        if use is None:
            return cls(PRIOR_SCANS_PER_DAY, PRIOR_SHARE_READ, False)
        assumed = PRIOR_DAYS * PRIOR_SCANS_PER_DAY
        scans = use.scans + assumed
        share = (use.scans * use.share_read + assumed * PRIOR_SHARE_READ) / scans
        return cls(scans / (use.days + PRIOR_DAYS), share, use.scans > 0)
