"""Random queries with joins, against the same queries whose joins skip no files.

    make fuzz-joins COUNT=500 SEED=7
    make fuzz-joins COUNT=500 ARGS=--merges

With ``--merges``, random MERGEs instead, against the same MERGEs that look at all files of a copy of the table. Prints
every statement whose rows differ, with its seed. Ends with 0 when there was none.
"""

import argparse
import logging
import os
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]
os.environ["TZ"] = "UTC"
time.tzset()
logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)

from pyspark.sql import SparkSession  # noqa: E402
from random_joins import JoinTables, JoinTally, make_join_tables, run_joins  # noqa: E402
from random_merges import MergeTally, run_merges  # noqa: E402
from sessions import start_session  # noqa: E402

SHOWN_EVERY = 100
LONG = 2_000  # from here on, the optimizing compiler pays


class Shown:
    """Prints how far a run is, and its failures, from any thread."""

    def __init__(self) -> None:
        self._start, self._lock, self._done = time.monotonic(), threading.Lock(), 0

    def after(self, seed: int, tally: JoinTally | MergeTally, shown: int) -> int:
        """Prints what is new after a query; returns the number of failures that are printed."""
        with self._lock:
            self._done += 1
            if self._done % SHOWN_EVERY == 0 or len(tally.failures) > shown:
                print(f"{self._done} done after {time.monotonic() - self._start:.0f} s: {tally.text}", flush=True)
            for failure in tally.failures[shown:]:
                print(f"FAILURE of query {seed}: {failure}", flush=True)
        return len(tally.failures)


def run_all_merges(spark: SparkSession, tables: JoinTables, folder: Path, given: argparse.Namespace) -> MergeTally:
    """Compares random MERGEs, one after another."""
    tally, shown, failures = MergeTally(), Shown(), 0
    for seed in run_merges(spark, tables, folder / "copies", given.seed, given.count, tally):
        failures = shown.after(seed, tally, failures)
    print(tally.text)
    return tally


def run_all_joins(spark: SparkSession, tables: JoinTables, _folder: Path, given: argparse.Namespace) -> JoinTally:
    """Compares random queries in several sessions at once."""
    shown, all_seeds = Shown(), range(given.seed, given.seed + given.count)

    def work(number: int) -> JoinTally:
        session, tally, failures = spark.newSession(), JoinTally(), 0
        session.conf.set("spark.databricks.delta.stalenessLimit", "1h")
        for seed in run_joins(session, tables, all_seeds[number :: given.threads], tally, shuffled=given.shuffled):
            failures = shown.after(seed, tally, failures)
        return tally

    with ThreadPoolExecutor(given.threads) as pool:
        tally = sum(pool.map(work, range(given.threads)), JoinTally())
    print(tally.text)
    print(", ".join(f"{reason} {count}" for reason, count in tally.reasons.most_common()))
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500, help="how many queries")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="of the first query")
    parser.add_argument("--shuffled", action="store_true", help="no side is broadcast without a hint")
    parser.add_argument("--threads", type=int, default=3, help="sessions that compare queries at once")
    parser.add_argument("--merges", action="store_true", help="MERGEs in place of queries")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        spark = start_session(Path(folder), short_lived=given.count < LONG)
        # No other process writes to these tables.
        spark.conf.set("spark.databricks.delta.stalenessLimit", "1h")
        try:
            tables = make_join_tables(spark, "default.joins", Random(given.seed))
            run = run_all_merges if given.merges else run_all_joins
            tally = run(spark, tables, Path(folder), given)
        finally:
            spark.stop()
    for weakness in tally.weaknesses:
        print(f"FAILURE {weakness}")
    return 1 if tally.failures or tally.weaknesses else 0


if __name__ == "__main__":
    sys.exit(main())
