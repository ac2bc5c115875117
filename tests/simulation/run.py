"""Runs many histories, and prints how many a second, the faults by phase, and each history that broke a promise."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from simulation import coverage  # noqa: E402
from simulation.simulation import histories, simulate  # noqa: E402

_SEEDS_AT_A_TIME = 500
_MOST_FAILURES = 10
# So many histories have every fault in every phase.
_FULL_COVERAGE = 100_000


def work(seeds: Sequence[int]) -> tuple[int, list[tuple[int, str]], Counter[tuple[str, str]], int]:
    """Runs the histories of some seeds.

    Returns:
        How many, the seeds and violations of those that failed, the faults by phase, and the steps.
    """
    phases: Counter[tuple[str, str]] = Counter()
    failed, steps = [], 0
    for history in histories(seeds, phases):
        steps += history.steps
        if history.violation is not None:
            failed.append((history.seed, history.violation))
    return len(seeds), failed, phases, steps


def _parts(first: int, count: int) -> Iterator[range]:
    for start in range(first, first + count, _SEEDS_AT_A_TIME):
        yield range(start, min(start + _SEEDS_AT_A_TIME, first + count))


def main() -> int:
    """Returns 1 if a history failed, or a field of the coverage of many histories is empty."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000, help="histories")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first one; the others follow")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--stop", action="store_true", help="end with the first failure")
    given = parser.parse_args()
    if given.count == 1:
        history = simulate(given.seed, records=True)
        print(history.text())
        return 0 if history.violation is None else 1
    began, done, steps = time.monotonic(), 0, 0
    phases: Counter[tuple[str, str]] = Counter()
    failed: list[tuple[int, str]] = []
    with multiprocessing.get_context("fork").Pool(given.processes) as pool:
        # The workers end with this process.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        for number, violations, of_part, of_steps in pool.imap_unordered(work, _parts(given.seed, given.count)):
            done, steps = done + number, steps + of_steps
            phases.update(of_part)
            failed += violations
            for seed, violation in violations:
                print(f"{violation}\n  repeat it: make simulate COUNT=1 SEED={seed}", flush=True)
            if done % 10_000 < _SEEDS_AT_A_TIME:
                rate = done / (time.monotonic() - began)
                print(f"{done:,} histories, {rate:,.0f} a second, {len(failed)} failed", flush=True)
            if failed and (given.stop or len(failed) >= _MOST_FAILURES):
                pool.terminate()
                break
    if failed:
        print("\n" + simulate(min(failed)[0], records=True).text(last=80))
    seconds = time.monotonic() - began
    print(f"\n{done:,} histories of {steps / max(done, 1):.0f} steps in {seconds:,.0f} s: {len(failed)} failed\n")
    print("faults that struck while a process was in a phase\n" + coverage.table(phases))
    empty = coverage.empty_fields(phases)
    if empty:
        print(f"\n{len(empty)} empty fields: " + ", ".join(f"{phase} × {fault}" for phase, fault in empty))
    return 1 if failed or (empty and given.count >= _FULL_COVERAGE) else 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets is a part of a history.
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main())
