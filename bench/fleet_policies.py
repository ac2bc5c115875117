"""The tables of a simulated fleet, and the policies that order them; see ``fleet_simulation``.

Source:
    A. Gruenheid et al., "AutoComp: Automated Data Compaction for Log-Structured Tables in Data Lakes",
    arXiv:2504.04186, 2025. The weights of ``Files`` are those of its implementation in github.com/linkedin/openhouse:
    ``OperationTasksBuilder``, ``SimpleWeightedSumDataLayoutStrategyScorer`` and ``GreedyMaxBudgetCandidateSelector``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from fleet_histories import STEPS, TARGET_BYTES, History

from procedures.fleet import offer, outcomes, ranking, reads

# A run of a table merges once it has so many indexed files of its own.
MERGED_RUNS = 4
FILES_WEIGHT, COST_WEIGHT = 0.7, 0.3
# A part of a table is rewritten if it is at least so large.
LEAST_PART = 1e6

Values = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]


class Fleet:
    """The state of all tables, and what was recorded of them; arrays have one entry per table.

    Args:
        story: what happens to them.
    """

    def __init__(self, story: History) -> None:
        def zeros() -> Values:
            return np.zeros(len(story.indexed))

        self.story, self.step = story, 0
        self.indexed, self.backlog, self.files = story.indexed.copy(), zeros(), zeros()
        # Bytes that were indexed by runs, those of them that are not merged yet, and the number of runs.
        self.rewritten, self.unmerged, self.runs = zeros(), zeros(), zeros()
        # Steps: since when there is something to rewrite, and the last run; -1 = none.
        self.since, self.last = np.full(len(zeros()), -1), np.full(len(zeros()), -1)
        self.scans_since, self.shares_since = zeros(), zeros()
        # Recorded scans and the shares that they read, both weighted by their recency.
        self.scans, self.shares = zeros(), zeros()
        self.cost = self.saved = 0.0
        self.count = self.useless = 0

    @property
    def sizes(self) -> Values:
        """Bytes of each table."""
        return self.indexed + self.backlog

    def costs(self) -> Values:
        """Bytes that a run of each table rewrites."""
        return self.backlog + np.where(self.runs % MERGED_RUNS == MERGED_RUNS - 1, self.unmerged, 0.0)

    def write(self, step: int) -> None:
        """Begins a step, and adds what arrives; in the warm-up it is indexed.

        Args:
            step: its number.
        """
        self.step = step
        if step < self.story.warm_up:
            self.indexed += self.story.written[step]
            return
        self.backlog += self.story.written[step]
        self.files += self.story.files[step]
        self.since = np.where((self.since < 0) & (self.backlog > 0), step, self.since)

    def rewrite(self, order: Places, allowance: float) -> tuple[Places, Values]:
        """Rewrites tables as far as an allowance goes.

        Args:
            order: tables, the first first.
            allowance: bytes.

        Returns:
            The tables that were rewritten, and the part of each.
        """
        costs = self.costs()[order]
        through = np.cumsum(costs)
        whole = int(np.searchsorted(through, allowance, "right"))
        spent = float(through[whole - 1]) if whole else 0.0
        part = np.ones(whole)
        if whole < len(order) and allowance - spent > LEAST_PART:
            part = np.append(part, (allowance - spent) / costs[whole])
            spent = allowance
        at = order[: len(part)]
        self.useless += int(((self.last[at] >= 0) & (self.scans_since[at] == 0)).sum())
        self.count += len(at)
        self.cost += spent
        moved = self.backlog[at] * part
        merges = self.runs[at] % MERGED_RUNS == MERGED_RUNS - 1
        self.unmerged[at] = np.where(merges, 0.0, self.unmerged[at] + moved)
        self.indexed[at] += moved
        self.rewritten[at] += moved
        self.backlog[at] = np.where(part < 1, self.backlog[at] - moved, 0.0)
        self.files[at] *= 1 - part
        self.since[at] = np.where(part < 1, self.since[at], -1)
        self.runs[at] += 1
        self.last[at], self.scans_since[at], self.shares_since[at] = self.step, 0.0, 0.0
        return at, part

    def scan(self) -> None:
        """Reads the tables, and records it."""
        scans = self.story.scans[self.step]
        read = self.story.share_read[self.step] * self.indexed + self.story.share_backlog * self.backlog
        shares = scans * read / np.maximum(self.sizes, 1.0)
        faded = reads.recency(1 / STEPS)
        self.scans = self.scans * faded + scans
        self.shares = self.shares * faded + shares
        self.scans_since += scans
        self.shares_since += shares
        self.saved += float(self.story.gain[self.step] @ self.rewritten)

    def end(self) -> None:
        """Counts last runs without a scan since."""
        self.useless += int(((self.last >= 0) & (self.scans_since == 0)).sum())


def rates(scans: Values, shares: Values, days: float) -> tuple[Values, Values]:
    """``ReadRate.of`` for many tables.

    Args:
        scans: recorded scans, weighted by their recency.
        shares: sums of the shares that they have read, likewise.
        days: length of the records, likewise.

    Returns:
        Scans per day, and the share that a scan reads.
    """
    assumed = reads.PRIOR_DAYS * reads.PRIOR_SCANS_PER_DAY
    share_read = (shares + assumed * reads.PRIOR_SHARE_READ) / (scans + assumed)
    return (scans + assumed) / (days + reads.PRIOR_DAYS), share_read


def saved_bytes(backlog: Values, share_read: Values, sizes: Values) -> Values:
    """``saved_per_scan`` of many tables with files without an index.

    Args:
        backlog: bytes of these files.
        share_read: share of a table that a scan reads.
        sizes: bytes of the tables.
    """
    return np.asarray(np.minimum(share_read * sizes, backlog) * (1 - offer.FRESH_SHARE), np.float64)


def priorities(saving: Values, costs: Values, waited: Values, is_read: Flags) -> Values:
    """``priority`` of many offers.

    Args:
        saving: bytes that reads save per day.
        costs: bytes to rewrite.
        waited: milliseconds.
        is_read: whether a scan has read a table since its last rewrite.
    """
    per_byte = saving / np.maximum(costs, 1.0)
    doublings = np.minimum(np.maximum(waited, 0.0) / ranking.DOUBLING_MILLIS, ranking.MOST_DOUBLINGS)
    return np.where(is_read & (per_byte >= offer.LEAST_SAVING_PER_BYTE), per_byte * 2.0**doublings, 0.0)


class Policy:
    """Orders tables; those of priority 0 are left alone. This one takes the largest backlog first."""

    def priorities(self, fleet: Fleet) -> Values:
        """The priorities of all tables.

        Args:
            fleet: the tables.
        """
        return fleet.backlog

    def choose(self, fleet: Fleet, order: Places) -> None:
        """Called before tables are rewritten.

        Args:
            fleet: the tables.
            order: tables that are about to be rewritten, in part perhaps.
        """

    def done(self, at: Places, part: Values) -> None:
        """Called after tables were rewritten.

        Args:
            at: the tables.
            part: of each.
        """


class RoundRobin(Policy):
    """The longest time without a run first."""

    def priorities(self, fleet: Fleet) -> Values:
        """The priorities of all tables; see ``Policy``."""
        return np.where(fleet.backlog > 0, float(fleet.step + 1) - fleet.last, 0.0)


class Files(Policy):
    """AutoComp: the files that vanish, and the cost."""

    def priorities(self, fleet: Fleet) -> Values:
        """The priorities of all tables; see ``Policy``."""
        gain = fleet.files - np.ceil(fleet.backlog / TARGET_BYTES)
        gains = gain >= 1
        if not gains.any():
            return np.zeros(len(gain))
        score = FILES_WEIGHT * _scaled(gain, gains) - COST_WEIGHT * _scaled(fleet.costs(), gains)
        return np.where(gains, 1 + score, 0.0)


def _scaled(values: Values, counts: Flags) -> Values:
    least, most = values[counts].min(), values[counts].max()
    return np.asarray((values - least) / max(most - least, 1e-9), np.float64)


class Ours(Policy):
    """The ranking of ``procedures.fleet``.

    Args:
        story: what happens; only its size is used.
        waits_for_reads: whether a table has to be read again before its next rewrite.
    """

    def __init__(self, story: History, waits_for_reads: bool = True) -> None:
        count = len(story.indexed)
        self.waits_for_reads = waits_for_reads
        self.logarithm = np.zeros(count)
        # Of the last run of each table, and of the next one.
        self.predicted, self.before = np.zeros(count), np.zeros(count)
        self.offered, self.share_read = np.zeros(count), np.zeros(count)

    def priorities(self, fleet: Fleet) -> Values:
        """The priorities of all tables; see ``Policy``."""
        per_day, self.share_read = rates(fleet.scans, fleet.shares, reads.recent_days(fleet.step / STEPS))
        saved = saved_bytes(fleet.backlog, self.share_read, fleet.sizes)
        self.offered = saved / np.maximum(fleet.sizes, 1.0)
        saving = saved * per_day * np.exp(self.logarithm)
        waited = np.where(fleet.since < 0, 0, fleet.step - fleet.since) * (86_400_000 / STEPS)
        is_read = (fleet.last < 0) | (fleet.scans_since > 0) | (not self.waits_for_reads)
        return priorities(saving, fleet.costs(), waited, is_read)

    def choose(self, fleet: Fleet, order: Places) -> None:
        """Compares the last outcome of each table with its prediction; see ``Policy``."""
        scans = fleet.scans_since[order]
        at = order[(fleet.last[order] >= 0) & (scans >= outcomes.LEAST_SCANS) & (self.predicted[order] > 0)]
        measured = self.before[at] - fleet.shares_since[at] / fleet.scans_since[at]
        ratio = (measured + outcomes.NOISE) / (self.predicted[at] + outcomes.NOISE)
        limited = np.clip(ratio, outcomes.LEAST_CORRECTION, outcomes.MOST_CORRECTION)
        self.logarithm[at] = (self.logarithm[at] + np.log(limited)) / 2

    def done(self, at: Places, part: Values) -> None:
        """Remembers what was predicted; see ``Policy``."""
        self.predicted[at], self.before[at] = self.offered[at] * part, self.share_read[at]


POLICIES: dict[str, Callable[[History], Policy]] = {
    "round robin": lambda _: RoundRobin(),
    "largest first": lambda _: Policy(),
    "files": lambda _: Files(),
    "ours": Ours,
}
