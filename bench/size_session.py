"""The steps of ``bench/size.py`` that need a session: each prints its seconds, memory and jobs as a line of JSON.

    python bench/size_session.py use TABLE HOME
    python bench/size_session.py delta TABLE HOME

The session of ``delta`` has no jar, no extension and no setting of USE. The memory of a step is the heap that is in use
after it, without garbage, and the most that each process held in memory during the step.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

import large_log
from bench_session import start_session
from plain_session import start_plain_session
from pyspark.sql import SparkSession

HEAP = "4g"
BOX = "x BETWEEN 0.30 AND 0.40 AND y BETWEEN 0.5 AND 0.6"
Steps = Mapping[str, Callable[[], object]]


@dataclass(frozen=True)
class Cost:
    """What a step cost.

    Attributes:
        step: its name.
        seconds: elapsed time.
        jobs: Spark jobs.
        heap: megabytes of the JVM's heap in use after the step, without garbage.
        jvm: megabytes that the process of the JVM held at most.
        python: megabytes that the process of Python held at most.
    """

    step: str
    seconds: float
    jobs: int
    heap: int
    jvm: int
    python: int


class Meter:
    """Measures steps of a session."""

    def __init__(self, spark: SparkSession) -> None:
        """Finds the processes."""
        self._spark = spark
        self._processes = ("self", str(int(spark._jvm.java.lang.ProcessHandle.current().pid())))

    def of(self, step: str, work: Callable[[], object]) -> Cost:
        """Runs a step and measures it."""
        jobs = self._jobs()
        for process in self._processes:
            Path(f"/proc/{process}/clear_refs").write_text("5")  # the largest size counts from now on
        started = time.monotonic()
        work()
        seconds = time.monotonic() - started
        python, jvm = (_largest(process) for process in self._processes)
        return Cost(step, round(seconds, 2), self._jobs() - jobs, self._heap(), jvm, python)

    def _heap(self) -> int:
        runtime = self._spark._jvm.java.lang.Runtime.getRuntime()
        for _ in range(2):
            runtime.gc()
        return int(runtime.totalMemory() - runtime.freeMemory()) // 1_000_000

    def _jobs(self) -> int:
        return int(self._spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def _largest(process: str) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) // 1000


def _plan(spark: SparkSession, query: str) -> None:
    """All that happens before the first task: optimizing, selecting files and splitting them into partitions."""
    spark.sql(query)._jdf.queryExecution().toRdd().getNumPartitions()


def use_steps(spark: SparkSession, folder: Path) -> Steps:
    """The steps of USE, in the order in which they run."""
    table = f"SELECT * FROM delta.`{folder}`"

    def call(procedure: str, more: str = "") -> Callable[[], object]:
        return lambda: spark.sql(f"CALL use.{procedure}('{folder}'{more})").collect()

    def choose_after_commit() -> None:
        large_log.append_commit(folder)
        call("optimize", ", dry_run => true")()

    return {
        "open": lambda: spark.sql(table).schema,
        "plan a box": lambda: _plan(spark, f"{table} WHERE {BOX}"),
        "plan it again": lambda: _plan(spark, f"{table} WHERE {BOX}"),
        "plan a sample": lambda: _plan(spark, f"{table} TABLESAMPLE (1 PERCENT)"),
        "status": call("status", ", details => true"),
        "health": call("health"),
        "choose": call("optimize", ", dry_run => true"),
        "choose after a commit": choose_after_commit,
        "check": call("check"),
        "vacuum, dry run": call("vacuum", ", dry_run => true"),
    }


def delta_steps(spark: SparkSession, folder: Path) -> Steps:
    """What Delta has beside them, under the same names."""
    table = f"SELECT * FROM delta.`{folder}`"

    def choose() -> None:
        # No file is as small as that, so that OPTIMIZE looks at all files and rewrites none.
        spark.conf.set("spark.databricks.delta.optimize.minFileSize", "1")
        spark.sql(f"OPTIMIZE delta.`{folder}`").collect()

    def choose_after_commit() -> None:
        large_log.append_commit(folder)
        choose()

    return {
        "open": lambda: spark.sql(table).schema,
        "plan a box": lambda: _plan(spark, f"{table} WHERE {BOX}"),
        "plan it again": lambda: _plan(spark, f"{table} WHERE {BOX}"),
        "status": lambda: spark.sql(f"DESCRIBE DETAIL delta.`{folder}`").collect(),
        "choose": choose,
        "choose after a commit": choose_after_commit,
        "vacuum, dry run": lambda: spark.sql(f"VACUUM delta.`{folder}` DRY RUN").collect(),
    }


def main() -> None:
    """Runs the steps of one side."""
    side, folder, home = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if side == "use":
        spark = start_session("bench-size", home, HEAP, {"spark.qbeast.use.service.enabled": "false"})
    else:
        spark = start_plain_session(home, {"spark.driver.memory": HEAP}, "local[2]")
    spark.range(10).count()  # the first job loads classes
    meter = Meter(spark)
    for step, work in (use_steps if side == "use" else delta_steps)(spark, folder).items():
        try:
            cost = asdict(meter.of(step, work))
        except Exception as error:  # noqa: BLE001 - one side may not be able to do what the other one does
            cost = {"step": step, "error": str(error)[:300]}
        print(json.dumps(cost), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
