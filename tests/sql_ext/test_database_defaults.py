"""Properties of a database are the defaults of its tables, and bring them into the automatic optimization."""

import json

import pytest
from fake_clock import FakeClock
from pyspark.errors import AnalysisException
from tables import DeltaTable, numbers

import sql_ext
from catalog.jvm.shim_bridge import ShimBridge
from procedures.process.application import application
from procedures.service.service import Service

DATABASE = "fleet_of_tests"
READ_COST = "use.optimization.targetReadCost"


@pytest.fixture
def database(spark):
    spark.sql(f"CREATE DATABASE {DATABASE} WITH DBPROPERTIES ('{READ_COST}' = '1.5', 'team' = 'sales')")
    yield DATABASE
    spark.sql(f"DROP DATABASE {DATABASE} CASCADE")


def _set(spark, **properties):
    pairs = ", ".join(f"'use.{key.replace('__', '.')}' = '{value}'" for key, value in properties.items())
    spark.sql(f"ALTER DATABASE {DATABASE} SET DBPROPERTIES ({pairs})")


def _table(spark, name, properties=""):
    spark.sql(f"CREATE TABLE {DATABASE}.{name} (id BIGINT, x DOUBLE, y INT, s STRING) USING delta {properties}")
    return DeltaTable(spark, f"spark_catalog.{DATABASE}.{name}")


def _in_force(spark, table):
    (row,) = sql_ext.call(spark, "status", table=table.name, details=True).collect()
    return row.properties


@pytest.mark.parametrize(
    ("clause", "code"),
    [
        ("'use.optimization.targetReadCosts' = '2'", "USE_UNKNOWN_PROPERTY"),
        (f"'{READ_COST}' = 'low'", "USE_INVALID_ARGUMENT"),
        ("'use.index.onWrite' = 'true'", "USE_INVALID_ARGUMENT"),
        ("'use.optimization.type' = 'Nothing'", "USE_UNKNOWN_STRATEGY|USE_UNKNOWN"),
    ],
)
def test_wrong_properties_of_a_database_are_refused(spark, database, clause, code):
    with pytest.raises(AnalysisException, match=code):
        spark.sql(f"ALTER DATABASE {database} SET DBPROPERTIES ({clause})")
    with pytest.raises(AnalysisException, match=code):
        spark.sql(f"CREATE DATABASE refused WITH DBPROPERTIES ({clause})")
    assert not spark.catalog.databaseExists("refused")
    (described,) = spark.sql(f"DESCRIBE DATABASE EXTENDED {database}").where("info_name = 'Properties'").collect()
    assert clause.split("'")[3] not in described.info_value


def test_status_shows_where_a_value_comes_from(spark, database, set_conf):
    table = _table(spark, "t", "TBLPROPERTIES ('use.index.columns' = 'x')")
    set_conf("spark.qbeast.use.optimization.targetReadCost", "9")
    set_conf("spark.qbeast.use.index.cubeSize", "700")
    assert _in_force(spark, table) == {
        "use.index.columns": "x (table)",
        "use.index.cubeSize": "700 (session)",
        READ_COST: "1.5 (database)",
    }
    table.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{READ_COST}' = '3')")
    assert _in_force(spark, table)[READ_COST] == "3 (table)"


def test_a_table_is_indexed_by_columns_of_its_database(spark, database):
    _set(spark, index__columns="x,y", index__targetFileBytes="20kb")
    table = _table(spark, "t").append(numbers(spark, 3000))
    before = table.checksum()
    # The strategy needs index columns, which the table has from its database.
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.optimization.type' = 'UnindexedFiles')")
    table.optimize()
    assert not table.unindexed
    assert len(table.replayed()[0]) > 1
    assert table.checksum() == before
    (own,) = table.sql("SHOW TBLPROPERTIES {t} ('use.index.columns')")
    assert "does not have property" in own.value
    # A second run finds nothing: the revision remembers the columns that it was made for.
    version = table.version
    table.optimize()
    assert table.version == version
    without = _table(spark, "other", "TBLPROPERTIES ('use.index.columns' = 's')")
    assert _in_force(spark, without)["use.index.columns"] == "s (table)"


@pytest.mark.parametrize(("catalog", "inherits"), [("spark_catalog", True), ("unity", False)])
def test_a_table_of_another_catalog_inherits_nothing_from_a_database_of_that_name(spark, database, catalog, inherits):
    table, session, jvm = _table(spark, "t"), spark._jsparkSession, spark._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session, str(table.path))
    facts = json.loads(
        jvm.io.usespark.TableState(log.unsafeVolatileSnapshot(), jvm.scala.Some(table.entry(catalog))).facts(session)
    )
    assert facts["inherited"]["database"] == ({READ_COST: "1.5"} if inherits else {})


def test_columns_that_a_table_lacks_are_not_inherited(spark, database):
    _set(spark, index__columns="x,missing")
    table = _table(spark, "t").append(numbers(spark, 10))
    assert "use.index.columns" not in _in_force(spark, table)
    with pytest.raises(sql_ext.UseError, match="USE_NO_INDEX_COLUMNS"):
        table.optimize()


def test_a_fleet_brings_in_tables_and_lets_them_go(spark, database, set_conf):
    clock = FakeClock()
    indexed = _table(spark, "indexed", "TBLPROPERTIES ('use.index.columns' = 'x')").append(numbers(spark, 100))
    plain = _table(spark, "plain")
    for start in range(4):
        plain.append(numbers(spark, 10, start=10 * start))
    outside = _table(spark, "outside", "TBLPROPERTIES ('use.fleet.enabled' = 'false')").append(numbers(spark, 10))
    set_conf("spark.qbeast.use.service.enabled", "true")
    tables = [indexed.name, plain.name, outside.name]
    service = Service(spark, tables, clock=clock)

    def automations():
        return {a.table.split(".")[-1]: a.strategies for a in application().automations.all() if a.table in tables}

    def interval():
        clock.go_on(600_000)
        service.tick()
        assert service.join(300)

    try:
        interval()
        assert automations() == {}
        _set(spark, fleet__enabled="true")
        interval()
        assert automations() == {
            "indexed": ("UnindexedFiles", "SortedRunCompaction"),
            "plain": ("DeleteCompaction", "SizeTieredClustering"),
        }
        interval()
        assert not indexed.unindexed
        assert len(plain.replayed()[0]) == 1
        assert outside.version == 1
        # A table that comes later is part of the fleet, too; a property takes one out.
        plain.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.fleet.enabled' = 'false')")
        interval()
        assert set(automations()) == {"indexed"}
        _set(spark, fleet__enabled="false")
        interval()
        assert automations() == {}
    finally:
        service.stop()


def test_queries_are_recorded_by_a_property_of_the_database(spark, database):
    table = _table(spark, "t").append(numbers(spark, 10))
    _set(spark, insights__consumption__enabled="true")
    table.sql("SELECT count(*) FROM {t} WHERE x < 0.5")
    ShimBridge(spark).flush_scans()
    rows = table.sql("SELECT * FROM {t}.consumption")
    assert [(r.column, r.operator) for row in rows for r in row.filters] == [("x", "<")]
