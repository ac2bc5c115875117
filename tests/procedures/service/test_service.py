"""The service over Spark: what ALTER TABLE asks for is done, by the same engine as a CALL."""

import json
import threading

import pytest
from fake_clock import FakeClock
from pyspark.errors import AnalysisException
from service_fakes import MINUTE
from tables import NUMBERS, DeltaTable, another_engine, numbers

import sql_ext
from catalog.clock import SYSTEM_CLOCK
from catalog.history import event_store
from catalog.jvm.session import TIME_ZONE_KEY
from catalog.state import lease
from procedures.process.application import application
from procedures.process.running_services import RunningServices
from procedures.selection.timestamps import instant
from procedures.service.execution import SparkEngine, background_session
from procedures.service.service import Service

PLACE = "use_catalog.spark_catalog."
TRIGGER = "SET TBLPROPERTIES ('use.optimization.type'='UnindexedFiles','use.optimization.bytes-per-iter'='5000000')"


@pytest.fixture
def rounds(spark, set_conf):
    """One round of a service with a clock of its own, after so many milliseconds; waits for the runs it starts."""
    set_conf("spark.qbeast.use.service.enabled", "true")
    clock = FakeClock()
    service = Service(spark, clock=clock)

    def one(after=0, **more):
        clock.go_on(after)
        service.tick(**more)
        assert service.join(120)

    one.service = service
    yield one
    service.stop()
    assert not application().automations.all()


def trigger_of(table, version):
    return json.loads(table.commit_info(version)["operationParameters"]["event"])["trigger"]


def stored(table):
    folder = table.path / "_use" / "events"
    return [json.loads(f.read_text(encoding="utf-8")) for f in sorted(folder.glob("[!.]*.json"))]


def test_altered_optimized_and_unset(spark, new_table, rounds):
    table = new_table(NUMBERS, index="x,y").append(numbers(spark, 500))
    rounds()
    assert len(table.unindexed) == 1
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.optimization.autoOptimize.enabled'='true')")
    rounds(MINUTE)
    assert not table.unindexed
    assert trigger_of(table, table.version) == "automatic"
    (row,) = [r for r in spark.sql("CALL use.status(details => true)").collect() if table.name in r.table]
    assert (row.state, row.strategy, row.run_id) == (
        "scheduled",
        "UnindexedFiles,SortedRunCompaction",
        None,
    )
    assert (row.last_run.timestamp(), row.last_error) == (rounds.service._clock.now() / 1000, None)
    # Nothing changed: nothing runs. An append: the next interval takes it.
    version = table.version
    rounds(11 * MINUTE)
    assert table.version == version
    table.append(numbers(spark, 100, start=500))
    rounds(MINUTE)
    assert len(table.unindexed) == 1
    rounds(11 * MINUTE)
    assert not table.unindexed
    table.sql("ALTER TABLE {t} UNSET TBLPROPERTIES ('use.optimization.autoOptimize.enabled')")
    table.append(numbers(spark, 100, start=600))
    rounds(11 * MINUTE)
    assert len(table.unindexed) == 1
    (row,) = spark.sql(f"CALL use.status('{table.name}', details => true)").collect()
    assert (row.state, row.next_run) == ("idle", None)


def test_small_appends_are_consolidated_in_steps(spark, new_table, rounds):
    """The switch of the newer family; the table has no index."""
    steps = "use.optimization.autoOptimize.stepConsolidation."
    table = new_table("id BIGINT", properties={
        "use.optimization.autoOptimize.enabled": "true", f"{steps}enabled": "true", f"{steps}minFiles": "3",
    })  # fmt: skip
    for start in (0, 10):
        table.append(spark.range(start, start + 10, 1, 1))
    rounds()
    assert len(table.files) == 2
    table.append(spark.range(20, 30, 1, 1))
    rounds(11 * MINUTE)
    (_,) = table.files
    assert sorted(row.id for row in table.data.collect()) == list(range(30))
    event = json.loads(table.commit_info(table.version)["operationParameters"]["event"])
    assert (event["trigger"], "StepConsolidation" in json.dumps(event)) == ("automatic", True)


def test_the_catalog_tells_of_every_change(spark, new_table, rounds, monkeypatch):
    changes = []
    monkeypatch.setattr(RunningServices, "notify", lambda _, c: changes.append((c.kind, c.name, c.before)))
    spark._jvm.io.usespark.Bridge.instance().listen(True)
    try:
        for statement in (
            "CREATE TABLE default.told (a INT) USING delta",
            "ALTER TABLE default.told SET TBLPROPERTIES ('use.optimization.type'='DeleteCompaction')",
            "INSERT INTO default.told VALUES (1)",
            "ALTER TABLE default.told RENAME TO default.told2",
            "CREATE OR REPLACE TABLE default.told2 USING delta AS SELECT 1 a",
            "DROP TABLE default.told2",
            "CREATE TABLE default.told USING delta AS SELECT 1 a",
            "DROP TABLE default.told",
        ):
            spark.sql(statement)
    finally:
        spark._jvm.io.usespark.Bridge.instance().listen(False)
    one, two = "spark_catalog.default.told", "spark_catalog.default.told2"
    assert list(dict.fromkeys(changes)) == [
        ("changed", one, ""),
        ("renamed", two, one),
        ("changed", two, ""),
        ("dropped", two, ""),
        ("dropped", one, ""),
    ]
    assert [kind for kind, *_ in changes] == [
        "changed",
        "changed",
        "renamed",
        "changed",
        "dropped",
        "changed",
        "dropped",
    ]
    spark.sql("CREATE TABLE default.told (a INT) USING delta")
    spark.sql("DROP TABLE default.told")
    assert len(changes) == 7


def test_what_a_hook_meets_never_fails_a_statement(spark, new_table, monkeypatch):
    def broken(*_):
        raise RuntimeError("broken")

    monkeypatch.setattr(RunningServices, "notify", broken)
    monkeypatch.setattr("sql_ext.bridge.logger.exception", lambda *_: None)
    spark._jvm.io.usespark.Bridge.instance().listen(True)
    try:
        table = new_table("a INT")
        table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('a'='b')")
    finally:
        spark._jvm.io.usespark.Bridge.instance().listen(False)
    assert table.replayed()[1]["configuration"]["a"] == "b"


@pytest.mark.slow
def test_suspended_by_call_and_resumed(spark, new_table, rounds):
    table = new_table("a BIGINT", index="a", properties={"use.optimization.type": "UnindexedFiles"})
    table.append(spark.range(50).selectExpr("id a"))
    row = spark.sql(f"CALL use.suspend('{table.name}')").collect()[0]
    assert (row.table, row.state) == (f"spark_catalog.{table.name}", "suspended")
    assert "already" in spark.sql(f"CALL use.suspend('{table.name}')").collect()[0].message
    rounds()
    assert len(table.unindexed) > 0
    assert spark.sql(f"CALL use.status('{table.name}', details => true)").collect()[0].state == "suspended"
    # Another table of the same process is none the wiser, and a CALL by hand works.
    assert table.optimize()[0].state == "committed"
    table.append(spark.range(50, 60).selectExpr("id a"))
    assert spark.sql(f"CALL use.resume('{table.name}')").collect()[0].state == "scheduled"
    assert "not suspended" in spark.sql(f"CALL use.resume('{table.name}')").collect()[0].message
    rounds(11 * MINUTE)
    assert not table.unindexed


@pytest.mark.slow
def test_commits_of_ours_do_not_count(spark, new_table):
    table = new_table("a BIGINT", index="a")
    looks = SparkEngine(spark, application())
    place = table.managed.location

    def commits(after, most):
        return looks.commits(place, after, table.version, most)

    for start in range(3):
        table.append(spark.range(start, start + 5).selectExpr("id a"))
    # The one that made the table counts too.
    assert [commits(-1, 4), commits(-1, 2), commits(2, 10)] == [4, 2, 1]
    files = looks.files(table.name)
    assert files.unindexed_bytes == files.bytes == sum(f.size for f in table.files)
    assert files.small_files == len(table.files)
    table.index()
    assert commits(-1, 4) == 0
    assert looks.files(table.name).unindexed_bytes == 0
    table.append(spark.range(5).selectExpr("id a"))
    assert commits(-1, 4) == 1


# ------------------------------------------------------------------------------------------------------ manual trigger


def wait_for_runs():
    for thread in threading.enumerate():
        if thread.name.startswith("use-optimize-"):
            thread.join(120)
    assert not application().runs.live()


def test_a_manual_trigger_runs_once_and_changes_no_property(spark, new_table):
    table = new_table(NUMBERS, index="x,y").append(numbers(spark, 300))
    before = table.replayed()[1]["configuration"]
    spark.sql(f"ALTER TABLE {PLACE}{table.name} {TRIGGER}")
    wait_for_runs()
    assert not table.unindexed
    assert trigger_of(table, table.version) == "manual"
    after = table.replayed()[1]["configuration"]
    assert {k: v for k, v in after.items() if k.startswith("use.optimization")} == {}
    assert before.items() <= after.items()
    assert not application().automations.all()


@pytest.mark.slow
def test_ignored_triggers_say_why(spark, new_table):
    table = new_table("a BIGINT", index="a").append(spark.range(20).selectExpr("id a"))
    managed = table.managed
    now = SYSTEM_CLOCK.now()
    assert lease.acquire(managed, "of another process", "call", now) == lease.Acquired()
    spark.sql(f"ALTER TABLE {PLACE}{table.name} {TRIGGER}")
    managed.delete_state(lease.LEASE_FILE)
    spark.sql(f"CALL use.suspend('{table.name}')")
    spark.sql(f"ALTER TABLE {PLACE}{table.name} {TRIGGER}")
    spark.sql(f"CALL use.resume('{table.name}')")
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.optimization.type'='LeveledCompaction')")
    spark.sql(f"ALTER TABLE {PLACE}{table.name} {TRIGGER}")
    wait_for_runs()
    assert len(table.unindexed) > 0
    kept = stored(table)
    assert [event["reason"] for event in kept] == ["ALREADY_RUNNING", "SUSPENDED", "AUTOMATIC"]
    assert {(e["state"], e["trigger"], e["optimization_name"]) for e in kept} == {
        ("ignored", "manual", "UnindexedFiles")
    }
    assert kept[0]["parameters"]["use.optimization.bytes-per-iter"] == "5000000"


@pytest.mark.parametrize(
    ("change", "code", "named"),
    [
        ("SET TBLPROPERTIES ('use.optimization.type'='Nothing')", "USE_UNKNOWN_STRATEGY", "'Nothing'"),
        ("SET TBLPROPERTIES ('use.optimization.bytes-per-iter'='5')", "USE_INVALID_ARGUMENT", "use.optimization.type"),
        (
            "SET TBLPROPERTIES ('use.optimization.type'='UnindexedFiles','use.index.columns'='a')",
            "USE_NOT_SUPPORTED",
            "use.index.columns",
        ),
        (
            "SET TBLPROPERTIES ('use.optimization.type'='UnindexedFiles','use.optimization.bytes-per-iter'='-1')",
            "USE_INVALID_ARGUMENT",
            "'-1'",
        ),
        ("UNSET TBLPROPERTIES ('use.optimization.type')", "USE_NOT_SUPPORTED", "UNSET"),
        ("ADD COLUMNS (b INT)", "USE_NOT_SUPPORTED", "ALTER TABLE"),
        (TRIGGER.replace("UnindexedFiles", "LeveledCompaction"), "USE_NO_INDEX_COLUMNS", "index columns"),
    ],
)
def test_refused_triggers(spark, shared_plain, change, code, named):
    before = shared_plain.state()
    with pytest.raises(AnalysisException) as refused:
        spark.sql(f"ALTER TABLE {PLACE}{shared_plain.name} {change}")
    assert refused.value.getCondition() == code
    assert named in str(refused.value)
    assert shared_plain.state() == before
    assert not application().runs.live()


@pytest.fixture(scope="module")
def shared_plain(spark, shared_table):
    return shared_table("a BIGINT").append(spark.range(5).selectExpr("id a"))


@pytest.mark.slow
def test_a_trigger_that_fails_in_the_background_leaves_a_row(spark, new_table, monkeypatch):
    table = new_table("a BIGINT", index="a").append(spark.range(20).selectExpr("id a"))

    def broken(*_, **__):
        raise sql_ext.UseError("Broken.", code="USE_BROKEN")

    monkeypatch.setattr("procedures.service.manual.optimize", broken)
    spark.sql(f"ALTER TABLE {PLACE}{table.name} {TRIGGER}")
    wait_for_runs()
    (event,) = stored(table)
    assert (event["state"], event["trigger"], event["error_code"]) == ("failed", "manual", "USE_BROKEN")


# -------------------------------------------------------------------------------------------------- cancel and status


@pytest.mark.slow
def test_the_background_reads_times_as_the_session_that_starts_it(spark, set_conf):
    """A property such as fromTimestamp may name no time zone."""
    set_conf(TIME_ZONE_KEY, "Asia/Tokyo")
    background = background_session(spark)
    set_conf(TIME_ZONE_KEY, "UTC")
    assert instant(background, "from_timestamp", "2023-01-01 09:00:00").text == "2023-01-01 09:00:00 Asia/Tokyo"


@pytest.mark.slow
def test_cancel_and_status_of_a_run(spark, new_table, rounds, monkeypatch):
    table = new_table("a BIGINT", index="a", properties={"use.optimization.type": "UnindexedFiles"})
    for start in (0, 10, 20):
        table.append(spark.range(start, start + 10).selectExpr("id a"))
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.optimization.batch-bytes'='1')")
    seen, groups = [], []
    record = event_store.record

    def once(*arguments):
        record(*arguments)
        groups.append(arguments)
        # The first group is counted when the second is under way.
        if len(groups) == 2:
            (row,) = spark.sql(f"CALL use.status('{table.name}', details => true)").collect()
            seen.append(row)
            seen.append(spark.sql(f"CALL use.cancel('{row.run_id}')").collect()[0])

    monkeypatch.setattr(event_store, "record", once)
    rounds()
    row, cancelled = seen
    assert (row.state, row.trigger, row.committed_groups) == ("running", "automatic", 1)
    assert row.lease_holder == lease.this_process()
    assert row.lease_expires_at > row.started_at
    assert (cancelled.run_id, cancelled.state) == (row.run_id, "stopping")
    assert len(table.unindexed) > 0
    with pytest.raises(AnalysisException, match="USE_UNKNOWN_RUN"):
        spark.sql("CALL use.cancel('nothing')")
    assert application().automations.all()[0].state == "scheduled"


@pytest.mark.slow
def test_a_table_by_path_and_a_wrong_value(spark, tmp_path, rounds):
    path = tmp_path / "t"
    spark.range(20).write.format("delta").save(str(path))
    table = DeltaTable(spark, f"delta.`{path}`")
    with another_engine():
        table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='id', 'use.optimization.type'='Nothing')")
    with pytest.raises(sql_ext.UseError) as missing:
        Service(spark, tables=["default.there_is_no_such_table"])
    assert missing.value.code == "USE_TABLE_NOT_FOUND"
    service = Service(spark, tables=[str(path)], clock=FakeClock())
    service.tick()
    assert application().automations.get(f"file:{path}").state == "failed"
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.optimization.type'='UnindexedFiles')")
    service.tick()
    assert service.join(120)
    assert not table.unindexed
    assert service.stop()
