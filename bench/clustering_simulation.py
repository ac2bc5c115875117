"""Histories of small appends without Spark: files that queries read, and bytes that SizeTieredClustering rewrites.

The policy is the code of the strategy; only reading and writing are left out. Delta's ``OPTIMIZE`` runs over the same
appends at the same moments, with 128 MB as its file size. All tables together take one to two minutes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from clustering_histories import CASES, DAY, HOUR, KB, SIZES, Append, Case, appends
from clustering_tables import (
    Clustering,
    Outcome,
    aligned,
    finished,
    nothing,
    optimize,
    quiet,
    run,
    tiered,
)

from catalog.settings import strategy_options
from procedures.selection.size_tiers import TierPolicy

EVERY = (1, 10, 30, 100)
MIN_FILES, TIER_RATIO = strategy_options.MIN_FILES.value({}), strategy_options.TIER_RATIO.value({})
ISOLATE_BYTES = strategy_options.ISOLATE_BYTES.value({})


def tier_policy(
    min_files: int = MIN_FILES,
    tier_ratio: int = TIER_RATIO,
    max_time_range: int | None = None,
    min_bytes: int | None = None,
) -> TierPolicy:
    """The defaults of the strategy, or others."""
    return TierPolicy(min_files, min_bytes, tier_ratio, ISOLATE_BYTES, max_time_range)


def line(name: str, outcomes: Sequence[Outcome]) -> str:
    """Means over several histories, and the highest number of rewrites."""
    means = [
        float(np.mean([getattr(outcome, of) for outcome in outcomes]))
        for of in ("partition_files", "newest_files", "newest_bytes", "rewritten", "left", "small_left")
    ]
    top = max(outcome.rewrites for outcome in outcomes)
    texts = [f"{mean:10.{digits}f}" for mean, digits in zip(means, (1, 1, 2, 2, 0, 1), strict=True)]
    return f"{name:36}{''.join(texts)}{top:10d}"


NAMES = ("partition", "newest", "bytes", "rewritten", "left", "small", "rewrites")
HEADER = f"{'':36}{''.join(f'{name:>10}' for name in NAMES)}"


class Report:
    """Plays histories and prints tables.

    Args:
        count: appends of each history.
    """

    def __init__(self, count: int) -> None:
        self.histories = {case: appends(case, count) for case in CASES}
        self._outcomes: dict[tuple[Case, TierPolicy, int, Clustering], Outcome] = {}

    def _title(self, text: str) -> None:
        print(f"\n{text}\n{HEADER}")

    def _line(self, name: str, cases: Sequence[Case], policy: TierPolicy, every: int, clustering: Clustering) -> None:
        for case in cases:
            key = case, policy, every, clustering
            if key not in self._outcomes:
                self._outcomes[key] = run(self.histories[case], policy, every, clustering)
        print(line(name, [self._outcomes[case, policy, every, clustering] for case in cases]), flush=True)

    def cases(self) -> None:
        """The defaults and OPTIMIZE, each case."""
        self._title(f"min_files {MIN_FILES}, tier_ratio {TIER_RATIO}, and OPTIMIZE, a run every 10 appends")
        for case in CASES:
            self._line(case.name, [case], tier_policy(), 10, tiered)
            self._line("  OPTIMIZE", [case], tier_policy(), 10, optimize)

    def intervals(self) -> None:
        """Appends between two runs."""
        self._title("Appends between two runs, all cases")
        self._line("no clustering", CASES, tier_policy(), 1, nothing)
        for every in EVERY:
            self._line(f"every {every}: {MIN_FILES}, {TIER_RATIO}", CASES, tier_policy(), every, tiered)
            self._line(f"every {every}: OPTIMIZE", CASES, tier_policy(), every, optimize)

    def parameters(self) -> None:
        """min_files and tier_ratio."""
        self._title("min_files, tier_ratio: all cases, a run every 10 appends")
        for min_files, ratio in ((2, 2), (3, 3), (4, 2), (4, 4), (5, 5), (6, 6), (8, 2), (8, 4), (8, 8), (12, 12)):
            self._line(f"{min_files}, {ratio}", CASES, tier_policy(min_files, ratio), 10, tiered)

    def others(self) -> None:
        """Other rules."""
        self._title("Other rules: all cases, a run every 10 appends")
        for min_files in (MIN_FILES, 8):
            policy = tier_policy(min_files, min_files)
            self._line(f"{min_files}, {min_files}", CASES, policy, 10, tiered)
            self._line("  min_bytes = isolate_bytes", CASES, replace(policy, min_bytes=ISOLATE_BYTES), 10, tiered)
            self._line("  tiers from isolate_bytes", CASES, policy, 10, aligned)
        late = [case for case in CASES if case.story == "late" and case.many]
        self._title("Partitions that get no more files: late, many partitions, a run every 10 appends")
        self._line(f"{MIN_FILES}, {TIER_RATIO}", late, tier_policy(), 10, tiered)
        self._line("  merged once quiet for 6 hours", late, tier_policy(), 10, quiet)
        self._line("  OPTIMIZE", late, tier_policy(), 10, optimize)

    def time_ranges(self) -> None:
        """max_time_range."""
        for size in SIZES:
            cases = [case for case in CASES if case.size == size and not case.many]
            self._title(f"max_time_range: 1 partition, {size // KB} KB, a run every 10 appends")
            for name, most in (("none", None), ("1 day", DAY), ("1 hour", HOUR)):
                self._line(name, cases, tier_policy(max_time_range=most), 10, tiered)
            self._line("1 hour, past hours merged", cases, tier_policy(max_time_range=HOUR), 10, finished)

    def bounds(self) -> None:
        """Rewrites of a row against the tiers that it passes through."""
        print(
            "\nMost rewrites of a row, the tiers of the smallest file up to isolate_bytes, and how far any row exceeds"
        )
        print("the tiers of its own first file (1 partition, a run after each append, files of rows and a footer)")
        for (min_files, ratio), footer in product(((2, 2), (4, 4), (8, 4), (8, 8)), (0, 10 * KB)):
            policy = tier_policy(min_files, ratio)
            top = policy.tier(ISOLATE_BYTES - 1) + 1
            texts = []
            for size in (KB, *SIZES):
                rows = appends(Case("steady", False, size), 1000)
                history = [Append(a.at, tuple((p, s + footer, e) for p, s, e in a.files)) for a in rows]
                tiers = top - policy.tier(min(s for a in history for _, s, _ in a.files))
                outcome = run(history, policy, 1, tiered, footer)
                texts.append(f"{size // KB} KB: {outcome.rewrites} of {tiers}, {max(0, outcome.lift - top)} more")
            print(f"{min_files}, {ratio}, footer {footer // KB:2d} KB   {'   '.join(texts)}", flush=True)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--appends", type=int, default=3000)
    names = ("cases", "intervals", "parameters", "others", "time_ranges", "bounds")
    parser.add_argument("--only", nargs="*", default=names, choices=names)
    arguments = parser.parse_args()
    report = Report(arguments.appends)
    for name in arguments.only:
        begun = time.process_time()
        getattr(report, name)()
        print(f"{time.process_time() - begun:.1f} s")


if __name__ == "__main__":
    main()
