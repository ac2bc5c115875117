"""What the looks of the service cost with many tables in one metastore.

The tables are tiny, and their logs are copies of one. Their last commits are spread over time, 50 minutes ago on
average, as in a fleet of which 1 % changes in each look. The clock of the service goes on by an interval between two
looks, and commits are written as files. Automatic optimization is on, but only the looks are measured: the first run of
a table does nothing, and the next one is due on the next day. ``--plain`` leaves it off.

    make bench-looks ARGS="--tables 10000 --json bench/results/looks.json"
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench_session import start_session
from pyspark.sql import SparkSession

from catalog.clock import SYSTEM_CLOCK
from procedures.declare.runs import Run
from procedures.fleet.appraisal import Appraisal
from procedures.process.application import application
from procedures.service.execution import RunOutcome, SparkEngine, Turn
from procedures.service.schedule import Schedule
from procedures.service.service import Service

INTERVAL = 30_000
COMMITS = 3
AUTOMATIC = "TBLPROPERTIES ('use.fleet.enabled' = 'true')"


class FleetClock:
    """A clock that the benchmark moves."""

    def __init__(self) -> None:
        """Starts at the time of the machine."""
        self.time = SYSTEM_CLOCK.now()

    def now(self) -> int:
        """See ``Clock.now``."""
        return self.time

    def monotonic(self) -> float:
        """See ``Clock.monotonic``."""
        return self.time / 1000

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """See ``Clock.wait``."""
        return event.wait(seconds)


class IdleEngine(SparkEngine):
    """An engine whose runs find nothing to do, and whose tables are not suspended."""

    def run(self, run: Run, schedule: Schedule, pool: str, turn: Turn) -> RunOutcome:  # noqa: ARG002
        """See ``Engine.run``."""
        return RunOutcome(0)

    def appraise(self, run: Run, schedule: Schedule, pool: str, group_bytes: int | None) -> Appraisal:  # noqa: ARG002
        """See ``Engine.appraise``."""
        return Appraisal(0, None)

    def maintain(self, run: Run, schedule: Schedule, name: str, pool: str) -> bool:  # noqa: ARG002
        """See ``Engine.maintain``."""
        return True

    def suspended(self, location: str) -> bool:  # noqa: ARG002
        """See ``Engine.suspended``."""
        return False


@dataclass(frozen=True)
class Look:
    """What a look cost.

    Attributes:
        python: CPU seconds of the process of Python.
        jvm: CPU seconds of the JVM.
        seconds: elapsed time.
        jobs: Spark jobs.
    """

    python: float
    jvm: float
    seconds: float
    jobs: int


class Fleet:
    """Tables whose logs are copies of one.

    Args:
        spark: the session.
        folder: where the tables are.
        count: number of tables.
        declared: further clauses of ``CREATE TABLE``.
    """

    def __init__(self, spark: SparkSession, folder: Path, count: int, declared: str) -> None:
        self._folder = folder
        columns = "id BIGINT, day DATE, note STRING"
        spark.sql(f"CREATE TABLE pattern ({columns}) USING delta LOCATION '{folder}/pattern' {declared}")
        for _ in range(COMMITS):
            spark.sql("INSERT INTO pattern VALUES (1, DATE'2026-01-01', 'one')").collect()
        self._log = folder / "pattern" / "_delta_log"
        self._versions = [COMMITS] * count
        self._random = random.Random(7)
        for number in range(count):
            shutil.copytree(self._log, self._log_of(number))
            # Commits of a table are independent, so the time since the last one has this distribution.
            written = time.time() - self._random.expovariate(1 / (100 * INTERVAL / 1000))
            os.utime(self._file(number, COMMITS), (written, written))
        self._register(spark, count)
        # As in an application that has just started.
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def _register(self, spark: SparkSession, count: int) -> None:
        """Enters the tables into the metastore, as ``CREATE TABLE`` does after it has looked at their logs."""
        jvm, catalog = spark._jvm, spark._jsparkSession.sessionState().catalog().externalCatalog()
        pattern = catalog.getTable("default", "pattern")

        def fields_of(value: Any) -> list[Any]:
            return [value.productElement(index) for index in range(value.productArity())]

        classes = jvm.org.apache.spark.sql.catalyst
        name, storage, rest = map(fields_of, (pattern.identifier(), pattern.storage(), pattern))
        for number in range(count):
            name[0] = f"t{number}"
            storage[0] = jvm.scala.Some(jvm.java.net.URI(f"file:{self._folder}/t{number}"))
            rest[0] = classes.TableIdentifier(*name)
            rest[2] = classes.catalog.CatalogStorageFormat(*storage)
            catalog.createTable(classes.catalog.CatalogTable(*rest), False)
        spark.sql("DROP TABLE pattern")

    def commit(self, count: int) -> None:
        """Adds a commit to some tables."""
        for number in self._random.sample(range(len(self._versions)), count):
            self._versions[number] += 1
            last = f"{COMMITS:020d}"
            for kind in ("json", "crc"):
                shutil.copy(self._log / f"{last}.{kind}", self._file(number, self._versions[number], kind))

    def _log_of(self, number: int) -> Path:
        return self._folder / f"t{number}" / "_delta_log"

    def _file(self, number: int, version: int, kind: str = "json") -> Path:
        return self._log_of(number) / f"{version:020d}.{kind}"


class Meter:
    """Measures looks by the CPU times of both processes, which other processes do not change."""

    def __init__(self, spark: SparkSession) -> None:
        """Finds the process of the JVM."""
        self._spark = spark
        self._jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())

    def of(self, service: Service) -> Look:
        """Runs a round and measures it."""
        jobs, python, jvm, started = self._jobs(), time.process_time(), self._cpu(), time.monotonic()
        service.tick()
        return Look(time.process_time() - python, self._cpu() - jvm, time.monotonic() - started, self._jobs() - jobs)

    def memory(self) -> dict[str, int]:
        """Megabytes of the heap that are in use, and of Python."""
        runtime = self._spark._jvm.java.lang.Runtime.getRuntime()
        for _ in range(2):
            runtime.gc()
        heap = runtime.totalMemory() - runtime.freeMemory()
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return {"heap": heap // 1_000_000, "python": resident // 1_000_000}

    def _cpu(self) -> float:
        fields = Path(f"/proc/{self._jvm}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _jobs(self) -> int:
        return int(self._spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def measured(spark: SparkSession, fleet: Fleet, changed: int, looks: int, warm: int) -> Iterator[tuple[str, object]]:
    """Yields the figures of the first look, of the looks, and of the memory."""
    meter, clock = Meter(spark), FleetClock()
    spark.conf.set("spark.qbeast.use.service.enabled", "true")
    spark.conf.set("spark.qbeast.use.optimization-interval", "1 day")
    service = Service(spark, clock=clock, engine=IdleEngine(spark, application()))
    before = meter.memory()
    yield "first look", asdict(meter.of(service))
    each = []
    for _ in range(warm + looks):
        fleet.commit(changed)
        clock.time += INTERVAL
        each.append(meter.of(service))
        print("  ".join(f"{key} {value:.3f}" for key, value in asdict(each[-1]).items()), flush=True)
    each = each[warm:]
    mean = {key: round(sum(getattr(look, key) for look in each) / looks, 4) for key in asdict(each[0])}
    yield "later looks", mean
    yield "longest look", max(look.seconds for look in each)
    yield "share of a core", round((mean["python"] + mean["jvm"]) / (INTERVAL / 1000), 5)
    after = meter.memory()
    yield "memory", {key: after[key] - before[key] for key in before}


def main() -> None:
    """Runs the comparison and prints its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=1_000)
    parser.add_argument("--changed", type=float, default=0.01, help="share of the tables with a commit between looks")
    parser.add_argument("--looks", type=int, default=16, help="looks to measure")
    parser.add_argument("--warm", type=int, default=8, help="looks before them, in which code is compiled")
    parser.add_argument("--plain", action="store_true", help="without automatic optimization")
    parser.add_argument("--json", help="a file for the figures")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        spark = start_session("bench-looks", Path(home), "1g", {"spark.qbeast.use.service.enabled": "false"})
        fleet = Fleet(spark, Path(home) / "fleet", options.tables, "" if options.plain else AUTOMATIC)
        changed = round(options.tables * options.changed)
        figures: dict[str, object] = {"tables": options.tables, "changed": changed}
        for name, value in measured(spark, fleet, changed, options.looks, options.warm):
            figures[name] = value
            print(f"{name}: {value}", flush=True)
        spark.stop()
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
