"""How often a table is read, and how much a scan reads: as recorded, or as is assumed where nothing is; pure."""

from __future__ import annotations

from dataclasses import dataclass

# What is assumed of a table before anything is recorded: it weighs as much as one day of records.
PRIOR_DAYS = 1.0
PRIOR_SCANS_PER_DAY = 1.0
PRIOR_SHARE_READ = 0.25


@dataclass(frozen=True)
class RecordedUse:
    """The recorded scans of a table over some time.

    Attributes:
        scans: how many.
        days: length of the time; at least as long as the records are old.
        share_read: mean share of the table's bytes that a scan has read.
    """

    scans: int
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
        """The expected rate: the records, and the assumption with the weight of one day.

        So a table that was hardly watched counts about as assumed, and one without a scan in a month as hardly read.

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
