"""The loop of optimize: groups side by side, and ways to end it between groups."""

import os
import signal
import threading

import pytest
from placement import check_placement
from pyspark.sql import functions as F

import sql_ext
from catalog.errors import UseError
from procedures.optimize import OPTIMIZE
from procedures.optimizer.engine import optimize
from procedures.optimizer.optimize_settings import OptimizeSettings
from procedures.optimizer.plan import FileGroup, InputFile, Selection
from procedures.optimizer.runs import RUNS, Run
from procedures.selection import STRATEGIES, Strategy, register_strategy

DEFAULTS = {p.name: None if p.required else p.default for p in OPTIMIZE.parameters}
FILE_BY_FILE = {"strategy": "UnindexedFiles", "options": {"batch_bytes": "1"}}


@pytest.fixture
def table(spark, new_table):
    """Four files of a hundred rows each, with an index that they fit."""
    made = new_table("a BIGINT, b DOUBLE", index="a,b", cube_size=1000)
    made.append(spark.sql("SELECT 0L a, 0D b UNION ALL SELECT 399L, 60D")).index()
    for start in range(0, 400, 100):
        made.append(spark.range(start, start + 100).select(F.col("id").alias("a"), (F.col("id") / 7).alias("b")))
    return made


def run_of(table):
    return Run.of(table.managed, "call", {})


def optimize_with(table, run=None, observe=lambda _: None, **given):
    settings = OptimizeSettings.of({**DEFAULTS, "table": table.name, **FILE_BY_FILE, **given})
    return optimize(table.managed, settings, run or run_of(table), observe)


def outcome(report):
    return [(r.iteration, r.state, r.reason) for r in report]


def test_groups_side_by_side(table):
    before = table.checksum()
    together, threads = threading.Barrier(2, timeout=120), set()

    def observe(step):
        if step == "write" and len(threads) < 2:
            threads.add(threading.current_thread().name)
            # Nobody gets past here alone.
            together.wait()

    report = optimize_with(table, observe=observe, parallelism=2, max_iterations=3)
    assert outcome(report)[:3] == [(i, "committed", "UNINDEXED") for i in (1, 1, 2)]
    assert report[-1].reason == "LIMIT_REACHED"
    assert len({r.version for r in report[:3]}) == 3
    assert table.checksum() == before
    assert check_placement(table) == 302
    assert len(table.unindexed) == 1


def test_a_first_indexing_is_one_group(spark, new_table):
    """A second one beside it would lose the race for the new revision."""
    table = new_table("a BIGINT, b DOUBLE", index="a,b").append(spark.range(20).selectExpr("id a", "0D b"), files=2)
    plan = table.optimize(**FILE_BY_FILE, parallelism=4, dry_run=True)
    assert [(r.state, r.input_files) for r in plan] == [("planned", 1)]


def test_a_dry_run_shows_all_groups_of_the_next_iteration(table):
    plan = table.optimize(**FILE_BY_FILE, parallelism=3, dry_run=True)
    assert [(r.iteration, r.state, r.input_files) for r in plan] == [(1, "planned", 1)] * 3


def test_cancelling_ends_between_groups(table):
    def observe(step):
        if step == "write":
            (live,) = RUNS.live(lambda r: r.table == table.managed.name)
            RUNS.cancel(live.run_id)

    run = run_of(table)
    report = optimize_with(table, run, observe)
    assert outcome(report) == [(1, "committed", "UNINDEXED"), (1, "skipped", "CANCELLED")]
    assert run.run_id in report[-1].message
    assert "more may remain" in report[-1].message
    assert len(table.unindexed) == 3
    assert RUNS.live() == []
    with pytest.raises(UseError, match="run") as unknown:
        RUNS.cancel(run.run_id)
    assert unknown.value.code == "USE_UNKNOWN_RUN"


def test_an_interrupted_statement_lets_the_group_end(spark, table):
    """Cancelling a JDBC statement interrupts its thread, and cancels the jobs of the statement's group."""
    caller = spark._jvm.java.lang.Thread.currentThread()

    def observe(step):
        if step == "write":
            caller.interrupt()
            spark.sparkContext.cancelJobGroup("statement")

    spark.sparkContext.setJobGroup("statement", "CALL", True)
    try:
        report = optimize_with(table, observe=observe)
    finally:
        assert spark._jvm.java.lang.Thread.interrupted()
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
        spark.sparkContext.setLocalProperty("spark.job.description", None)
    assert outcome(report) == [(1, "committed", "UNINDEXED"), (1, "skipped", "INTERRUPTED")]


def test_the_keyboard_ends_between_groups(table):
    before = signal.getsignal(signal.SIGINT)
    report = optimize_with(table, observe=lambda step: step == "write" and os.kill(os.getpid(), signal.SIGINT))
    assert outcome(report) == [(1, "committed", "UNINDEXED"), (1, "skipped", "INTERRUPTED")]
    assert signal.getsignal(signal.SIGINT) is before


def test_the_progress_is_shown_where_it_is_wanted(table, set_conf, capsys):
    table.optimize(**FILE_BY_FILE, max_iterations=1)
    assert capsys.readouterr().err == ""
    set_conf("spark.qbeast.use.progress", "true")
    table.optimize(**FILE_BY_FILE, max_iterations=1)
    shown = capsys.readouterr().err
    assert "optimize" in shown
    assert "unindexed files" in shown


def test_groups_side_by_side_keep_the_limit_of_bytes(table):
    plan = table.optimize(**FILE_BY_FILE, parallelism=3, max_bytes=1, dry_run=True)
    assert [r.state for r in plan] == ["planned"]


class Everything(Strategy):
    name = "Everything"
    doc = "All files, again and again."

    def select(self, snapshot, settings):
        rows = snapshot.files.orderBy("path").collect()
        files = tuple(InputFile(r.path, r.deletion_vector, r["size"], r.rows, 0, 0, 0) for r in rows)
        return Selection(FileGroup(self.name, 0, "ALL", files, "all files"))


def test_a_strategy_that_never_ends_is_ended(table):
    register_strategy(Everything())
    try:
        report = table.optimize(strategy="everything")
    finally:
        del STRATEGIES["Everything"]
    assert [(r.state, r.reason) for r in report] == [("committed", "ALL"), ("skipped", "NO_PROGRESS")]


def test_parallelism_is_checked(spark, table):
    with pytest.raises(UseError, match="parallelism = 0 is not accepted"):
        sql_ext.call(spark, "optimize", table=table.name, parallelism=0)
