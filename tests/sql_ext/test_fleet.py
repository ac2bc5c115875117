"""A database with a budget: ``use.fleet``, its system table, and services that share the budget."""

import json
from pathlib import Path
from urllib.parse import urlparse

import pytest
from fake_clock import FakeClock
from pyspark.errors import AnalysisException
from tables import DeltaTable

import sql_ext
from procedures.process.application import Application, application
from procedures.service.execution import ledger_of
from procedures.service.service import Service

SHOP = "shop_of_tests"


@pytest.fixture
def shop(spark):
    spark.sql(
        f"CREATE DATABASE {SHOP} WITH DBPROPERTIES ('use.fleet.enabled' = 'true', 'use.optimization.quietPeriod' = '0')"
    )
    tables = {}
    for name, inserts in (("large", 4), ("small", 2)):
        spark.sql(
            f"CREATE TABLE {SHOP}.{name} (id BIGINT, x DOUBLE) USING delta TBLPROPERTIES ('use.index.columns' = 'id')"
        )
        for number in range(inserts):
            spark.sql(f"INSERT INTO {SHOP}.{name} SELECT /*+ COALESCE(1) */ id, rand({number}) FROM range(2000)")
        tables[name] = DeltaTable(spark, f"spark_catalog.{SHOP}.{name}")
    yield tables
    spark.sql(f"DROP DATABASE {SHOP} CASCADE")
    ledger = Path(urlparse(spark.sql("DESCRIBE DATABASE default").where("info_name = 'Location'").first()[1]).path)
    for text in (ledger / "_use" / "fleet").glob("*"):
        text.unlink()


def _budget(spark, **properties):
    pairs = ", ".join(f"'use.fleet.{name}' = '{value}'" for name, value in properties.items())
    spark.sql(f"ALTER DATABASE {SHOP} SET DBPROPERTIES ({pairs})")


def _fleet(spark, *arguments):
    listed = ", ".join([f"'{SHOP}'", *arguments])
    rows = spark.sql(f"CALL use.fleet({listed})").collect()
    return [row for row in rows if row.table], next(row for row in rows if row.table is None and row.database == SHOP)


def test_the_best_table_has_its_turn_within_the_budget(spark, shop):
    rows = {name: table.checksum() for name, table in shop.items()}
    tables, sums = _fleet(spark, "dry_run => true")
    assert [(row.rank, row.state, row.is_recorded) for row in tables] == [(1, "ready", False), (2, "ready", False)]
    assert sums.cost_bytes == sum(row.cost_bytes for row in tables)
    assert (sums.budget_bytes, sums.spent_day) == (None, 0)
    first, second = tables
    suspended = shop["small"]
    suspended.sql("CALL use.suspend('{t}')")
    tables, _ = _fleet(spark, "dry_run => true")
    assert {row.table: row.state for row in tables}[suspended.name] == "suspended"
    suspended.sql("CALL use.resume('{t}')")
    _budget(spark, maxBytes=4 * sums.cost_bytes)
    tables, sums = _fleet(spark)
    assert {row.state for row in tables} == {"optimized"}
    assert sums.spent_day == first.cost_bytes + second.cost_bytes
    assert sums.budget_left == sums.budget_bytes - sums.spent_day
    tables, _ = _fleet(spark, "dry_run => true")
    assert [(row.rank, row.state) for row in tables] == [(None, "idle")] * 2
    assert {row.last_bytes for row in tables} == {first.cost_bytes, second.cost_bytes}
    assert rows == {name: table.checksum() for name, table in shop.items()}


def test_a_used_up_budget_is_a_reason(spark, shop):
    tables, _ = _fleet(spark, "dry_run => true")
    _budget(spark, maxBytes=tables[0].cost_bytes, period="2 hours")
    for _ in range(3):
        tables, sums = _fleet(spark)
        assert sums.spent_day <= sums.budget_bytes
    assert any((row.reason or "").startswith("BUDGET_USED_UP: use.fleet.maxBytes = ") for row in tables)


def test_the_system_table(spark, shop):
    for name in ("use_catalog.system.fleet", "use_catalog.system_lake_tables.fleet"):
        rows = spark.table(name).where(f"database = '{SHOP}'").orderBy("table").collect()
        assert [(row.table and row.table.rsplit(".", 1)[1], row.state) for row in rows] == [
            (None, "total"),
            ("large", "unknown"),
            ("small", "unknown"),
        ]
    assert sql_ext.fleet(spark).where(f"database = '{SHOP}'").count() == 3


def test_mistakes_are_named(spark, shop):
    database = f"ALTER DATABASE {SHOP} SET DBPROPERTIES"
    for statement, said in (
        ("CALL use.fleet('nothing')", "USE_UNKNOWN_SCHEMA"),
        (f"ALTER TABLE {SHOP}.small SET TBLPROPERTIES ('use.fleet.maxBytes' = '1')", "set it on its database"),
        (f"{database} ('use.fleet.maxRuns' = '0')", "use.fleet.maxRuns = '0'"),
        (f"{database} ('use.fleet.period' = '32 days')", "at most 31 days"),
    ):
        with pytest.raises(AnalysisException, match=said):
            spark.sql(statement)


@pytest.mark.slow
def test_two_services_share_the_budget(spark, shop, set_conf):
    set_conf("spark.qbeast.use.service.enabled", "true")
    clock = FakeClock()
    _, sums = _fleet(spark, "dry_run => true")
    cost = sums.cost_bytes
    _budget(spark, maxBytes=4 * cost)
    apps = [Application(clock=clock), Application(clock=clock)]
    names = [table.name for table in shop.values()]
    services = [Service(spark, names, clock=clock, app=app) for app in apps]
    for _ in range(4):
        for service in services:
            service.tick()
            service.join()
        clock.go_on(60_000)
    assert all(not table.unindexed for table in shop.values())
    state = ledger_of(spark, None).state()
    # Both began the same groups at most once each, and one of them lost.
    assert cost <= state.spent_of(SHOP, 0) <= 2 * cost
    for service in services:
        service.stop()


@pytest.mark.slow
def test_the_ledger_is_small_numbered_texts(spark, shop, tmp_path, set_conf):
    set_conf("spark.qbeast.use.fleet.location", str(tmp_path / "ledger"))
    tables, _ = _fleet(spark, "dry_run => true")
    _budget(spark, maxBytes=8 * tables[0].cost_bytes)
    _fleet(spark)
    names = sorted(path.name for path in (tmp_path / "ledger").glob("*.json"))
    assert names == [f"{1:020}.json", f"{2:020}.json"]
    text = json.loads((tmp_path / "ledger" / names[-1]).read_text())
    assert [entry[1] for entry in text["spent"]] == [SHOP, SHOP]
    assert application().runs.live() == []
