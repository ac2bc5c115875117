"""Which groups to merge: the cheapest set that brings the cost of reads back to a target.

Files of different writes overlap. As in a log-structured merge tree, merging them makes reads cheaper and costs a
rewrite. Nothing is merged as long as reads cost no more than the target; then as little as possible. Where reads are
recorded, they set the price instead.

Source:
    P. O'Neil et al., "The log-structured merge-tree (LSM-tree)", Acta Informatica 33 (1996).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from catalog.files.arrays import Floats, Integers
from procedures.groups.cutter import Limits
from procedures.groups.judge import Judge, Merges, slopes
from procedures.selection.merge_candidates import candidates

# Above the target, merges go on until this share of the excess that the target allows is left, so that a few more
# appends don't start the next ones.
HYSTERESIS = 0.8
# A group saves at least this share of a fresh layout's cost, per share of the bytes rewritten; see ``Budget.price``.
SMALLEST_RATIO = 0.05
# Where reads are recorded: groups whose reads have paid less than this share are not looked at.
SMALLEST_SHARE_PAID = 0.02
# What recorded reads would have saved, per byte to be rewritten, at which a group is merged.
PRICE = 1.0
# A share of the rewrites beyond the first is kept for files of low weights, those below this fraction.
_RESERVE, _LOW_WEIGHTS = 0.15, 0.1 + 1e-6
# Groups that are taken before the rest is judged again.
_ROUND = 64
_MOST_GROUPS = 1_000


@dataclass(frozen=True, eq=False)
class Merge:
    """Files that are worth merging.

    Attributes:
        files: positions of the files, ascending.
        size: bytes to rewrite.
        first: start of the range of weights, as a fraction.
        end: its end.
        writes: how many writes the files are of.
        before: what the mix of reads costs before it, in proportion to a fresh layout.
        after: what it costs afterwards.
    """

    files: Integers
    size: float
    first: float
    end: float
    writes: int
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class Choice:
    """What is to be merged.

    Attributes:
        merges: groups without a common file, the best first.
        waiting: a group that has to wait for the cap on rewrites; None = there is none.
        unpaid: of the best group that recorded reads have not paid for, the share of its bytes that they would have
            saved; 0 without such a group, None where reads are not recorded.
        cost: what the mix of reads costs today, in proportion to a fresh layout.
        after: what it is expected to cost after the merges.
        rewrites: how many times a row was rewritten, on average.
    """

    merges: tuple[Merge, ...]
    waiting: Merge | None
    cost: float
    after: float
    rewrites: float
    unpaid: float | None = None


@dataclass(frozen=True)
class Budget:
    """How much may be rewritten.

    Attributes:
        rewrites: how many times a row may be, on average over the revision.
        spent: bytes that were rewritten so far.
    """

    rewrites: float
    spent: float

    def left(self, total: float, end: float) -> float:
        """Bytes that may be rewritten in files whose weights end at a fraction.

        A part is kept for low weights: these are few bytes, which every small sample reads.

        Args:
            total: bytes of the revision.
            end: end of the weights.
        """
        kept = 0.0 if end <= _LOW_WEIGHTS else _RESERVE * (self.rewrites - 1)
        return (self.rewrites - kept) * total - self.spent

    def price(self, total: float, merge: Merge) -> float:
        """What a merge has to be worth: the more, the less is left, so that cheap merges go on.

        Args:
            total: bytes of the revision.
            merge: the merge.
        """
        left = self.left(total, merge.end) - merge.size
        return SMALLEST_RATIO * self.rewrites * total / left if left > 0 else float("inf")

    def after(self, merge: Merge) -> Budget:
        """What is left after a merge."""
        return replace(self, spent=self.spent + merge.size)


def choose(judge: Judge, target: float, budget: Budget, limits: Limits) -> Choice:
    """Chooses groups until reads are expected to cost the target.

    Args:
        judge: of all files of the revision.
        target: what reads may cost, in proportion to a fresh layout.
        budget: of the revision.
        limits: of a group.
    """
    files = judge.files
    total = float(files.size.sum())
    if len(files) < 2 or total <= 0 or float(files.rows.sum()) < 1:
        return Choice((), None, 1.0, 1.0, 0.0)
    rewrites, cost = budget.spent / total, judge.cost
    if judge.recorded:
        pool = _Pool.of([*candidates(judge, limits, SMALLEST_SHARE_PAID)])
        return _paid(judge, pool, budget)
    if cost <= target:
        return Choice((), None, cost, cost, rewrites)
    pool = _Pool.of([*candidates(judge, limits, SMALLEST_RATIO)])
    merges, waiting = _cheapest(judge, pool, 1 + HYSTERESIS * (target - 1), budget)
    return Choice(tuple(merges), waiting, cost, merges[-1].after if merges else cost, rewrites)


@dataclass(eq=False)
class _Pool:
    """All candidates in one list."""

    members: list[Integers]
    size: Floats
    saved: Floats
    worth: Floats

    @classmethod
    def of(cls, sets: list[Merges]) -> _Pool:
        members = [part for merges in sets for part in np.split(merges.members, merges.starts[1:])]
        size = np.concatenate([merges.size for merges in sets]) if sets else np.zeros(0)
        saved = np.concatenate([merges.saved for merges in sets], axis=1) if sets else np.zeros((0, 0))
        worth = np.concatenate([merges.worth for merges in sets]) if sets else np.zeros(0)
        return cls(members, size, saved, worth)


def _cheapest(judge: Judge, pool: _Pool, stop: float, budget: Budget) -> tuple[list[Merge], Merge | None]:
    """Takes the group that saves the most per byte, again and again.

    Args:
        judge: of all files.
        pool: the candidates.
        stop: what reads may cost afterwards.
        budget: of the revision.
    """
    costs = judge.today
    left = np.ones(len(pool.size), bool)
    used = np.zeros(len(judge.files), bool)
    merges: list[Merge] = []
    waiting: Merge | None = None
    total = float(judge.files.size.sum())
    while len(merges) < _MOST_GROUPS and left.any():
        open_ = np.flatnonzero(left)
        worth = slopes(costs / judge.fresh) / judge.fresh @ pool.saved[:, open_] / pool.size[open_]
        taken = 0
        for n in np.argsort(-worth, kind="stable").tolist():
            number = int(open_[n])
            if worth[n] * total < SMALLEST_RATIO:
                left[open_[worth * total < SMALLEST_RATIO]] = False
                break
            left[number] = False
            if used[pool.members[number]].any():
                continue
            merge = _merge(judge, pool, number, costs)
            if worth[n] * total < budget.price(total, merge):
                waiting = waiting or merge
                continue
            if merge.after >= merge.before:
                continue
            merges.append(merge)
            used[merge.files] = True
            budget = budget.after(merge)
            costs = np.maximum(costs - pool.saved[:, number], 0.0)
            taken += 1
            if merge.after <= stop:
                return merges, None
            if taken >= _ROUND:
                break
        if not taken:
            break
    return merges, waiting


def _paid(judge: Judge, pool: _Pool, budget: Budget) -> Choice:
    """Takes the groups that recorded reads have paid for: what they would have saved is as much as is to be rewritten.

    This is the rule of whoever rents until the rent has reached the price. For one group it costs at most twice what
    would have been best, had the reads been known beforehand.

    Args:
        judge: of all files.
        pool: the candidates.
        budget: of the revision.

    Source:
        A. Karlin et al., "Competitive snoopy caching", Algorithmica 3 (1988).
    """
    costs, cost, total = judge.today, judge.cost, float(judge.files.size.sum())
    rewrites = budget.spent / total
    used = np.zeros(len(judge.files), bool)
    merges: list[Merge] = []
    waiting: Merge | None = None
    unpaid = 0.0
    for number in np.argsort(-pool.worth, kind="stable").tolist():
        if used[pool.members[number]].any():
            continue
        if cost <= 1 or len(merges) == _MOST_GROUPS:
            break
        if pool.worth[number] < PRICE:
            unpaid = float(pool.worth[number])
            break
        merge = _merge(judge, pool, number, costs)
        if merge.size > budget.left(total, merge.end):
            waiting = waiting or merge
            continue
        merges.append(merge)
        used[merge.files] = True
        budget = budget.after(merge)
        costs, cost = np.maximum(costs - pool.saved[:, number], 0.0), merge.after
    return Choice(tuple(merges), waiting, judge.cost, cost, rewrites, unpaid)


def _merge(judge: Judge, pool: _Pool, number: int, costs: Floats) -> Merge:
    """A candidate as a merge, where reads cost ``costs`` before it."""
    files, members = judge.files, np.sort(pool.members[number])
    return Merge(
        members,
        float(pool.size[number]),
        float(files.first[members].min()),
        float(files.end[members].max()),
        len(np.unique(files.write[members])),
        judge.overall(costs),
        judge.overall(np.maximum(costs - pool.saved[:, number], 0.0)),
    )
