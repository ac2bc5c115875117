"""How often the answers of ``use.approximate`` miss the truth, by distribution, size of the group and tolerance.

The steps are simulated as ``answer.py`` takes them: growing prefixes of random weights, each as large as the step
before expects to need, until an interval is within the tolerance. An answer that no sample of half of the rows can
give is exact. Without Spark, in minutes: ``make bench-intervals ARGS="--repetitions 1000"``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from procedures.insight.approximation.aggregate_query import Output
from procedures.insight.approximation.answer import FIRST_FRACTION, next_fraction
from procedures.insight.approximation.estimation import Estimation, Goal
from procedures.insight.approximation.functions import Arithmetic, Moment, Term, count, mean, total
from procedures.insight.approximation.sample_sums import Clusters, SampleSums

Generator = np.random.Generator
DISTRIBUTIONS: dict[str, Callable[[Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(40, 10, n),
    "uniform": lambda rng, n: rng.uniform(0, 1, n),
    "exponential": lambda rng, n: rng.exponential(1, n),
    "log-normal, sigma 1": lambda rng, n: rng.lognormal(0, 1, n),
    "log-normal, sigma 1.5": lambda rng, n: rng.lognormal(0, 1.5, n),
    "log-normal, sigma 2": lambda rng, n: rng.lognormal(0, 2, n),
    "zero-inflated, 5 % exponential": lambda rng, n: np.where(rng.random(n) < 0.05, rng.exponential(100, n), 0.0),
    "zero-inflated, 1 % log-normal": lambda rng, n: np.where(rng.random(n) < 0.01, rng.lognormal(0, 1.5, n), 0.0),
    "Pareto, index 2.2": lambda rng, n: rng.pareto(2.2, n) + 1,
    "Pareto, index 1.5": lambda rng, n: rng.pareto(1.5, n) + 1,
    "one in 1,000 is 1,000 times larger": lambda rng, n: np.where(rng.random(n) < 0.001, 1000.0, 1.0),
    "Student, 3 degrees": lambda rng, n: 10 + rng.standard_t(3, n),
}
FUNCTIONS = {"sum": total(0), "avg": mean(0), "ratio": Arithmetic("/", total(0), count(0))}
SIZES = (1_000, 10_000, 60_000)
TOLERANCES = (0.05, 0.1, 0.3)
MOST = 0.5


def answered(
    name: str, values: np.ndarray, ends: tuple[float, float], tolerance: float, rng: Generator
) -> tuple[float, float] | None:
    """Looks at growing samples of a group; returns the interval, None if only the exact answer is within.

    Args:
        name: of the aggregate.
        values: of the rows of the group, each of a weight of its own.
        ends: range of the values of the table, as the log has it.
        tolerance: relative.
        rng: the weights.
    """
    weights = rng.random(len(values))
    order = np.argsort(weights)
    weights, values = weights[order], values[order]
    goal = Goal(tolerance, 0.95, is_absolute=False, is_per_group=True)
    estimation = Estimation([Output(name, FUNCTIONS[name])], [ends], None, 0)
    upper = FIRST_FRACTION
    while True:
        sample = values[: np.searchsorted(weights, upper)]
        if len(sample):
            moments = {Moment.COUNT: np.ones_like(sample), Moment.SUM: sample, Moment.SQUARES: sample**2}
            terms = {Term(0, moment): column for moment, column in moments.items()}
            sums = SampleSums(
                [()],
                [0],
                np.array([float(len(sample))]),
                {term: np.array([column.sum()]) for term, column in terms.items()},
                {0: np.array([sample.min()])},
                {0: np.array([sample.max()])},
                {},
            )
            (slopes,) = estimation.influences(sums, upper)
            influence = sum((slope[0] * terms[term] for term, slope in slopes.items()), np.zeros(len(sample)))
            size = np.abs(influence)
            powers = (size.sum(), (size**2).sum(), (influence**3).sum(), (size**4).sum(), size.max())
            found = Clusters([[np.array([power]) for power in powers]], 1, float(len(sample)))
            (made,) = estimation.estimates(sums, found, upper, goal)
            if made.is_met[0]:
                return float(made.lower[0]), float(made.upper[0])
            needed = float(made.needed[0])
        else:
            needed = float("nan")
        upper = next_fraction(upper, needed, MOST)
        if upper > MOST:
            return None


def missed(
    name: str, distribution: str, size: int, tolerance: float, repetitions: int, rng: Generator, *, known: bool = True
) -> tuple[int, int]:
    """Returns how many of some groups were answered from samples, and how many of these intervals missed the truth."""
    of_samples = misses = 0
    for _ in range(repetitions):
        table = DISTRIBUTIONS[distribution](rng, 4 * size)
        ends = (float(table.min()), float(table.max())) if known else (-np.inf, np.inf)
        values = table[:size]
        interval = answered(name, values, ends, tolerance, rng)
        if interval is not None:
            truth = values.sum() if name == "sum" else values.mean()
            slack = 1e-9 * abs(truth)
            of_samples += 1
            misses += not interval[0] - slack <= truth <= interval[1] + slack
    return of_samples, misses


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=100, help="groups of each distribution, size and tolerance")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--unknown", action="store_true", help="the log has no range of the values")
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    print("| distribution | aggregate | answered from samples | missed | worst size and tolerance |")
    print("| --- | --- | --- | --- | --- |")
    for distribution in DISTRIBUTIONS:
        for name in FUNCTIONS:
            cells = {
                (size, tolerance): missed(
                    name, distribution, size, tolerance, arguments.repetitions, rng, known=not arguments.unknown
                )
                for size in SIZES
                for tolerance in TOLERANCES
            }
            count_of, misses = (sum(values) for values in zip(*cells.values(), strict=True))
            whole = len(cells) * arguments.repetitions
            shares = {cell: m / n for cell, (n, m) in cells.items() if n >= arguments.repetitions / 2}
            worst = max(shares, key=lambda cell: shares[cell], default=None)
            at = "–" if worst is None else f"{worst[0]:,} rows, {worst[1]:.0%}: {shares[worst]:.1%}"
            share = f"{misses / count_of:.1%}" if count_of else "–"
            print(f"| {distribution} | {name} | {count_of / whole:.0%} | {share} | {at} |", flush=True)


if __name__ == "__main__":
    main()
