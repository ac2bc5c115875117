"""What the dashboard gathers of real tables, and what that costs."""

from dataclasses import asdict

import pytest
from fake_clock import FakeClock
from spark_jobs import at_most
from tables import DeltaTable

from procedures.process.application import Application, application
from procedures.service.execution import background_session
from sql_ext.dashboard.collector import Collector
from sql_ext.dashboard.listing import Query
from sql_ext.dashboard.pages import Pages
from sql_ext.dashboard.spark_fleet import SparkFleet
from sql_ext.dashboard.spark_table import SparkTableSource

LAKE = "lake_of_dashboard"
PROPERTIES = {
    "indexed": "TBLPROPERTIES ('use.index.columns' = 'id,x', 'use.optimization.autoOptimize.enabled' = 'true')",
    "plain": "",
    "damaged": "TBLPROPERTIES ('use.clustering.enabled' = 'true')",
}


@pytest.fixture(scope="module")
def lake(spark):
    spark.sql(f"CREATE DATABASE {LAKE} WITH DBPROPERTIES ('use.fleet.maxBytes' = '1GB')")
    tables = {}
    for name, properties in PROPERTIES.items():
        spark.sql(f"CREATE TABLE {LAKE}.{name} (id BIGINT, x DOUBLE) USING delta {properties}")
        for number in range(2):
            spark.sql(f"INSERT INTO {LAKE}.{name} SELECT /*+ COALESCE(1) */ id, rand({number}) FROM range(2000)")
        tables[name] = DeltaTable(spark, f"spark_catalog.{LAKE}.{name}")
    yield tables
    spark.sql(f"DROP DATABASE {LAKE} CASCADE")


def _collector(spark):
    app = Application(clock=application().clock)
    names = [f"{LAKE}.{name}" for name in PROPERTIES]
    return Collector(SparkFleet(background_session(spark), app, names), FakeClock())


def test_the_page_has_the_rows_of_the_fleet_and_costs_no_job(spark, lake):
    lake["indexed"].index()
    lake["damaged"].sql("CALL use.suspend('{t}')")
    collector = _collector(spark)
    while collector.round() == 0.0:
        pass
    with at_most(spark, 0):
        collector.round()
        newest = collector.newest
        text = Pages(10).fleet(newest, Query(), newest.gathered_at)
    wanted = spark.sql(f"SELECT * FROM use_catalog.system.fleet WHERE database = '{LAKE}' ORDER BY table").collect()
    rows = {row.table: row.asDict() for row in wanted}
    assert [line.name for line in newest.lines] == [lake[name].name for name in ("damaged", "indexed")]
    for line in newest.lines:
        assert asdict(line.row) == rows[line.name]
        score = lake[line.name.rsplit(".", 1)[1]].sql("CALL use.health('{t}')")[0].value
        assert line.score == score
    assert asdict(newest.databases[0]) == rows[None]
    assert newest.databases[0].budget_bytes == 2**30
    assert newest.notes.problem is None
    assert "suspended by" in text
    lake["damaged"].sql("CALL use.resume('{t}')")


def test_a_table_that_cannot_be_read_does_not_hide_the_others(spark, lake):
    log = lake["damaged"].path / "_delta_log"
    hidden = log.rename(log.with_name("hidden"))
    try:
        collector = _collector(spark)
        while collector.round() == 0.0:
            pass
        assert lake["indexed"].name in [line.name for line in collector.newest.lines]
    finally:
        hidden.rename(log)


def test_the_page_of_a_table(spark, lake):
    table = lake["indexed"].index()
    for number in range(3, 6):
        spark.sql(f"INSERT INTO {table.name} SELECT /*+ COALESCE(1) */ id, rand({number}) FROM range(2000)")
    source = SparkTableSource(background_session(spark), Application(clock=application().clock))
    source.gather(table.name, False, "group-of-the-test")
    with at_most(spark, 2):
        data = source.gather(table.name, False, "group-of-the-test")
    assert (data.name, data.rows, data.version) == (table.name, table.data.count(), table.version)
    assert data.layout.columns == ("id", "x")
    assert (
        data.layout.all_cubes
        == table.managed.snapshot().cube_states(table.managed.snapshot().latest_revision).__len__()
    )
    assert sum(data.layout.is_indexed) == data.files - 3
    assert [event.state for event in data.events] == ["committed"]
    assert data.health[0].value == table.sql("CALL use.health('{t}')")[0].value
    assert data.plan is None
    planned = source.gather(table.name, True, "group-of-the-test")
    dry = table.optimize(dry_run=True)
    assert [(r.strategy, r.input_files, r.input_bytes) for r in planned.plan if r.state == "planned"] == [
        (r.strategy, r.input_files, r.input_bytes) for r in dry if r.state == "planned"
    ]
    assert application().runs.live() == []
    assert f"{data.layout.all_cubes} cubes" in Pages(10).table(planned)


def test_a_table_without_an_index_has_a_page(spark, lake):
    source = SparkTableSource(background_session(spark), Application(clock=application().clock))
    data = source.gather(lake["plain"].name, True, "group-of-the-test")
    assert data.layout.cubes == ()
    text = Pages(10).table(data)
    assert "No file is indexed" in text
    assert "There is no plan: USE_NO_INDEX_COLUMNS" in text
