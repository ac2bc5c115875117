"""The loop of optimize: groups side by side, and ways to end it between groups."""

import threading

import pytest
from placement import check_placement
from pyspark.sql import functions as F

from procedures.declare.runs import Run
from procedures.layout.step import Step, ignore_step
from procedures.loop.optimize_parameters import DEFAULT_ARGUMENTS
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.loop.table_optimizer import optimize

DEFAULTS = DEFAULT_ARGUMENTS
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


def optimize_with(table, run=None, observe=ignore_step, **given):
    settings = OptimizeSettings.of({**DEFAULTS, "table": table.name, **FILE_BY_FILE, **given})
    return optimize(table.managed, settings, run or run_of(table), observe)


def outcome(report):
    return [(r.iteration, r.state, r.reason) for r in report]


@pytest.mark.slow
def test_groups_side_by_side(table):
    before = table.checksum()
    together, threads = threading.Barrier(2, timeout=120), set()

    def observe(step):
        if step is Step.WRITE and len(threads) < 2:
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


@pytest.mark.slow
def test_an_interrupted_statement_lets_the_group_end(spark, table):
    """Cancelling a JDBC statement interrupts its thread, and cancels the jobs of the statement's group."""
    caller = spark._jvm.java.lang.Thread.currentThread()

    def observe(step):
        if step is Step.WRITE:
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


@pytest.mark.slow
def test_the_progress_is_shown_where_it_is_wanted(table, set_conf, capsys):
    set_conf("spark.qbeast.use.progress", "true")
    table.optimize(**FILE_BY_FILE, max_iterations=1)
    shown = capsys.readouterr().err
    assert "optimize" in shown
    assert "unindexed files" in shown


@pytest.mark.slow
def test_groups_side_by_side_keep_the_limit_of_bytes(table):
    plan = table.optimize(**FILE_BY_FILE, parallelism=3, max_bytes=1, dry_run=True)
    assert [r.state for r in plan] == ["planned"]
