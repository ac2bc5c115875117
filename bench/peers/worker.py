"""Runs one workload on one system, in this process, and stores what was measured.

It needs PySpark and this folder only, besides what the system itself needs.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from peers import workload as workloads
from peers.answers import is_same
from peers.measures import Bucket, LocalStorage, Storage, cpu_seconds, log_bytes
from peers.systems import SYSTEMS, System
from peers.turns import READY, TIMED, await_turn
from peers.workload import Step, Table, Workload

SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "3g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "snappy",
    # Hudi has no timestamps without a time zone.
    "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
}
_MEGABYTES_OF_A_WORKER = 1536
Record = dict[str, Any]


@dataclass
class Run:
    """A session with a system.

    Attributes:
        spark: the session.
        system: the system.
        storage: where its tables are.
        log: what each step cost.
        former: names of the tables with files that are laid out by former columns.
    """

    spark: SparkSession
    system: System
    storage: Storage
    log: list[Record] = field(default_factory=list)
    former: set[str] = field(default_factory=set)

    @contextmanager
    def measured(self, record: Record) -> Iterator[Record]:
        """Adds what the body cost to a record; the body may store ``planned``, the moment when the plan was there."""
        self.storage.start(self.jvm)
        before, start = self._totals(), time.monotonic()
        yield record
        seconds = time.monotonic() - start
        record |= {"seconds": seconds, "planning": record.pop("planned", start) - start}
        record |= {name: total - before[name] for name, total in self._totals().items()}
        record["counts"] = self.storage.counts(self.jvm)

    def query(self, text: str, expected: list[list[str]]) -> Record:
        """Runs a query once."""
        with self.measured({}) as record:
            data = self.spark.sql(text)
            data._jdf.queryExecution().executedPlan()
            record["planned"] = time.monotonic()
            rows = data.collect()
        record["ok"] = is_same([tuple(row) for row in rows], expected)
        return record

    def _totals(self) -> dict[str, float]:
        """Time of tasks, CPU time of all processes, and jobs, since the session began."""
        context = self.spark.sparkContext._jsc.sc()
        context.listenerBus().waitUntilEmpty()
        pid = self.jvm.java.lang.ProcessHandle.current().pid()
        return {
            "task_seconds": self._task_seconds(),
            "cpu_seconds": cpu_seconds(pid) + time.process_time(),
            "jobs": context.dagScheduler().numTotalJobs(),
        }

    def _task_seconds(self) -> float:
        executor = self.jvm.org.apache.spark.executor.Executor
        if (source := executor.executorSourceLocalModeOnly()) is not None:
            return float(source.METRIC_RUN_TIME().getCount()) / 1e3
        # Only of other processes than the driver: there, Spark returns the time since its start.
        executors = self.spark.sparkContext._jsc.sc().statusStore().executorList(False)
        listed = [executors.apply(number) for number in range(executors.size())]
        return float(sum(each.totalDuration() for each in listed if each.id() != "driver")) / 1e3

    @property
    def jvm(self) -> Any:
        """The JVM of the session."""
        return self.spark.sparkContext._jvm


@dataclass
class Account:
    """What a system may still rewrite.

    Attributes:
        share: bytes that each round adds.
        bytes: the rest; a system that cannot be told may overdraw it, and then waits.
    """

    share: float
    bytes: float = 0


def run_workload(run: Run, work: Workload, folder: Path, budget: float, rounds: int) -> Record:
    """Loads the tables, lays them out, and runs the history.

    Args:
        run: the session.
        work: the workload.
        folder: of the workload.
        budget: bytes that may be rewritten during the history, in sizes of the tables that it changes.
        rounds: how often each measurement runs each query, after one round that warms up.
    """
    tables = {table.name: table for table in work.tables}
    load(run, work, folder)
    size = sum(live_files(run, table)["bytes"] for table in work.written_tables)
    account = Account(budget * size / max(sum(step.kind == "maintain" for step in work.steps), 1))
    for step in work.steps:
        print(f"  {run.system.name}: {step.kind} {step.table or step.name}", flush=True)
        if step.kind == "measure":
            measure(run, work, step, tables.values(), rounds)
        elif step.kind == "maintain":
            maintain(run, work, tables, account)
        elif step.kind == "relayout":
            tables[step.table] = replace(tables[step.table], layout=step.columns)
            run.former.add(step.table)
            if run.system.relayout:
                run.spark.sql(run.system.relayout.format(table=step.table, columns=", ".join(step.columns)))
        else:
            with run.measured({"step": step.kind}) as record:
                run.system.change(run.spark, step, tables[step.table], folder)
            run.log.append(record)
    configuration = run.spark.sparkContext._jsc.hadoopConfiguration()
    logged = log_bytes(run.jvm, configuration, run.storage.warehouse)
    return {"steps": run.log, "log_bytes": logged, "spark": run.spark.version}


def load(run: Run, work: Workload, folder: Path) -> None:
    """Makes the tables and lays them out as a whole."""
    with run.measured({"step": "load"}) as record:
        for table in work.tables:
            run.system.create(run.spark, table, f"parquet.`{folder / table.rows}`", work.file_bytes)
    run.log.append(record)
    with run.measured({"step": "lay out"}) as record:
        for table in work.tables:
            if table.layout:
                run.system.lay_out(run.spark, table, work.file_bytes)
    run.log.append(record)


def measure(run: Run, work: Workload, step: Step, tables: Iterable[Table], rounds: int) -> None:
    """Runs the queries of a measurement, in another order each time."""
    for turn in range(rounds + 1):
        if turn:
            await_turn(READY)
        for name in step.queries if turn % 2 else reversed(step.queries):
            cost = run.query(work.queries[name], work.answers[step.name][name])
            run.log.append({"step": "query", "name": step.name, "query": name, **cost})
    if rounds:
        await_turn(TIMED)
    # Afterwards, because it makes Delta list the files of the version in its own way.
    sizes = {table.name: live_files(run, table) for table in tables}
    run.log.append({"step": "measure", "name": step.name, "sizes": sizes})


def maintain(run: Run, work: Workload, tables: Mapping[str, Table], account: Account) -> None:
    """Lets the system rewrite each table, if its account is not empty by then."""
    account.bytes += account.share
    for table in (tables[each.name] for each in work.written_tables):
        if account.bytes <= 0:
            return
        with run.measured({"step": "maintain"}) as record:
            if table.name in run.former:
                (run.system.move or run.system.lay_out)(run.spark, table, work.file_bytes)
            else:
                run.system.maintain(run.spark, table, work.file_bytes, max(1, int(account.bytes)))
        run.former.discard(table.name)
        account.bytes -= record["counts"].get("data.bytes_written", 0)
        run.log.append(record)


def live_files(run: Run, table: Table) -> dict[str, int]:
    """Number and bytes of the files of a table's newest version."""
    kind = run.system.table_format
    if kind == "delta":
        row = run.spark.sql(f"DESCRIBE DETAIL {table.name}").select("numFiles", "sizeInBytes").first()
    elif kind == "iceberg":
        row = run.spark.sql(f"SELECT count(*), sum(file_size_in_bytes) FROM ice.bench.{table.name}.files").first()
    else:
        paths = run.spark.sql(f"SELECT DISTINCT input_file_name() FROM {table.name}").collect()
        sizes = [_length(run, path) for (path,) in paths]
        return {"files": len(sizes), "bytes": sum(sizes)}
    assert row is not None
    return {"files": int(row[0]), "bytes": int(row[1] or 0)}


def _length(run: Run, path: str) -> int:
    file = run.jvm.org.apache.hadoop.fs.Path(run.jvm.java.net.URI(path))
    return int(file.getFileSystem(run.spark.sparkContext._jsc.hadoopConfiguration()).getFileStatus(file).getLen())


def start(system: System, home: Path, storage: Storage, workers: int = 0) -> Run:
    """Starts the session of a system.

    Args:
        system: the system.
        home: a folder for what does not belong to tables.
        storage: where tables are.
        workers: processes with a core each that run tasks; 0 = this one, with two cores.
    """
    builder = SparkSession.builder.appName(f"bench {system.name}")
    own = {
        "spark.sql.warehouse.dir": storage.warehouse,
        "spark.local.dir": str(home / "local"),
        "spark.sql.catalog.ice.warehouse": storage.warehouse,
    }
    settings = {**SETTINGS, **own, **storage.settings, **system.settings}
    if workers:
        settings["spark.master"] = f"local-cluster[{workers},1,{_MEGABYTES_OF_A_WORKER}]"
        settings["spark.executor.memory"] = f"{_MEGABYTES_OF_A_WORKER}m"
    packages = [*filter(None, [settings.get("spark.jars.packages")]), *storage.packages]
    if packages:
        settings["spark.jars.packages"] = ",".join(packages)
    for key, value in settings.items():
        builder = builder.config(key, value)
    # Downloads of the same packages at the same time fail.
    with (Path(sys.prefix) / ".starting").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        spark = system.attach(builder, storage.packages)
    spark.sparkContext.setLogLevel("ERROR")
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {system.namespace}")
    spark.sql(f"USE {system.namespace}")
    return Run(spark, system, storage)


def main() -> None:
    """Runs one system; the last argument is a file for the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("workload", type=Path)
    parser.add_argument("home", type=Path)
    parser.add_argument("jar", help="has a file system that counts")
    parser.add_argument("result", type=Path)
    parser.add_argument("--budget", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--store", help="address of a server whose bucket has the tables")
    parser.add_argument("--workers", type=int, default=0)
    wanted = parser.parse_args()
    # Names of buckets have no underscores.
    bucket = wanted.home.name.replace("_", "0")
    storage = Bucket(wanted.store, bucket) if wanted.store else LocalStorage(wanted.home, wanted.jar)
    run = start(SYSTEMS[wanted.system], wanted.home, storage, wanted.workers)
    result = run_workload(run, workloads.load(wanted.workload), wanted.workload, wanted.budget, wanted.rounds)
    wanted.result.write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
