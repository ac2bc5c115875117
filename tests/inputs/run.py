"""Gives many random inputs to the readers of inputs from outside, and prints each case that ends in another way.

A case ends in a value or in an error of the project with a code, within 10 seconds. A seed decides which reader is
asked and what it gets: ``make fuzz-inputs COUNT=1 SEED=7`` repeats a case, and prints its input.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "support"), str(ROOT)]

from inputs.cases import WAITING_SECONDS, Outcome, Reader, outcome_of  # noqa: E402

_CASES_AT_A_TIME = 500
_MOST_FAILURES = 10
# A reader that does not return to Python is ended by the parent.
_GRACE_SECONDS = 60


def readers() -> list[Reader]:
    """All readers."""
    from inputs import (
        argument_inputs,
        file_inputs,
        log_inputs,
        property_inputs,
        query_inputs,
        state_inputs,
        web_inputs,
    )

    modules = (argument_inputs, property_inputs, query_inputs, state_inputs, log_inputs, file_inputs, web_inputs)
    return [reader for module in modules for reader in module.readers()]


def _work(all_readers: list[Reader], seeds: range, done: Synchronized[int], results: Any) -> None:
    """Runs the cases of some seeds; ``done`` counts them, so that the parent knows which one hangs."""
    ends: Counter[tuple[str, str]] = Counter()
    failed: list[tuple[int, Outcome]] = []
    for seed in seeds:
        outcome = outcome_of(all_readers, seed)
        ends[outcome.reader, outcome.end] += 1
        if outcome.failure is not None:
            failed.append((seed, outcome))
        done.value += 1
    results.put((len(seeds), failed, ends))


class _Worker:
    """A process with a part of the seeds."""

    def __init__(self, all_readers: list[Reader], seeds: range) -> None:
        context = multiprocessing.get_context("fork")
        self.seeds = seeds
        self._done = context.Value("q", 0)
        self._results = context.SimpleQueue()
        self._process = context.Process(target=_work, args=(all_readers, seeds, self._done, self._results), daemon=True)
        self._process.start()
        self._seen, self._since = -1, time.monotonic()

    def result(self) -> tuple[int, list[tuple[int, Outcome]], Counter[tuple[str, str]]] | None:
        """Returns the result; None while the process works."""
        if not self._results.empty():
            found: tuple[int, list[tuple[int, Outcome]], Counter[tuple[str, str]]] = self._results.get()
            self._process.join()
            return found
        if self._done.value != self._seen:
            self._seen, self._since = self._done.value, time.monotonic()
        hangs = time.monotonic() - self._since > WAITING_SECONDS + _GRACE_SECONDS
        if not hangs and self._process.is_alive():
            return None
        if not hangs and not self._results.empty():
            return self.result()
        self.end()
        text = "it does not return" if hangs else f"the process ended with {self._process.exitcode}"
        return self._seen + 1, [(self.seeds[self._seen], Outcome("?", "hang", text))], Counter()

    @property
    def rest(self) -> range:
        """The seeds after the one at which the process ended early; none if it has done all."""
        return self.seeds[self._seen + 1 :] if self._process.exitcode != 0 else range(0)

    def end(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.join()


def _parts(first: int, count: int) -> Iterator[range]:
    for start in range(first, first + count, _CASES_AT_A_TIME):
        yield range(start, min(start + _CASES_AT_A_TIME, first + count))


def _run(first: int, count: int, processes: int) -> int:
    """Runs the cases in processes, and returns the number of failures."""
    all_readers = readers()
    began, done, failures = time.monotonic(), 0, 0
    ends: Counter[tuple[str, str]] = Counter()
    parts, workers = list(_parts(first, count))[::-1], list[_Worker]()
    try:
        while (parts or workers) and failures < _MOST_FAILURES:
            while parts and len(workers) < processes:
                workers.append(_Worker(all_readers, parts.pop()))
            time.sleep(0.05)
            for worker in list(workers):
                result = worker.result()
                if result is None:
                    continue
                workers.remove(worker)
                if worker.rest:
                    parts.append(worker.rest)
                number, failed, of_part = result
                done, failures, ends = done + number, failures + len(failed), ends + of_part
                for seed, outcome in failed:
                    print(f"{outcome.reader}: {outcome.failure}", flush=True)
                    print(f"  repeat it: make fuzz-inputs COUNT=1 SEED={seed}\n", flush=True)
                if done % 10_000 < _CASES_AT_A_TIME:
                    rate = done / (time.monotonic() - began)
                    print(f"{done:,} inputs, {rate:,.0f} a second, {failures} failed", flush=True)
    finally:
        for worker in workers:
            worker.end()
    print(_summary(ends))
    print(f"\n{done:,} inputs in {time.monotonic() - began:,.0f} s: {failures} failed")
    return failures


def _summary(ends: Counter[tuple[str, str]]) -> str:
    """A line per reader: how many inputs it got, and how many had a value; then its most frequent errors."""
    lines = []
    for name in sorted({name for name, _ in ends}):
        of_reader = Counter({end: count for (reader, end), count in ends.items() if reader == name})
        errors = ", ".join(f"{end} {count:,}" for end, count in of_reader.most_common(4) if end != "value")
        lines.append(f"{name:34} {of_reader.total():>8,} {of_reader['value']:>8,} values  {errors}"[:150])
    return "\n".join(lines)


def _repeat(seed: int) -> int:
    all_readers = readers()
    outcome = outcome_of(all_readers, seed, shows=True)
    print(f"{outcome.reader}\ninput: {outcome.shown}\nend: {outcome.end}")
    if outcome.failure is not None:
        print(outcome.failure)
    return int(outcome.failure is not None)


def main() -> int:
    """Returns 1 if a case failed."""
    # One of the inputs is made by code that warns.
    logging.disable(logging.CRITICAL)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="inputs")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first one; the others follow")
    parser.add_argument("--processes", type=int, default=2, choices=(1, 2))
    parser.add_argument("--sql", action="store_true", help="gives statements to a Spark session instead")
    asked = parser.parse_args()
    if asked.sql:
        from inputs.sql_inputs import run_statements

        return int(run_statements(asked.seed, asked.count) > 0)
    if asked.count == 1:
        return _repeat(asked.seed)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    return int(_run(asked.seed, asked.count, asked.processes) > 0)


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets is a part of a case.
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main())
