"""Random queries over an indexed table, against the same queries without the index.

    make fuzz-queries COUNT=500 SEED=7

Prints the seed of each batch, and every query whose rows differ. Ends with 0 when there was none.
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
# Conditions whose types Spark refuses are tried, too, and pyspark logs the JVM's stack of each.
logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)

from random_queries import Tally, make_table, run  # noqa: E402
from sessions import start_session  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500, help="about how many conditions")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="of the first batch")
    given = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        spark = start_session(Path(folder))
        try:
            table = make_table(spark, "default.fuzz_queries", Random(given.seed))
            print(f"--seed {given.seed}: {len(table.files)} files after {time.monotonic() - start:.0f} s", flush=True)
            tally, shown = Tally(), 0
            for seed in run(table, given.seed, given.count, tally):
                print(f"batch {seed}: {tally.text} after {time.monotonic() - start:.0f} s", flush=True)
                for failure in tally.failures[shown:]:
                    print(f"FAILURE {failure}", flush=True)
                shown = len(tally.failures)
        finally:
            spark.stop()
    if not tally.skipped:
        print("FAILURE no file was skipped, so nothing was tried")
    return 1 if tally.failures or not tally.skipped else 0


if __name__ == "__main__":
    sys.exit(main())
