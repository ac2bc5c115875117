"""Which tables of a fleet share a budget of rewrites best: ours, against other policies and the optimum in hindsight.

10,000 simulated tables are written and read for three weeks (``fleet_histories``). Each hour a policy orders the tables
that have files without an index, and rewrites them in this order within its budget. A rewrite costs the bytes of these
files; every fourth one of a table also merges what the three before it have indexed. "All" rewrites every such table in
every hour. Budgets are shares of the bytes that it rewrites, in equal parts per hour; what is left is kept for a day.
A table that does not fit is rewritten in part. Policies see what the product sees: recorded scans, sizes, file counts.

The saving is what scans do not read, compared with no optimization, in proportion to what "all" saves. A run gains
nothing if no scan reads its table before the next run, or before the end.

"Files" is the policy of AutoComp: 0.7 times the files that vanish minus 0.3 times the cost, both scaled to the range
from 0 to 1 over all tables, and greedy within the budget.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fleet_histories import DAYS, STEPS, History, history
from fleet_policies import POLICIES, Fleet, Ours, Policy

from procedures.fleet import offer, outcomes, ranking, reads

RESULTS = Path(__file__).resolve().parent / "results" / "fleet.json"
TABLES, REPETITIONS, FEW, FIRST_SEED = 10_000, 10, 3, 101
BUDGETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
MIDDLE, FEW_BUDGETS = 0.1, (0.01, 0.1, 0.5)
SKEWS = (1.5, 2.0, 2.5, 3.0)
# Of a t distribution: 95 % intervals of means by the number of repetitions.
QUANTILES = {2: 12.71, 3: 4.303, 10: 2.262}
# Parts of the ranking that are replaced, one at a time: module, constant, value.
CHANGES: dict[str, tuple[tuple[object, str, float], ...]] = {
    "as measured": (),
    "all records count the same": ((reads, "HALF_LIFE_DAYS", 1e6),),
    "records count half after 8 days": ((reads, "HALF_LIFE_DAYS", 8.0),),
    "waiting doubles in 6 hours": ((ranking, "DOUBLING_MILLIS", 6 * 3_600_000),),
    "waiting doubles in 7 days": ((ranking, "DOUBLING_MILLIS", 7 * 86_400_000),),
    "waiting counts for nothing": ((ranking, "DOUBLING_MILLIS", 1e15),),
    "outcomes without noise": ((outcomes, "NOISE", 0.0),),
    "no correction": ((outcomes, "MOST_CORRECTION", 1.0), (outcomes, "LEAST_CORRECTION", 1.0)),
    "no least saving": ((offer, "LEAST_SAVING_PER_BYTE", 0.0),),
    "tables need not be read again": (),
}
UNREAD = "tables need not be read again"


def everything(story: History) -> Fleet:
    """What comes of rewriting every table that has files without an index, in every step.

    Args:
        story: what happens.
    """
    fleet = Fleet(story)
    for step in range(story.steps):
        fleet.write(step)
        fleet.rewrite(np.flatnonzero(fleet.backlog > 0), np.inf)
        fleet.scan()
    fleet.end()
    return fleet


def simulated(story: History, policy: Policy, bytes_per_day: float) -> Fleet:
    """What comes of a policy and a budget.

    Args:
        story: what happens.
        policy: orders the tables.
        bytes_per_day: the budget.
    """
    fleet, allowance = Fleet(story), 0.0
    for step in range(story.steps):
        fleet.write(step)
        if step >= story.warm_up:
            allowance = min(allowance + bytes_per_day / STEPS, bytes_per_day)
            value = policy.priorities(fleet)
            order = np.flatnonzero(value > 0)
            order = order[np.argsort(-value[order], kind="stable")]
            affordable = int(np.searchsorted(np.cumsum(fleet.costs()[order]), allowance, "right")) + 1
            policy.choose(fleet, order[:affordable])
            spent = fleet.cost
            policy.done(*fleet.rewrite(order, allowance))
            allowance -= fleet.cost - spent
        fleet.scan()
    fleet.end()
    return fleet


def hindsight(story: History, totals: Sequence[float]) -> list[float]:
    """What no policy can exceed: the best bytes, each rewritten in the hour in which it arrives.

    This is a bound, not a policy. It knows all scans to come, takes parts of files, merges nothing, and may spend the
    budget of all days on the first.

    Args:
        story: what happens.
        totals: budgets, bytes over all days.
    """
    to_come = np.zeros(len(story.indexed))
    values, sizes = [], []
    for step in range(story.steps - 1, story.warm_up - 1, -1):
        to_come = to_come + story.gain[step]
        at = (story.written[step] > 0) & (to_come > 0)
        values.append(to_come[at])
        sizes.append(story.written[step][at].astype(np.float64))
    value, size = np.concatenate(values), np.concatenate(sizes)
    order = np.argsort(-value)
    saved = np.interp(totals, np.cumsum(size[order]), np.cumsum((value * size)[order]))
    return [float(total) for total in saved]


@dataclass(frozen=True)
class Outcome:
    """What came of a policy with a budget, on one history.

    Attributes:
        saving: in proportion to "all".
        useless: share of runs that gained nothing.
        runs: how many runs there were.
    """

    saving: float
    useless: float = 0.0
    runs: int = 0

    @classmethod
    def of(cls, fleet: Fleet, complete: Fleet) -> Outcome:
        """The outcome of a simulation.

        Args:
            fleet: the tables at its end.
            complete: the same history with everything rewritten.
        """
        return cls(fleet.saved / complete.saved, fleet.useless / max(fleet.count, 1), fleet.count)


# By name of a policy, for each budget.
Outcomes = dict[str, list[Outcome]]


def compared(story: History, budgets: Sequence[float]) -> Outcomes:
    """All policies on the same history.

    Args:
        story: what happens.
        budgets: shares of what "all" rewrites.
    """
    complete = everything(story)
    found = {"all": [Outcome.of(complete, complete) for _ in budgets]}
    bounds = hindsight(story, [budget * complete.cost for budget in budgets])
    found["hindsight"] = [Outcome(bound / complete.saved) for bound in bounds]
    for name, policy in POLICIES.items():
        fleets = [simulated(story, policy(story), budget * complete.cost / story.days) for budget in budgets]
        found[name] = [Outcome.of(fleet, complete) for fleet in fleets]
    return found


@contextmanager
def changed(constants: Sequence[tuple[object, str, float]]) -> Iterator[None]:
    """Replaces constants of the ranking.

    Args:
        constants: module, name, value.
    """
    before = [(module, name, getattr(module, name)) for module, name, _ in constants]
    for module, name, value in constants:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def what_counts(story: History, budgets: Sequence[float]) -> Outcomes:
    """Ours with one part replaced.

    Args:
        story: what happens.
        budgets: shares of what "all" rewrites.
    """
    complete, found = everything(story), {}
    for name, constants in CHANGES.items():
        with changed(constants):
            fleets = [
                simulated(story, Ours(story, name != UNREAD), budget * complete.cost / story.days) for budget in budgets
            ]
        found[name] = [Outcome.of(fleet, complete) for fleet in fleets]
    return found


def summary(repetitions: Sequence[Outcomes]) -> dict[str, list[dict[str, float]]]:
    """Means, and half the length of the 95 % intervals of savings, by policy and budget.

    Args:
        repetitions: outcomes by repetition.
    """
    return {
        name: [_means([outcomes[name][n] for outcomes in repetitions]) for n in range(len(rows))]
        for name, rows in repetitions[0].items()
    }


def _means(found: Sequence[Outcome]) -> dict[str, float]:
    savings, count = [outcome.saving for outcome in found], len(found)
    return {
        "saving": round(float(np.mean(savings)), 4),
        "interval": round(QUANTILES[count] * float(np.std(savings, ddof=1)) / count**0.5, 4),
        "useless": round(float(np.mean([outcome.useless for outcome in found])), 4),
        "runs": round(float(np.mean([outcome.runs for outcome in found]))),
    }


def wins(repetitions: Sequence[Outcomes]) -> dict[str, list[int]]:
    """In how many repetitions ours saves more than another policy, by budget.

    Args:
        repetitions: outcomes by repetition.
    """
    return {
        name: [
            sum(outcomes["ours"][n].saving > outcomes[name][n].saving for outcomes in repetitions)
            for n in range(len(repetitions[0][name]))
        ]
        for name in POLICIES
        if name != "ours"
    }


def main() -> None:
    """Runs all comparisons, prints them, and stores them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="300 tables, a week, two repetitions; stores nothing")
    quick = parser.parse_args().quick
    tables, days, repetitions, few = (300, 7, 2, 2) if quick else (TABLES, DAYS, REPETITIONS, FEW)
    seeds = [FIRST_SEED + n for n in range(repetitions)]
    found = [compared(history(tables, seed, days), BUDGETS) for seed in seeds]
    policies = summary(found)
    _show("policies", policies)
    parts = summary([what_counts(history(tables, seed, days), FEW_BUDGETS) for seed in seeds[:few]])
    _show("what counts", parts)
    skews = {}
    for skew in SKEWS:
        skews[f"{skew:g}"] = summary([compared(history(tables, s, days, skew), (MIDDLE,)) for s in seeds[:few]])
        _show(f"skew {skew:g}", skews[f"{skew:g}"])
    if not quick:
        results = {
            "tables": tables,
            "days": days,
            "repetitions": repetitions,
            "budgets": BUDGETS,
            "policies": policies,
            "ours saves more": wins(found),
            "what counts": {"repetitions": few, "budgets": FEW_BUDGETS, "policies": parts},
            "skew of scans": {"repetitions": few, "budgets": (MIDDLE,), "policies": skews},
        }
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def _show(title: str, rows: dict[str, list[dict[str, float]]]) -> None:
    print(title)
    for name, row in rows.items():
        cells = [f"{100 * means['saving']:5.1f} ± {100 * means['interval']:4.1f}" for means in row]
        print(f"  {name:32}", " | ".join(cells), "; useless, %:", *[f"{100 * means['useless']:.1f}" for means in row])


if __name__ == "__main__":
    main()
