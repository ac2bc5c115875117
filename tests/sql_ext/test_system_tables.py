"""``use_catalog.system_lake_tables``: one row per table, and the optimizations of all tables."""

import shutil

import pytest
from pyspark.errors import AnalysisException
from spark_jobs import at_most
from tables import NUMBERS, another_engine, numbers

from catalog.clock import SYSTEM_CLOCK
from catalog.errors import UseError
from catalog.history.event_store import record_failure, record_ignored
from catalog.history.events import event_without_commit
from catalog.properties.optimization_properties import TYPE_KEY, effective_type
from catalog.state.automation import Automation
from catalog.state.lease import LEASE_FILE, LEASE_MILLIS, Lease
from catalog.state.suspension import resume, suspend
from catalog.system_tables import SYSTEM_TABLES, SystemQuery
from catalog.table.snapshot import TableSnapshot
from procedures.insight.health.health import table_score
from procedures.process.application import application

SUMMARY = "use_catalog.system_lake_tables.metastore_summary"
OF_ALL = "use_catalog.system_lake_tables.optimizations"
AUTO = "use.optimization.autoOptimize."


def _summary(spark, table, columns="*"):
    name = table.name.removeprefix("default.")
    (row,) = spark.sql(f"SELECT {columns} FROM {SUMMARY} WHERE name = '{name}'").collect()
    return row


def test_they_are_listed_and_nothing_else_is(spark):
    assert [r[0] for r in spark.sql("SHOW NAMESPACES IN use_catalog").collect()] == ["system_lake_tables"]
    shown = spark.sql("SHOW TABLES IN use_catalog.system_lake_tables").collect()
    names = ["consumption", "fleet", "ingestion", "metastore_summary", "optimizations"]
    assert sorted(r.tableName for r in shown) == names
    with pytest.raises(AnalysisException) as missing:
        spark.sql("SELECT * FROM use_catalog.system_lake_tables.metastore_sumary")
    assert missing.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
    with pytest.raises(AnalysisException):
        spark.sql(f"INSERT INTO {SUMMARY} SELECT * FROM {SUMMARY}")


def test_an_indexed_table_from_idle_to_suspended(spark, new_table):
    table = new_table(NUMBERS, index="x,y:quantiles", cube_size=200).append(numbers(spark, 100))
    row = _summary(spark, table)
    size = sum(f.size for f in table.files)
    assert (row.catalog, row.namespace, row.provider, row.location) == (
        "spark_catalog",
        "default",
        "delta",
        table.managed.location,
    )
    assert (row.index_columns, row.last_version, row.unindexed_files, row.unindexed_bytes) == (["x", "y"], 1, 1, size)
    assert (row.state, row.last_run, row.next_run, row.last_error) == (None, None, None, None)
    assert row.table_properties["use.index.columns"] == "x,y:quantiles"
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.optimization.type'='LeveledCompaction')")
    assert _summary(spark, table, "state").state == "scheduled"
    wanted = f"SELECT name FROM {SUMMARY} WHERE table_properties['use.optimization.type'] IS NOT NULL"
    assert [r.name for r in spark.sql(wanted).collect()] == [table.name.removeprefix("default.")]
    table.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{AUTO}enabled'='true', '{AUTO}revisionId'='0')")
    properties = _summary(spark, table, "table_properties p").p
    assert (properties["use.optimization.type"], properties[f"{AUTO}enabled"]) == ("UnindexedFiles", "true")
    now = SYSTEM_CLOCK.now()
    table.managed.write_state(LEASE_FILE, Lease("r", "h", "call", now, now + LEASE_MILLIS).to_json())
    assert _summary(spark, table, "state").state == "running"
    suspend(table.managed, now)
    assert _summary(spark, table, "state").state == "suspended"
    resume(table.managed)
    table.managed.delete_state(LEASE_FILE)
    failed = event_without_commit("LeveledCompaction", "automatic", "LEVEL_1", {}, (now, now + 7000))
    record_failure(table.managed, failed, UseError("it broke", code="USE_ROWS_CHANGED"))
    row = _summary(spark, table, "last_run, last_error, unix_millis(last_run) ms")
    assert (row.ms, row.last_error) == (now + 7000, "USE_ROWS_CHANGED: it broke")
    application().automations.put(
        Automation(table.managed.name, table.managed.location, "failed", (), now + 9000, now + 10_000, "USE_X: no")
    )
    try:
        row = _summary(spark, table, "state, unix_millis(last_run) ms, unix_millis(next_run) next, last_error")
        assert (row.state, row.ms, row.next, row.last_error) == ("failed", now + 9000, now + 10_000, "USE_X: no")
    finally:
        application().automations.remove(table.managed.location)


def test_what_cannot_be_read_breaks_nothing(spark, new_table, tmp_path):
    gone, plain = new_table(NUMBERS), new_table(NUMBERS)
    with another_engine():
        wrong = new_table(NUMBERS, index="no_such_column")
    shutil.rmtree(gone.path)
    path = tmp_path / "by path"
    numbers(spark, 5).coalesce(1).write.format("delta").save(str(path))
    application().automations.put(
        Automation(f"spark_catalog.delta.`{path}`", path.as_uri().replace("%20", " "), "scheduled")
    )
    try:
        rows = {r.name: r for r in spark.table(SUMMARY).collect()}
    finally:
        application().automations.remove(path.as_uri().replace("%20", " "))
    names = [t.name.removeprefix("default.") for t in (gone, wrong, plain)]
    assert rows[names[0]].last_error.startswith("USE_TABLE_NOT_FOUND")
    assert (rows[names[0]].last_version, rows[names[0]].table_properties) == (None, None)
    assert rows[names[1]].last_error.startswith("USE_UNKNOWN_COLUMN")
    assert (rows[names[1]].last_version, rows[names[1]].index_columns) == (0, None)
    assert (rows[names[2]].last_error, rows[names[2]].unindexed_files, rows[names[2]].index_columns) == (None, 0, None)
    by_path = rows[f"delta.`{path}`"]
    assert (by_path.catalog, by_path.namespace, by_path.provider, by_path.state) == (None, None, "delta", "scheduled")
    assert (by_path.last_error, by_path.unindexed_files) == (None, 1)


def test_only_what_is_asked_for_is_computed(spark, new_table, monkeypatch):
    table = new_table(NUMBERS)
    name = table.name.removeprefix("default.")

    def refuse(*_):
        raise AssertionError("nobody asked for it")

    monkeypatch.setattr(TableSnapshot, "log_files", property(refuse))
    assert _summary(spark, table, "table_properties, state").state is None
    monkeypatch.setattr(TableSnapshot, "of", refuse)
    assert name in [r.name for r in spark.sql(f"SELECT name, location FROM {SUMMARY}").collect()]
    assert spark.table(SUMMARY).count() >= 1


def test_the_optimizations_of_all_tables(spark, new_table):
    one, other, never = (new_table(NUMBERS) for _ in range(3))
    for table in (one, other):
        event = event_without_commit("LeveledCompaction", "manual", f"BY_{table.name}", {}, (5, 9))
        record_ignored(table.managed, event)
    found = spark.sql(f"SELECT `table`, reason, input_files_stats.num_files n FROM {OF_ALL} WHERE state = 'ignored'")
    ours = {(r.table, r.reason, r.n) for r in found.collect() if r.reason.startswith("BY_")}
    assert ours == {(t.managed.name, f"BY_{t.name}", None) for t in (one, other)}
    assert never.managed.name not in {r.table for r in found.collect()}
    assert spark.table(OF_ALL).columns[1:] == spark.table(f"{one.name}.optimizations").columns


@pytest.mark.parametrize(
    ("configuration", "effective"),
    [
        ({}, None),
        ({TYPE_KEY: "A, B"}, "A, B"),
        ({f"{AUTO}enabled": "true"}, "UnindexedFiles,SortedRunCompaction"),
        ({f"{AUTO}enabled": "true", TYPE_KEY: "A"}, "UnindexedFiles,SortedRunCompaction"),
        ({f"{AUTO}enabled": "false", TYPE_KEY: "A"}, None),
        (
            {f"{AUTO}enabled": "true", f"{AUTO}optimizeUnindexedFiles.prioritize": "false"},
            "SortedRunCompaction,UnindexedFiles",
        ),
        (
            {f"{AUTO}enabled": "true", f"{AUTO}optimizeUnindexedFiles.enabled": "false"},
            "SortedRunCompaction",
        ),
        ({f"{AUTO}enabled": "true", f"{AUTO}revisionId": "0"}, "UnindexedFiles"),
    ],
)
def test_effective_type(configuration, effective):
    assert effective_type(configuration) == effective


def test_the_health_of_tables_with_few_files_costs_no_job(spark, new_table):
    for index in (None, None, "x,y"):
        new_table(NUMBERS, **({"index": index} if index else {})).append(numbers(spark, 20))
    app = application()
    query = SystemQuery(
        spark, ["name", "health"], app.automations, SYSTEM_CLOCK.now(), lambda t: table_score(t, app.clock)
    )
    with at_most(spark, 0):
        rows = list(SYSTEM_TABLES["metastore_summary"].rows(query))
    assert len(rows) >= 3
