"""The operations that are disturbed: what each is called with, and on which table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import sql_ext
from catalog.clock import SYSTEM_CLOCK
from catalog.errors import UseError
from catalog.properties.fleet_properties import Pool
from catalog.properties.optimization_properties import AUTO_ENABLED_KEY
from catalog.table.managed_table import ManagedTable
from faults.templates import rows
from procedures.declare.runs import AUTOMATIC, Run
from procedures.fleet.budget import RunBudget
from procedures.process.application import application
from procedures.service.execution import SparkEngine, Turn
from procedures.service.schedule import Schedule

WRITTEN = range(5000, 5020)
"""The ids of the rows that the operation ``write`` appends."""
_DAY = 86_400_000
_LEDGER = ".ledger"


@dataclass(frozen=True)
class Operation:
    """An operation on a table.

    Attributes:
        name: for the summary.
        template: the table that it works on.
        run: runs it in a session, on the table at a path.
        adds_rows: whether it appends the rows ``WRITTEN``.
        done: codes of errors that say that a run before has done the work.
        may_append: whether another writer can append to the table meanwhile.
        protects: whether it writes or removes protections.
    """

    name: str
    template: str
    run: Callable[[SparkSession, Path], object]
    adds_rows: bool = False
    done: frozenset[str] = frozenset()
    may_append: bool = True
    protects: bool = False


def _call(procedure: str, **arguments: Any) -> Callable[[SparkSession, Path], object]:
    def run(spark: SparkSession, path: Path) -> object:
        return sql_ext.call(spark, procedure, table=str(path), **arguments).collect()

    return run


def _purge(spark: SparkSession, path: Path) -> object:
    newest = ManagedTable.find(spark, str(path)).snapshot().version
    return sql_ext.call(spark, "purge", table=str(path), older_than=newest, force=True).collect()


def _execute_plan(spark: SparkSession, path: Path) -> object:
    (plan,) = [folder.name for folder in (path / "_use" / "plans").iterdir() if folder.is_dir()]
    return sql_ext.call(spark, "optimize", table=str(path), plan=plan).collect()


def _fleet_turn(spark: SparkSession, path: Path) -> object:
    """A turn of the service at this table, paid from a ledger beside it."""
    table = ManagedTable.find(spark, f"delta.`{path}`")
    on = {AUTO_ENABLED_KEY: "true", "use.optimization.quietPeriod": "0"}
    schedule = Schedule.of_table({**table.snapshot().settings, **on})
    assert schedule is not None
    app = application()
    engine = SparkEngine(spark, app)
    ledger = path.with_name(path.name + _LEDGER)
    budget = RunBudget(lambda: engine.ledger(ledger.as_uri()), (Pool(None, 10**9, _DAY, 1),), None, SYSTEM_CLOCK)
    run = Run.of(table, AUTOMATIC, schedule.parameters, app.clock)
    with budget.running(run) as refused:
        if refused is None:
            return engine.run(run, schedule, "use", Turn(budget, engine.appraise(run, schedule, "use", 10**8)))
    # The service shows the reason as that of a pause, and tries again later.
    raise UseError(refused.message, code=refused.code)


def _write(spark: SparkSession, path: Path) -> None:
    appended = rows(spark, WRITTEN.start, len(WRITTEN))
    appended.write.format("qbeast").mode("append").save(str(path))


OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for operation in (
        Operation("index files", "unindexed", _call("optimize")),
        Operation(
            "merge files", "small_files", _call("optimize", strategy="SizeTieredClustering", options={"min_files": "2"})
        ),
        Operation("two groups at once", "indexed", _call("optimize", parallelism=2, bytes_per_iter=2_000)),
        Operation("compact deletes", "deleted", _call("compact")),
        Operation("execute plan", "planned", _execute_plan),
        Operation("store plan", "small_files", _call("plan", columns="x", max_file_bytes=100_000, store=True)),
        Operation("fleet turn", "unindexed", _fleet_turn),
        Operation("write", "indexed", _write, adds_rows=True),
        Operation("vacuum", "history", _call("vacuum", retention_hours=0.0, force=True)),
        Operation("vacuum lite", "history", _call("vacuum", retention_hours=0.0, force=True, mode="lite")),
        Operation(
            "vacuum at a rate",
            "history",
            _call("vacuum", retention_hours=0.0, force=True, max_files_per_second=200.0),
        ),
        Operation("purge", "old_deletes", _purge),
        Operation(
            "protect",
            "history",
            _call("protect", version=3, name="p"),
            done=frozenset({"USE_ALREADY_PROTECTED"}),
            protects=True,
        ),
        Operation(
            "unprotect",
            "history",
            _call("unprotect", name="kept"),
            done=frozenset({"USE_UNKNOWN_PROTECTION"}),
            protects=True,
        ),
        Operation(
            "consolidate log",
            "history",
            _call("consolidate_log", modes=["table_metadata", "file_metadata", "events", "commits"]),
        ),
        Operation("set index", "small_files", _call("index", columns="x,y", cube_size=20)),
        Operation("drop index", "indexed", _call("drop_index"), done=frozenset({"USE_NOT_INDEXED"})),
        Operation("convert", "parquet", _call("index", columns="x,y", convert=True), may_append=False),
        Operation("suspend", "indexed", _call("suspend")),
    )
}
