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
import time
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]
os.environ["TZ"] = "UTC"
time.tzset()
logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)

from random_joins import JoinTally, make_join_tables, run_joins  # noqa: E402
from random_merges import MergeTally, run_merges  # noqa: E402
from sessions import start_session  # noqa: E402

SHOWN_EVERY = 100


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500, help="how many queries")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="of the first query")
    parser.add_argument("--shuffled", action="store_true", help="no side is broadcast without a hint")
    parser.add_argument("--merges", action="store_true", help="MERGEs in place of queries")
    given = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        spark = start_session(Path(folder))
        try:
            tables = make_join_tables(spark, "default.joins", Random(given.seed))
            tally: JoinTally | MergeTally
            if given.merges:
                tally = MergeTally()
                seeds = run_merges(spark, tables, Path(folder) / "copies", given.seed, given.count, tally)
            else:
                tally = JoinTally()
                seeds = run_joins(spark, tables, given.seed, given.count, tally, shuffled=given.shuffled)
            shown = 0
            for seed in seeds:
                if (seed - given.seed) % SHOWN_EVERY == SHOWN_EVERY - 1 or len(tally.failures) > shown:
                    print(f"query {seed}: {tally.text} after {time.monotonic() - start:.0f} s", flush=True)
                for failure in tally.failures[shown:]:
                    print(f"FAILURE of query {seed}: {failure}", flush=True)
                shown = len(tally.failures)
            print(tally.text)
            if isinstance(tally, JoinTally):
                print(", ".join(f"{reason} {count}" for reason, count in tally.reasons.most_common()))
        finally:
            spark.stop()
    for weakness in tally.weaknesses:
        print(f"FAILURE {weakness}")
    return 1 if tally.failures or tally.weaknesses else 0


if __name__ == "__main__":
    sys.exit(main())
