"""What happens to a fleet of simulated tables: writes and scans, hour by hour, whatever is optimized.

Sizes, writes and scans are heavy-tailed, reads are bursty and follow the day, and rates drift. Public studies say so of
warehouses and data lakes; the parameters below are ours.

Source:
    A. van Renen et al., "Why TPC Is Not Enough: An Analysis of the Amazon Redshift Fleet", PVLDB 17(11), 2024: most
    properties of queries have very long tails, pipelines write much, and loads vary over time.
    S. Talluri et al., "Characterization of a Big Data Storage Workload in the Cloud", ICPE 2019 (Databricks): daily and
    weekly imbalances, heavy-tailed and bursty reads.
    Y. Chen et al., "Interactive Analytical Processing in Big Data Systems", PVLDB 5(12), 2012, and C. Abad et al., "A
    Storage-Centric Analysis of MapReduce Workloads", IISWC 2012: reads of data are far from uniform.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

STEPS = 24
# Days before the first file arrives without an index: reads are recorded.
WARM_UP = 7
DAYS = 21
# Medians and standard deviations of the logarithms of lognormal distributions.
TABLE_BYTES = (1e9, 2.5)
WRITTEN_SHARE = (0.01, 1.0)
COMMITS = (2.0, 1.5)
FILES = (4.0, 1.0)
SCANS = (1.0, 2.5)
# A scan reads this share of the indexed bytes: of a beta distribution.
READ_SHARE = (0.7, 6.0)
READ_NOISE = 0.5
# Tables whose plain statistics skip half or more of the files without an index.
SKIPPED_TABLES = 0.15
# Shape of the gamma distribution of loads in an hour; the smaller, the more bursty.
BURSTS = 0.5
RHYTHM = 0.8
# Tables that draw new rates in a day; some of them are then hardly read or written any more.
DRIFT, COLD, COLD_FACTOR = 0.02, 0.3, 1e-3
# Tables that are made after the warm-up.
NEW = 0.05
MOST_BYTES, MOST_SCANS = 1e14, 20_000.0
TARGET_BYTES = 128e6

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class History:
    """Writes and scans of tables; arrays of steps have the shape (steps, tables).

    Attributes:
        indexed: bytes that are indexed at first.
        share_backlog: share of the bytes without an index that a scan reads.
        written: bytes that arrive in a step.
        files: how many files they are.
        scans: scans in a step, after its writes.
        share_read: share of the indexed bytes that these scans read on average.
        gain: what each indexed byte that arrived without an index saves these scans, in bytes.
        warm_up: steps in which all that is written is indexed.
    """

    indexed: npt.NDArray[np.float64]
    share_backlog: Floats
    written: Floats
    files: Floats
    scans: Floats
    share_read: Floats
    gain: Floats
    warm_up: int

    @property
    def steps(self) -> int:
        """The number of steps, with those of the warm-up."""
        return len(self.written)

    @property
    def days(self) -> int:
        """The number of days after the warm-up."""
        return (self.steps - self.warm_up) // STEPS


def history(tables: int, seed: int, days: int = DAYS, skew: float = SCANS[1]) -> History:
    """Draws a history.

    Args:
        tables: how many.
        seed: the same seed gives the same history.
        days: days after the warm-up.
        skew: standard deviation of the logarithm of the number of scans per day.
    """
    random = np.random.default_rng(seed)
    steps = (WARM_UP + days) * STEPS
    size = np.minimum(_lognormal(random, *TABLE_BYTES, tables), MOST_BYTES)
    first = np.where(random.random(tables) < NEW, random.integers(WARM_UP * STEPS, steps, tables), 0)
    share_read = np.clip(random.beta(*READ_SHARE, tables), 0.005, 1.0)
    skips = random.random(tables) < SKIPPED_TABLES
    share_backlog = np.where(skips, share_read + (1 - share_read) * random.random(tables) / 2, 1.0)
    shape = (steps, tables)
    written, files, scans, noisy = (np.zeros(shape, np.float32) for _ in range(4))
    drawn = np.ones(tables, bool)
    commit_rate, commit_bytes, commit_files, scan_rate = (np.zeros(tables) for _ in range(4))
    for step in range(steps):
        if step % STEPS == 0:
            count = int(drawn.sum())
            commit_rate[drawn] = np.minimum(_lognormal(random, *COMMITS, count), 24 * 12)
            bytes_per_day = size[drawn] * np.minimum(_lognormal(random, *WRITTEN_SHARE, count), 0.5)
            commit_bytes[drawn] = bytes_per_day / commit_rate[drawn]
            commit_files[drawn] = np.maximum(1, _lognormal(random, *FILES, count))
            is_cold = np.where(random.random(count) < COLD, COLD_FACTOR, 1.0) if step else 1.0
            scan_rate[drawn] = np.minimum(_lognormal(random, SCANS[0], skew, count), MOST_SCANS) * is_cold
            drawn = random.random(tables) < DRIFT
        exists = step >= first
        commits = random.poisson(commit_rate / STEPS) * exists
        written[step] = commits * commit_bytes
        files[step] = np.ceil(np.maximum(commits * commit_files, written[step] / TARGET_BYTES))
        hour = 1 + RHYTHM * np.sin(2 * np.pi * (step % STEPS) / STEPS)
        burst = random.gamma(BURSTS, 1 / BURSTS, tables)
        scans[step] = random.poisson(scan_rate / STEPS * hour * burst) * exists
        spread = READ_NOISE / np.sqrt(np.maximum(scans[step], 1))
        noisy[step] = np.minimum(share_read * np.exp(spread * random.standard_normal(tables) - spread**2 / 2), 1.0)
    indexed = np.where(first > 0, 0.0, size)
    backlog = share_backlog.astype(np.float32)
    return History(indexed, backlog, written, files, scans, noisy, scans * (backlog - noisy), WARM_UP * STEPS)


def _lognormal(random: np.random.Generator, median: float, spread: float, count: int) -> npt.NDArray[np.float64]:
    return np.asarray(median * np.exp(spread * random.standard_normal(count)), np.float64)
