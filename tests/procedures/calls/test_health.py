"""``CALL use.health``: the score without Spark, and the numbers of real tables against their logs."""

import json
import threading
from functools import partial

import pytest
from pyspark.errors import AnalysisException
from spark_jobs import jobs_started
from tables import NUMBERS, numbers

import sql_ext
from procedures.declare.runs import Run
from procedures.insight.health.remedy import Advice, Remedy
from procedures.insight.health.score import SCALES, Part, Scale, score_of
from procedures.process.application import application
from procedures.service.execution import SparkEngine
from procedures.service.schedule import HEALTH_CHECK, Schedule

ADVICE = Advice(Remedy.LOG, "CALL use.consolidate_log('t')")
VECTORS = {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "1000"}


def test_points_are_lost_in_proportion():
    scale = Scale("share", 0.1, 0.5, 20)
    assert [scale.lost(value) for value in (0.0, 0.1, 0.2, 0.3, 0.5, 9.0)] == [0.0, 0.0, 5.0, 10.0, 20.0, 20.0]
    assert score_of([]) == 100
    assert score_of([Part("deleted_rows", 0.05, None, ADVICE), Part("failures", 1.0, None, ADVICE)]) == 97
    assert score_of([Part(name, 1e9, None, ADVICE) for name in SCALES]) == 0
    assert all(0 <= scale.fine < scale.worst and scale.points > 0 for scale in SCALES.values())


def _health(table):
    rows = table.sql("CALL use.health('{t}')")
    total, *parts = rows
    assert (total.part, total.unit) == ("total", "points")
    assert total.value == max(0, round(100 - sum(row.points_lost for row in parts)))
    assert total.points_lost == pytest.approx(sum(row.points_lost for row in parts))
    assert [row.points_lost for row in parts] == sorted((row.points_lost for row in parts), reverse=True)
    assert all(row.points_lost for row in parts if row.advice is not None)
    return total.value, {row.part: row for row in parts}


def _live(table):
    return list(table.replayed()[0].values())


def _rows(add):
    return json.loads(add["stats"])["numRecords"]


def _unindexed(add):
    return (add.get("tags") or {}).get("revision", "0") == "0"


def test_a_plain_table(spark, new_table):
    """Parts of an index do not count; each number follows from the log."""
    table = new_table("id BIGINT, p INT", properties=VECTORS, tail="PARTITIONED BY (p)")
    assert _health(table)[0] == 100
    for first in range(0, 240, 40):
        table.append(spark.range(first, first + 40, 1, 1).selectExpr("id", "CAST(id % 2 AS INT) AS p"))
    table.sql("DELETE FROM {t} WHERE id % 4 = 0")
    score, parts = _health(table)
    assert set(parts) == {"small_files", "deleted_rows", "log_length", "failures"}
    adds = _live(table)
    assert parts["small_files"].value == len(adds) / 2 == 6
    hidden = sum((add.get("deletionVector") or {}).get("cardinality", 0) for add in adds)
    assert parts["deleted_rows"].value == pytest.approx(hidden / sum(map(_rows, adds)))
    assert parts["log_length"].value == table.version + 1

    def commits():
        return (table.path / "_delta_log").glob("*[0-9].json")

    assert parts["log_length"].cost_per_read == sum(path.stat().st_size for path in commits())
    assert score < 90
    # What is advised helps.
    assert parts["deleted_rows"].advice == f"CALL use.compact('spark_catalog.{table.name}')"
    table.checkpoint()
    checkpoint = table.version
    for part in ("deleted_rows", "small_files"):
        spark.sql(parts[part].advice)
    better, parts = _health(table)
    later = [path.stat().st_size for path in commits() if int(path.stem) > checkpoint]
    assert (parts["log_length"].value, parts["log_length"].cost_per_read) == (len(later), sum(later))
    assert (better >= 98, parts["deleted_rows"].value, parts["small_files"].value) == (True, 0.0, 1.0)
    table.managed.write_state(
        "events/1-x.json", json.dumps({"write_id": "x", "started_at": 1, "table_id": "another", "state": "failed"})
    )
    assert _health(table)[1]["failures"].value == 0


@pytest.mark.slow
def test_an_indexed_table(spark, new_table):
    """A fresh index is healthy; appended files make samples expensive, and the call that is advised mends it."""
    table = new_table(NUMBERS, index="x,y", cube_size=500, file_bytes="8kb", properties=VECTORS)
    table.append(numbers(spark, 6_000))
    score, parts = _health(table)
    assert (score, parts["unindexed_share"].value, parts["sample_10_percent"].value) == (75, 1.0, 10.0)
    table.index()
    fresh, parts = _health(table)
    assert fresh >= 95, parts
    for start in range(6_000, 9_000, 1_000):
        table.append(numbers(spark, 1_000, start))
    sick, parts = _health(table)
    adds = _live(table)
    share = sum(add["size"] for add in adds if _unindexed(add)) / sum(add["size"] for add in adds)
    assert parts["unindexed_share"].value == pytest.approx(share)
    assert sick <= fresh - 20
    for fraction, part in ((0.01, "sample_1_percent"), (0.1, "sample_10_percent")):
        read = sql_ext.read_report(table.data.sample(fraction)).scans[0].kept_bytes
        fresh_bytes = read - parts[part].cost_per_read
        assert parts[part].value == pytest.approx(read / fresh_bytes, rel=0.25)
    assert parts["sample_1_percent"].advice == f"CALL use.optimize('spark_catalog.{table.name}')"
    spark.sql(parts["sample_1_percent"].advice)
    mended, parts = _health(table)
    assert mended >= 90, parts
    summary = "SELECT health FROM use_catalog.system_lake_tables.metastore_summary WHERE name = '{name}'"
    assert [row.health for row in spark.sql(summary.format(name=table.name.rpartition(".")[2])).collect()] == [mended]


def test_the_service_alerts(spark, new_table):
    """From the properties of the table to the function of a user."""
    table = new_table("id BIGINT", properties={"use.health.alert.below": "90", "use.health.alert.small_files": "4"})
    for first in range(10):
        table.append(spark.range(first, first + 1, 1, 1))
    with pytest.raises(AnalysisException, match=r"use\.health\.alert\.below = '101'"):
        table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.health.alert.below' = '101')")
    got = []
    subscription = sql_ext.on_event(got.append)
    try:
        app = application()
        engine, managed = SparkEngine(spark.newSession(), app), table.managed
        schedule = Schedule.of_table(managed.snapshot().configuration)
        work = partial(engine.maintain, Run.of(managed, "automatic", {}, app.clock), schedule, HEALTH_CHECK, "default")
        for _ in range(2):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
    finally:
        subscription.cancel()
    assert [(n.kind, n.table, n.values["small_files"]) for n in got] == [("alert", managed.name, 10.0)] * len(got)
    assert [n.message.split(",")[0] for n in got] == ["small_files"]


@pytest.mark.slow
def test_fragments_and_failures(spark, new_table, monkeypatch):
    from procedures.rewrite import group_rewrite

    table = new_table(NUMBERS, index="x,y", cube_size=200, file_bytes="8kb", properties=VECTORS)
    for start in range(0, 4_000, 400):
        table.append(numbers(spark, 400, start)).index()
    _, parts = _health(table)
    writes = {}
    newest = max(file.revision for file in table.files)
    for file in table.files:
        for block in file.blocks if file.revision == newest else ():
            writes.setdefault(block.cube_id, set()).add(file.write_id)
    surplus = 1 - len(writes) / sum(map(len, writes.values()))
    assert parts["fragmentation"].value == pytest.approx(surplus)
    assert surplus > 0.2
    table.optimize()
    assert _health(table)[1]["fragmentation"].value < surplus

    def fail(*_arguments):
        raise sql_ext.UseError("It broke.", code="USE_BROKEN")

    table.append(numbers(spark, 400, 9_000))
    monkeypatch.setattr(group_rewrite, "commit", fail)
    with pytest.raises(sql_ext.UseError, match="It broke"):
        table.optimize(strategy="UnindexedFiles")
    monkeypatch.undo()
    _, parts = _health(table)
    assert parts["failures"].value == 1
    assert parts["failures"].advice.endswith(".optimizations WHERE state = 'failed'")
    assert spark.sql(parts["failures"].advice).count() == 1


def test_few_jobs(spark, new_table):
    """The list of files of an earlier version follows a short commit without a job."""
    table = new_table(NUMBERS, index="x,y").append(numbers(spark, 100)).index()
    table.append(numbers(spark, 10, 100))
    assert _jobs(spark, table) == 0


def _jobs(spark, table):
    before = jobs_started(spark)
    sql_ext.call(spark, "health", table=table.name)
    return jobs_started(spark) - before
