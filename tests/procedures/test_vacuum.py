"""``vacuum``: deletes what the log no longer needs, and each parameter matters."""

import os
import time
from contextlib import nullcontext

import pytest
from pyspark.errors import AnalysisException
from tables import NUMBERS, numbers

import sql_ext
from catalog.history.event_store import newest_event
from catalog.jvm.table_handle import TableHandle
from procedures import vacuum as module
from procedures.vacuum import VACUUM
from sql_ext.commands import runner
from sql_ext.commands.sessions import SessionSettings


@pytest.fixture
def table(spark, new_table):
    """An indexed table with one file that the log no longer needs."""
    made = new_table(NUMBERS, index="x", cube_size=100).append(numbers(spark, 200))
    made.index()
    assert len(made.on_disk() - made.paths) == 1
    return made


def vacuum(table, **given):
    return sql_ext.call(table.spark, "vacuum", table=table.name, **given).collect()


def traces(table):
    return table.sql("SELECT * FROM {t}.optimizations WHERE kind = 'vacuum'")


def test_a_dry_run_lists_and_deletes_nothing_and_may_go_below_the_floor(table):
    before = table.state()
    (row,) = vacuum(table, retention_hours=0.0, dry_run=True)
    (unneeded,) = table.on_disk() - table.paths
    assert row.path.endswith(unneeded)
    assert (row.state, row.files) == ("planned", 1)
    assert row.bytes == (table.path / unneeded).stat().st_size
    assert vacuum(table, dry_run=True) == []
    assert table.state() == before
    assert traces(table) == []


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["full", "LITE"])
def test_force_allows_less_than_the_floor(table, mode):
    before = table.checksum()
    (unneeded,) = table.on_disk() - table.paths
    size = (table.path / unneeded).stat().st_size
    (row,) = vacuum(table, retention_hours=0.0, force=True, mode=mode)
    assert (row.path, row.state, row.files, row.bytes) == (None, "deleted", 1, size)
    assert table.on_disk() == table.paths
    assert table.checksum() == before
    (trace,) = traces(table)
    assert (trace.state, trace.reason, trace.trigger, trace.error) == ("deleted", "UNREFERENCED", "call", None)
    assert (trace.input_files_stats.num_files, trace.input_files_stats.bytes) == (1, size)
    assert (trace.input_files_stats.files, trace.output_files_stats) == (None, None)
    assert trace.version == table.sql("DESCRIBE HISTORY {t} LIMIT 1")[0].version
    assert trace.parameters == {"retention_hours": "0.0", "dry_run": "false", "mode": mode, "force": "true"}
    assert trace.finished_time >= trace.started_time
    # It is no optimization: amplification stays that of the newest one, and so does the newest optimization.
    rows = table.sql("SELECT * FROM {t}.optimizations")
    assert [r.kind for r in rows] == ["vacuum", "optimize"]
    assert rows[0].write_amplification == rows[1].write_amplification
    assert newest_event(table.managed, trace.table_id).write_id == rows[1].write_id


@pytest.mark.slow
def test_the_default_retention_keeps_young_files(table, monkeypatch):
    before = table.on_disk()
    (row,) = vacuum(table)
    assert row.files == 0
    assert table.on_disk() == before
    # The command line is named as who asked.
    monkeypatch.setattr(runner, "session", lambda _: nullcontext(table.spark))
    (row,) = runner.Runner().call(VACUUM, {"table": table.name}, SessionSettings({}))
    assert row["files"] == 0
    assert [(t.trigger, t.input_files_stats.num_files) for t in traces(table)] == [("cli", 0), ("call", 0)]


def test_a_vacuum_that_fails_leaves_its_error(table, monkeypatch):
    def broken(*_):
        raise sql_ext.UseError("It broke.", code="USE_BROKEN")

    monkeypatch.setattr(TableHandle, "vacuum", broken)
    with pytest.raises(sql_ext.UseError, match="It broke"):
        vacuum(table)
    monkeypatch.undo()
    (trace,) = traces(table)
    assert (trace.state, trace.kind, trace.error_code, trace.error) == ("failed", "vacuum", "USE_BROKEN", "It broke.")
    assert (trace.input_files_stats, trace.output_files_stats) == (None, None)


@pytest.mark.slow
def test_modes_differ_in_what_they_find(spark, table):
    """A file that no log entry ever named is found by listing only."""
    stray = table.path / "stray.parquet"
    stray.write_bytes(b"no data")
    long_ago = time.time() - 86400
    os.utime(stray, (long_ago, long_ago))
    lite = {r.path.rsplit("/")[-1] for r in vacuum(table, retention_hours=0.0, dry_run=True, mode="lite")}
    full = {r.path.rsplit("/")[-1] for r in vacuum(table, retention_hours=0.0, dry_run=True, mode="full")}
    assert full - lite == {"stray.parquet"}


@pytest.mark.slow
def test_retention_hours_decide_by_age(table):
    (unneeded,) = table.on_disk() - table.paths
    assert vacuum(table, retention_hours=1000.0, dry_run=True) == []
    assert len(vacuum(table, retention_hours=0.0, dry_run=True)) == 1
    vacuum(table, retention_hours=1000.0)
    assert unneeded in table.on_disk()


@pytest.mark.slow
def test_the_floor_is_the_tables_own(spark, table):
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.deletedFileRetentionDuration'='interval 36 hours')")
    with pytest.raises(sql_ext.UseError, match="36 hours"):
        vacuum(table, retention_hours=35.0)
    assert vacuum(table, retention_hours=36.0)[0].state == "deleted"
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.deletedFileRetentionDuration'='interval 0 hours')")
    assert vacuum(table, retention_hours=0.0)[0].files == 1


@pytest.mark.slow
def test_parallelism_is_given_to_the_job(table, monkeypatch):
    sessions = []
    real = module.work_session

    def remember(spark):
        sessions.append(real(spark))
        return sessions[-1]

    monkeypatch.setattr(module, "work_session", remember)
    vacuum(table, retention_hours=0.0, dry_run=True, parallelism=3)
    vacuum(table, retention_hours=0.0, dry_run=True)
    found = [s.conf.get("spark.sql.sources.parallelPartitionDiscovery.parallelism") for s in sessions]
    assert found == ["3", "8"]
    assert table.spark.conf.get("spark.sql.sources.parallelPartitionDiscovery.parallelism") == "4"


@pytest.mark.slow
def test_by_sql_with_the_retention_as_a_whole_number(spark, table):
    found = spark.sql(f"CALL use.vacuum('{table.name}', retention_hours => 0, dry_run => true)")
    assert [f"{n} {t}" for n, t in found.dtypes] == VACUUM.result.split(", ")
    assert found.count() == 1
    with pytest.raises(AnalysisException, match="force => true"):
        spark.sql(f"CALL use.vacuum('{table.name}', retention_hours => 0)")


def test_files_of_ours_beside_the_data_stay(table):
    ours = table.path / "_use" / "events" / "kept.json"
    ours.parent.mkdir(parents=True, exist_ok=True)
    ours.write_text("{}")
    long_ago = time.time() - 86400
    os.utime(ours, (long_ago, long_ago))
    vacuum(table, retention_hours=0.0, force=True)
    assert ours.is_file()


def test_every_parameter_has_a_test_here():
    tested = {"table", "retention_hours", "dry_run", "mode", "inventory", "force", "parallelism"}
    assert {p.name for p in VACUUM.parameters} == tested
