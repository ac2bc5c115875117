"""Every kind of writer against a rewrite: the rows are those that the writer's statements alone give."""

from operator import attrgetter

import pytest
from placement import check_placement
from pyspark.sql import functions as F
from staging import STEPS, At, Counted, check_sound, optimize, settings_of, strays

from catalog.errors import UseError
from procedures.layout.step import Step
from procedures.loop.interfaces import PlanRequest
from procedures.loop.planner import TablePlanner
from procedures.rewrite.group_rewrite import rewrite
from procedures.rewrite.results import RewriteContext

VECTORS = {"delta.enableDeletionVectors": "true"}
NO_VECTORS = {"delta.enableDeletionVectors": "false"}

STATEMENTS = {
    "update": "UPDATE {t} SET b = b + 1 WHERE a % 10 = 3",
    "delete": "DELETE FROM {t} WHERE a < 450",
    "merge": "MERGE INTO {t} t USING (SELECT id a, 1D b FROM range(390, 420)) s ON t.a = s.a "
    "WHEN MATCHED AND s.a % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "overwrite": "INSERT OVERWRITE {t} SELECT id a, 2D b FROM range(100)",
    "restore": "RESTORE TABLE {t} TO VERSION AS OF 1",
    "truncate": "DELETE FROM {t}",
}
QUICK = {("delete", Step.COMMIT, "rewriting")}
CASES = [
    pytest.param(
        statement,
        step,
        kind,
        marks=() if (statement, step, kind) in QUICK else pytest.mark.slow,
        id=f"{statement}-{step.value}-{kind}",
    )
    for statement in STATEMENTS
    for step in STEPS
    for kind in ("rewriting", "vectors")
]
COMMIT_OR_SLOW = [s if s is Step.COMMIT else pytest.param(s, marks=pytest.mark.slow) for s in STEPS]
BY_NAME = attrgetter("value")


def rows(spark, start, end):
    return spark.range(start, end).select(F.col("id").alias("a"), (F.col("id") / 7).alias("b"))


def two_alike(spark, new_table, properties):
    """A table to optimize, and one without index that only the writer knows."""
    wished = {"columns": "a BIGINT, b DOUBLE", "properties": properties}
    pair = new_table(**wished, index="a,b", cube_size=100), new_table(**wished)
    for table in pair:
        table.append(rows(spark, 0, 400)).append(rows(spark, 400, 600))
    return pair


@pytest.mark.parametrize(("statement", "step", "kind"), CASES)
def test_the_writer_wins(spark, new_table, monkeypatch, statement, step, kind):
    table, oracle = two_alike(spark, new_table, VECTORS if kind == "vectors" else NO_VECTORS)
    oracle.sql(STATEMENTS[statement])
    counted = Counted(monkeypatch)
    at = At(step, lambda: table.sql(STATEMENTS[statement]))
    report = optimize(table, at)
    assert at.done
    assert counted.matches(report)
    assert report[0].state == "failed"
    assert report[0].reason == "USE_CONCURRENT_CHANGE"
    check_sound(table, oracle)


@pytest.mark.slow
@pytest.mark.parametrize("step", COMMIT_OR_SLOW, ids=BY_NAME)
def test_a_new_revision_made_meanwhile(spark, new_table, monkeypatch, step):
    """Another run's new revision is no conflict for a rewrite whose files nobody touched."""
    table, oracle = two_alike(spark, new_table, NO_VECTORS)
    table.index()
    for made in (table, oracle):
        made.append(rows(spark, 100, 200)).append(rows(spark, 10_000, 10_100))
    one_by_one = {"strategy": "UnindexedFiles", "options": {"batch_bytes": "1"}}
    fitting, leaving = TablePlanner(table.managed, settings_of(**one_by_one)).plan(PlanRequest(2)).groups

    def another():
        made = rewrite(table.managed, leaving, RewriteContext())
        assert made.new_revision == 2

    counted, at = Counted(monkeypatch), At(step, another)
    report = optimize(table, at, **one_by_one)
    assert at.done
    assert counted.matches(report)
    assert [r.state for r in report] == ["committed"]
    assert report[0].input_files == len(fitting.files) == 1
    check_sound(table, oracle)


@pytest.mark.slow
@pytest.mark.parametrize("step", COMMIT_OR_SLOW, ids=BY_NAME)
def test_a_dropped_table_stays_dropped(spark, new_table, step):
    """The run ends with an error, and nothing of ours is in the way of the next table of this name."""
    table, _ = two_alike(spark, new_table, NO_VECTORS)
    path = table.path
    with pytest.raises(UseError) as ended:
        optimize(table, At(step, lambda: table.sql("DROP TABLE {t}")))
    assert ended.value.code == "USE_TABLE_NOT_FOUND"
    assert not [f for f in path.rglob("*") if f.is_file()]
    spark.sql(f"CREATE TABLE {table.name} (a BIGINT, b DOUBLE) USING delta TBLPROPERTIES ('use.index.columns'='a')")
    table.append(rows(spark, 0, 50))
    assert [r.state for r in optimize(table)] == ["committed"]
    assert check_placement(table) == 50


@pytest.mark.slow
@pytest.mark.parametrize("step", COMMIT_OR_SLOW, ids=BY_NAME)
def test_a_clone_over_the_table(spark, new_table, step):
    table, other = two_alike(spark, new_table, NO_VECTORS)
    other.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='a')")
    other.sql("DELETE FROM {t} WHERE a < 100")

    def clone():
        # Delta clones over empty tables only.
        table.sql("DELETE FROM {t}")
        table.sql(f"CREATE OR REPLACE TABLE {{t}} SHALLOW CLONE {other.name}")

    at = At(step, clone)
    report = optimize(table, at)
    assert at.done
    assert report[0].state == "failed"
    assert table.checksum() == other.checksum()
    assert strays(table) == set()
    optimize(table)
    assert table.checksum() == other.checksum()
    assert not table.unindexed
