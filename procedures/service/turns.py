"""Whose turn it is: the order of due tables when there are more of them than may run, or when they share a budget."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from procedures.fleet.offer import Offer
from procedures.fleet.ranking import priority, ranked
from procedures.service.worker import Worker


@dataclass(frozen=True)
class Turns:
    """What happens next.

    Attributes:
        maintain: workers without a turn, which may start for their maintenance before all others.
        start: workers that may start, in this order.
        appraise: workers of which somebody has to find out what they offer, unless they start.
        is_ranked: whether runs take turns: each rewrites what it has offered, and then tables are ranked again.
    """

    maintain: Sequence[Worker]
    start: Sequence[Worker]
    appraise: Sequence[Worker]
    is_ranked: bool


def next_turns(due: Sequence[Worker], waiting: Collection[Worker], free: int, now: int, interval: int) -> Turns:
    """Decides whose turn it is.

    Args:
        due: workers that are due, those that have waited longest first.
        waiting: all workers without a run. One that has waited for its budget longer than a period keeps its place:
            no table of lower priority takes from the budget before it.
        free: runs that may start.
        now: epoch milliseconds.
        interval: time between the starts of two runs, milliseconds.
    """
    optimizing = [worker for worker in due if worker.startable_strategies(now)]
    if len(optimizing) <= free and not any(worker.has_byte_limit for worker in optimizing):
        return Turns((), due, (), False)
    known = {worker: None for worker in optimizing if worker.knows_offer(now, interval)}
    held = _held(waiting, now)
    allowed = [w for w in known if all(_priority(w, now) >= held.get(pool.label, 0.0) for pool in w.pools)]
    order = ranked(allowed, lambda worker: (_offer(worker), worker.place.waited(now)))
    if len(known) < len(optimizing) or any(worker.is_appraising for worker in waiting):
        # What is not known yet may be worth more: a budget waits for it, for one interval at most.
        order = [w for w in order if not w.has_byte_limit or w.place.waited(now) >= interval]
    unknown = [worker for worker in optimizing if worker not in known]
    # Nobody saves bytes by waiting: without a budget, free runs go to those that have waited longest.
    at_once = [worker for worker in unknown if not worker.has_byte_limit]
    # Nor does anybody pay for rewrites that save little: they come last.
    first = set(order)
    last = [worker for worker in known if worker not in first and not worker.has_byte_limit]
    start = [*order, *at_once, *last]
    # Maintenance keeps promises about history and costs no bytes of a budget.
    without_turn = set(due).difference(start)
    maintain = [w for w in due if w in without_turn and (w.due_maintenance(now) or not w.startable_strategies(now))]
    return Turns(maintain, start, unknown, True)


def _held(waiting: Collection[Worker], now: int) -> dict[str, float]:
    """By label of a pool, the priority of the best table that has waited for it for longer than a period.

    A table whose checks fail, or that is outside its hours, cannot start, and holds up no other one.
    """
    held: dict[str, float] = {}
    for worker in waiting:
        hours = worker.schedule.hours
        can_start = not worker.failures.count and (hours is None or hours.contains(now))
        refusal = worker.place.refusal
        if refusal is None or refusal.until is None or not can_start:
            continue
        for pool in worker.pools:
            if worker.place.waited(now) > pool.period:
                held[pool.label] = max(held.get(pool.label, 0.0), _priority(worker, now))
    return held


def _priority(worker: Worker, now: int) -> float:
    return priority(_offer(worker), worker.place.waited(now))


def _offer(worker: Worker) -> Offer:
    return worker.place.offer or Offer(0.0, 0, False)
