"""``use.index.columns = 'auto'``: the service chooses the index columns of a table from its recorded reads."""

import json

import pytest
from fake_clock import FakeClock
from pyspark.errors import AnalysisException
from tables import DeltaTable, numbers

import procedures.service.column_choice
import sql_ext
from catalog.insights.consumption import CONSUMPTION_FOLDER, add_scans
from catalog.jvm.shim_bridge import ShimBridge
from procedures.process.application import Application, active
from procedures.service.service import Service

DATABASE = "automatic_columns"
HOUR, DAY = 3_600_000, 86_400_000
CHOSEN = "use.index.autoColumns"


@pytest.fixture(scope="module")
def database(spark):
    defaults = "'use.fleet.enabled' = 'true', 'use.index.columns' = 'auto', 'use.index.targetFileBytes' = '12kb'"
    spark.sql(f"CREATE DATABASE {DATABASE} WITH DBPROPERTIES ({defaults})")
    yield DATABASE
    spark.sql(f"DROP DATABASE {DATABASE} CASCADE")


def _table(spark, name, properties=""):
    spark.sql(f"CREATE TABLE {DATABASE}.{name} (id BIGINT, x DOUBLE, y INT, s STRING) USING delta {properties}")
    return DeltaTable(spark, f"spark_catalog.{DATABASE}.{name}")


def _properties(spark, table):
    (row,) = sql_ext.call(spark, "status", table=table.name, details=True).collect()
    return row.properties


def _read_often(spark, table, where, times):
    """Reads the table once, and records the read many times, two hours apart."""
    table.sql(f"SELECT sum(y) FROM {{t}} WHERE {where}")
    ShimBridge(spark).flush_scans()
    managed = table.managed
    (name,) = managed.list_state(CONSUMPTION_FOLDER)
    (line,) = managed.read_state(f"{CONSUMPTION_FOLDER}/{name}").splitlines()
    record = json.loads(line)
    lines = [
        json.dumps({**record, "execution_id": 1_000_000 + n, "finished_at": record["finished_at"] + 2 * HOUR * n})
        for n in range(1, times)
    ]
    add_scans(managed, "\n".join(lines), record["finished_at"])


@pytest.mark.slow
def test_a_fleet_indexes_a_table_by_the_columns_that_its_reads_limit(spark, database, set_conf, monkeypatch):
    # Each of them is planned.
    monkeypatch.setattr(procedures.service.column_choice, "_MOST_QUERIES", 4)
    clock = FakeClock(10 * DAY)
    table = _table(spark, "reads").append(numbers(spark, 6_000))
    set_conf("spark.qbeast.use.service.enabled", "true")

    def after(millis):
        clock.go_on(millis)
        service.tick()
        assert service.join(300)
        (row,) = sql_ext.call(spark, "status", table=table.name).collect()
        assert row.last_error is None
        return row.message

    with active(Application(clock=clock)):
        service = Service(spark, [table.name])
        assert "after 20 recorded reads" in after(0)
        _read_often(spark, table, "x BETWEEN 0.2 AND 0.22", 20)
        message = after(HOUR)
        assert "proposes the index columns x from 20 recorded reads" in message
        assert "the service sets them after 1970-01-12T" in message
        version = table.version
        assert "proposes the index columns x" in after(DAY - HOUR)
        assert table.version == version
        assert "has chosen the index columns x" in after(HOUR)
        properties = _properties(spark, table)
        assert properties["use.index.columns"] == "x (chosen from reads)"
        assert properties["use.insights.consumption.enabled"] == "true (database)"
        info = table.commit_info(table.version)
        assert info["operation"] == "USE COLUMN CHOICE"
        assert (info["operationParameters"][CHOSEN], info["operationParameters"]["recordedReads"]) == ("x", "20")
        after(HOUR)
        assert not table.unindexed
        assert table.revisions[1].columns == ("x",)
        service.stop()
    # Renames are followed; what the service has written is not set by hand, and is repeated where a table is made.
    with pytest.raises(AnalysisException, match="only what USE writes"):
        table.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{CHOSEN}' = 'y')")
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    table.sql("ALTER TABLE {t} RENAME COLUMN x TO auto")
    assert _properties(spark, table)["use.index.columns"] == "`auto` (chosen from reads)"
    with pytest.raises(AnalysisException, match="USE_INDEXED_COLUMN"):
        table.sql("ALTER TABLE {t} DROP COLUMN auto")
    copy = _table(spark, "copy", f"TBLPROPERTIES ('{CHOSEN}' = 'y')")
    assert _properties(spark, copy)["use.index.columns"] == "y (chosen from reads)"


@pytest.mark.parametrize("value", ["auto,x", "x, AUTO"])
def test_columns_are_named_or_left_to_the_service(spark, database, value):
    columns = f"('use.index.columns' = '{value}')"
    for statement in (
        f"ALTER DATABASE {database} SET DBPROPERTIES {columns}",
        f"CREATE TABLE {database}.refused (x INT, auto INT) USING delta TBLPROPERTIES {columns}",
    ):
        with pytest.raises(AnalysisException, match="alone"):
            spark.sql(statement)


def test_a_table_without_a_choice_has_no_index_columns(spark, database):
    spark.sql(f"CREATE TABLE {database}.own (auto INT, x INT) USING delta TBLPROPERTIES ('use.index.columns' = 'x')")
    table = DeltaTable(spark, f"spark_catalog.{database}.own")
    table.sql("INSERT INTO {t} VALUES (1, 2)")
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns' = ' Auto ', 'use.index.onWrite' = 'true')")
    assert "use.index.columns" not in _properties(spark, table)
    for statement in (
        "CALL use.optimize('{t}', strategy => 'UnindexedFiles')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('use.optimization.autoOptimize.enabled' = 'true')",
        "INSERT INTO {t} VALUES (1, 2)",
    ):
        with pytest.raises(Exception, match="USE_NO_INDEX_COLUMNS"):
            table.sql(statement)
    with pytest.raises(AnalysisException, match="alone"):
        table.sql("CALL use.index('{t}', 'auto')")
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns' = '`auto`')")
    table.sql("INSERT INTO {t} VALUES (1, 2)")
    table.optimize()
    assert not table.unindexed
    assert table.revisions[1].columns == ("auto",)
