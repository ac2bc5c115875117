"""Two plain writers append without a pause while the optimizer runs, by CALL or by the service; counts what fails.

    make soak-ingest MINUTES=10
    make soak-ingest ARGS="--story growth"

``constant`` moves event time on evenly. In ``growth`` one writer appends every second, and event time runs so fast
that the table grows through ten revisions. Ends with 0 when no append failed and no row is lost or there twice.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parents[1] / "support")]
os.environ["TZ"] = "UTC"
time.tzset()

from ingestion import COLUMNS, Ingestion, PlainWriter, expected_checksum  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from sessions import start_session  # noqa: E402
from tables import create  # noqa: E402

from procedures.service.service import Service  # noqa: E402

REPORT_SECONDS = 30
REVISIONS = 10
SERVICE = {
    "spark.qbeast.use.service.enabled": "true",
    "spark.qbeast.use.optimization-interval": "5s",
    "spark.qbeast.use.listener-interval": "1s",
}


def run(spark: SparkSession, folder: Path, story: str, by: str, minutes: float, rate: float) -> list[str]:
    """Runs one story; returns what is wrong."""
    properties = {"use.optimization.autoOptimize.enabled": "true"} if by == "service" else {}
    table = create(spark, f"delta.`{folder / 't'}`", COLUMNS, index="at,x", properties=properties)
    growing = story == "growth"
    writers = [
        PlainWriter(
            spark.newSession(),
            str(folder / "t"),
            number,
            event=(lambda count: int(600 * 1.35**count)) if growing else (lambda count: count * 600),
        )
        for number in range(1 if growing else 2)
    ]
    service = None
    if by == "service":
        for key, value in SERVICE.items():
            spark.conf.set(key, value)
        # The metastore does not list tables by path.
        service = Service(spark, [table.name])
        service.start()
    begun = reported = time.monotonic()
    pause = 1.0 if growing else len(writers) / rate
    with Ingestion(table, writers, pause) as ingestion:
        while time.monotonic() - begun < minutes * 60:
            if service is None:
                ingestion.optimize()
            time.sleep(0.5 if service is None else 1)
            if time.monotonic() - reported >= REPORT_SECONDS:
                reported = time.monotonic()
                print(f"{reported - begun:5.0f} s  {ingestion.summary()}", flush=True)
            if growing and len(table.revisions) > REVISIONS:
                break
    if service is not None:
        service.stop()
        spark.conf.set("spark.qbeast.use.service.enabled", "false")
    unindexed = len(table.unindexed)
    ingestion.optimize()
    print(f"      end  {ingestion.summary()}; revisions {len(table.revisions) - 1}", flush=True)
    wrong = [*ingestion.conflicts, *ingestion.errors]
    if table.checksum() != expected_checksum(spark, writers):
        wrong.append("the rows differ from those that were appended")
    behind = [one for one in ingestion.passes if one.after > one.arrived + len(writers)]
    if behind:
        wrong.append(f"passes left files that were there when they began: {behind}")
    print(f"      unindexed files at the end of the appends: {unindexed}", flush=True)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rate", type=float, default=5, help="appends per second of both writers together")
    parser.add_argument("--story", choices=("constant", "growth"), default="constant")
    parser.add_argument("--by", choices=("call", "service"), default="call")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="use-ingest-") as folder:
        spark = start_session(Path(folder))
        wrong = run(spark, Path(folder), wanted.story, wanted.by, wanted.minutes, wanted.rate)
        spark.stop()
    for text in wrong:
        print(f"FAILURE {text}", flush=True)
    print("FAILED" if wrong else "no append failed, and every row is there once")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
