"""``vacuum``: deletes what the log no longer needs, and each parameter matters."""

import json
import math
import os
import time
import uuid
from contextlib import nullcontext

import pytest
from fake_clock import FakeClock
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from tables import NUMBERS, checksum, numbers

import sql_ext
from catalog.errors import InvalidArgumentError
from catalog.history.recent_events import newest_event
from catalog.jvm.table_vacuum import TableVacuum
from procedures.calls import vacuum as module
from procedures.calls.vacuum import VACUUM
from procedures.lifecycle.vacuum import vacuum_run
from procedures.lifecycle.vacuum.paced_deletion import DeletableFile, PacedDeletion
from procedures.process.application import Application, active
from sql_ext.commands import runner
from sql_ext.commands.session_settings import SessionSettings


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
    assert row.reason == "EXPIRED"
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
    row, kept = vacuum(table, retention_hours=0.0, force=True, mode=mode)
    assert tuple(row) == (None, "EXPIRED", 1, size, "deleted")
    live = table.files
    assert tuple(kept) == (None, "KEPT", len(live), sum(file.size for file in live), "kept")
    assert table.on_disk() == table.paths
    assert table.checksum() == before
    (trace,) = traces(table)
    assert (trace.state, trace.reason, trace.trigger, trace.error) == ("deleted", "EXPIRED", "call", None)
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
    version = table.version
    (row,) = vacuum(table)
    assert (row.reason, row.files) == ("KEPT", 2)
    assert (table.on_disk(), table.version) == (before, version)
    # The command line is named as who asked.
    monkeypatch.setattr(runner, "session", lambda _: nullcontext(table.spark))
    (row,) = runner.Runner().call(VACUUM, {"table": table.name}, SessionSettings({}))
    assert row["reason"] == "KEPT"
    assert [(t.trigger, t.input_files_stats.num_files) for t in traces(table)] == [("cli", 0), ("call", 0)]


def test_a_vacuum_that_fails_leaves_its_error(table, monkeypatch):
    def broken(*_):
        raise sql_ext.UseError("It broke.", code="USE_BROKEN")

    monkeypatch.setattr(TableVacuum, "candidates", broken)
    with pytest.raises(sql_ext.UseError, match="It broke"):
        vacuum(table)
    monkeypatch.undo()
    (trace,) = traces(table)
    assert (trace.state, trace.kind, trace.error_code, trace.error) == ("failed", "vacuum", "USE_BROKEN", "It broke.")
    assert (trace.input_files_stats, trace.output_files_stats) == (None, None)


@pytest.mark.slow
def test_modes_of_tiledb(table):
    """One is ours by another name; of the others, the error names the call."""
    assert vacuum(table, dry_run=True, mode="Fragments") == vacuum(table, dry_run=True)
    for mode in ("commits", "fragment_meta", "array_meta", "group_meta"):
        with pytest.raises(sql_ext.UseError, match=f"'{mode}' is not accepted: one of full, lite.*use.purge"):
            vacuum(table, mode=mode)


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
    assert vacuum(table, retention_hours=36.0)[0].state == "kept"
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.deletedFileRetentionDuration'='interval 0 hours')")
    assert vacuum(table, retention_hours=0.0)[0].files == 1


@pytest.mark.slow
def test_parallelism_is_given_to_the_job(table, monkeypatch):
    sessions = []
    real = module.work_session

    def remember(*given):
        sessions.append(real(*given))
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


@pytest.mark.slow
def test_files_of_ours_beside_the_data_stay(table):
    ours = table.path / "_use" / "events" / "kept.json"
    ours.parent.mkdir(parents=True, exist_ok=True)
    ours.write_text("{}")
    long_ago = time.time() - 86400
    os.utime(ours, (long_ago, long_ago))
    vacuum(table, retention_hours=0.0, force=True)
    assert ours.is_file()


def put(table, name, hours, content=b"no data"):
    """Puts a file below the table that no commit names, and dates it back."""
    file = table.path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    date_back(file, hours)
    return file


def date_back(file, hours):
    then = time.time() - hours * 3600
    os.utime(file, (then, then))


def rows_of_version(table, version):
    return checksum(table.spark.sql(f"SELECT * FROM {table.name} VERSION AS OF {version}"))


@pytest.mark.slow
def test_files_within_the_retention_stay(table):
    """Delta rounds 0.4 hours to none, and forgets removals when the retention of the table, here none, is over."""
    kept = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.deletedFileRetentionDuration'='interval N hours')"
    versions = range(1, table.version + 1)
    before = {version: rows_of_version(table, version) for version in versions}
    table.sql(kept.replace("N", "0"))
    for name in table.on_disk():
        date_back(table.path / name, 5)
    being_written = put(table, "being written.parquet", 0.2)
    leftover = put(table, "leftover.parquet", 0.6)
    # USE may have written the files of the other table, too.
    names = ("live", f"part-00000-{uuid.uuid4()}-use0")
    of_another_table = [put(table, f"archive/t/p=1/{name}.parquet", 0.6) for name in names]
    (table.path / "archive" / "t" / "_delta_log").mkdir()
    rows = vacuum(table, retention_hours=0.4)
    assert [(r.reason, r.files, r.bytes, r.state) for r in rows[:-1]] == [("UNREFERENCED", 1, 7, "deleted")]
    assert being_written.exists()
    assert all(file.exists() for file in of_another_table)
    assert not leftover.exists()
    table.sql(kept.replace("N", "1"))
    assert {version: rows_of_version(table, version) for version in versions} == before


@pytest.mark.slow
def test_each_file_has_a_reason(table):
    before = table.checksum()
    (removed,) = table.on_disk() - table.paths
    stray = put(table, "p=a%20b/x y.parquet", 1)
    (table.path / "empty").mkdir()
    young = put(table, "young/new.parquet", -1)
    planned = vacuum(table, retention_hours=0.0, dry_run=True)
    assert {(r.path.removeprefix(f"file:{table.path}/"), r.reason, r.files, r.bytes, r.state) for r in planned} == {
        (removed, "EXPIRED", 1, (table.path / removed).stat().st_size, "planned"),
        ("p=a%20b/x y.parquet", "UNREFERENCED", 1, 7, "planned"),
        ("empty", "EMPTY_FOLDER", 0, 0, "planned"),
    }
    rows = vacuum(table, retention_hours=0.0, force=True)
    assert [(r.reason, r.files) for r in rows] == [
        ("EMPTY_FOLDER", 1),
        ("EXPIRED", 1),
        ("UNREFERENCED", 1),
        ("KEPT", len(table.paths)),
    ]
    (trace,) = traces(table)
    assert (trace.reason, trace.input_files_stats.num_files) == ("EMPTY_FOLDER, EXPIRED, UNREFERENCED", 3)
    assert table.on_disk() == {*table.paths, "young/new.parquet"}
    assert young.exists()
    assert not stray.exists()
    # A folder that becomes empty is left to the next vacuum, as with Delta.
    assert stray.parent.is_dir()
    assert not (table.path / "empty").exists()
    assert table.checksum() == before


def inventory(table, rows, form="delta"):
    """Writes an inventory beside the table; returns its path."""
    path = str(table.path.parent / f"inventory-{uuid.uuid4().hex}")
    columns = "path STRING, length BIGINT, isDir BOOLEAN, modificationTime BIGINT"
    data = table.spark.createDataFrame(rows, columns).withColumn("owner", F.lit("me"))
    data.write.format(form).save(path)
    return path


@pytest.mark.slow
def test_an_inventory_replaces_the_listing_and_is_not_trusted(table):
    before = table.checksum()
    (removed,) = table.on_disk() - table.paths
    cache = table.spark._jsparkSession.sharedState().cacheManager()
    cached = cache.numCachedEntries()
    old = put(table, "old.parquet", 2)
    unlisted = put(table, "unlisted.parquet", 2)
    young = put(table, "young.parquet", -1)
    outside = put(table, f"../outside-{uuid.uuid4().hex}.parquet", 2)
    state = put(table, "_use/writes/1.parquet", 2)
    nested = put(table, "p/_delta_log/0.json", 2)
    root, ago = f"file:{table.path}", round(time.time() * 1000) - 7_200_000
    live = sorted(table.paths)
    names = [*live, removed, "gone.parquet", "old.parquet", "_use/writes/1.parquet", "p/_delta_log/0.json"]
    names += [f"../{outside.name}", f"p/../../{outside.name}", f"./{live[0]}", f"p/../{live[0]}", f"/{live[0]}", "a:b"]
    rows = [(f"{root}/{name}", 1, False, ago) for name in names]
    # In seconds, every time is long ago.
    rows += [(f"{root}/young.parquet", 1, False, round(time.time())), (f"file:{outside}", 1, False, ago)]
    rows += [(None, 1, False, ago), (f"{root}/unlisted.parquet", 1, False, None), (f"{root}/p", 0, False, ago)]
    given = {"retention_hours": 0.0, "force": True, "inventory": inventory(table, rows)}
    planned = vacuum(table, **given | {"dry_run": True})
    assert [r.path for r in planned] == sorted([f"{root}/{removed}", f"{root}/old.parquet"])
    assert [(r.reason, r.files, r.bytes) for r in vacuum(table, **given)[:-1]] == [
        ("EXPIRED", 1, planned[0].bytes + planned[1].bytes - 7),
        ("UNREFERENCED", 1, 7),
    ]
    assert not old.exists()
    assert all(file.exists() for file in (unlisted, young, outside, state, nested))
    assert table.on_disk() >= table.paths
    assert table.checksum() == before
    # The lists of files are released.
    assert cache.numCachedEntries() == cached
    outside.unlink()


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "table", "view"])
def test_forms_of_an_inventory(spark, table, form):
    put(table, "old.parquet", 2)
    row = (f"file:{table.path}/old.parquet", 1, False, 0)
    name = inventory(table, [row], "delta" if form == "view" else "parquet")
    if form == "view":
        spark.read.format("delta").load(name).createOrReplaceTempView("listed")
    if form == "table":
        spark.sql(f"CREATE TABLE default.listed USING parquet LOCATION '{name}'")
    (found,) = vacuum(table, dry_run=True, retention_hours=0.0, inventory=name if form == "parquet" else "listed")
    assert found.path == row[0]
    spark.sql(f"DROP {form} listed" if form != "parquet" else "SELECT 1")


def test_inventories_that_are_refused(spark, table):
    before = table.state()
    columns = "path STRING, length BIGINT, isDir BOOLEAN"
    spark.createDataFrame([], columns).createOrReplaceTempView("incomplete")
    spark.createDataFrame([], f"{columns}, modificationTime TIMESTAMP").createOrReplaceTempView("wrong")
    for name, problem in {
        "default.missing": "it cannot be read: ",
        "/no/such/folder": "it cannot be read: ",
        "incomplete": "it has no column modificationTime",
        "wrong": "its column modificationTime is TIMESTAMP",
    }.items():
        with pytest.raises(InvalidArgumentError, match=problem) as caught:
            vacuum(table, retention_hours=0.0, force=True, inventory=name)
        assert caught.value.message.startswith(f"inventory = '{name}' is not accepted: a table, or the path of ")
    assert table.state() == before
    assert traces(table) == []
    spark.catalog.dropTempView("incomplete")
    spark.catalog.dropTempView("wrong")


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
def test_rates_that_are_refused(rate):
    with pytest.raises(InvalidArgumentError, match=r"max_files_per_second = .* is not accepted: a number above 0"):
        VACUUM.checked({"table": "t", "max_files_per_second": rate})


class WaitingClock(FakeClock):
    """A clock that starts now and acts in its waits."""

    def __init__(self, act=lambda wait: None):
        super().__init__(time.time_ns() // 1_000_000)
        self.waits = []
        self._act = act

    def wait(self, event, seconds):
        self.waits.append(round(seconds, 3))
        self._act(len(self.waits))
        return super().wait(event, seconds)


@pytest.mark.parametrize(
    ("rate", "count", "waits", "sizes"),
    [
        (2.0, 5, [0, 1, 1], [2, 2, 1]),
        (0.5, 3, [0, 2, 2], [1, 1, 1]),
        (4000.0, 2500, [0, 0.25, 0.25], [1000, 1000, 500]),
    ],
)
def test_the_rate_of_deletions(rate, count, waits, sizes):
    batches = []

    class Vacuum:
        def delete(self, paths, threads):
            batches.append(len(paths))
            return [-1 if path == "f1" else 10 for path in paths]

    class NoProgress:
        def done(self, size):
            pass

    clock = WaitingClock()
    deletion = PacedDeletion(Vacuum(), rate, 4, clock, NoProgress())
    deletion.run(DeletableFile(f"f{i}", 10, "EXPIRED") for i in range(count))
    assert (clock.waits, batches) == (waits, sizes)
    assert deletion.deleted == {"EXPIRED": (count - 1, 10 * (count - 1))}


@pytest.mark.slow
def test_a_killed_vacuum_is_resumed_by_the_next(table):
    before = table.checksum()
    strays = [put(table, f"stray{i}.parquet", 2) for i in range(3)]
    given = {"retention_hours": 0.0, "force": True, "max_files_per_second": 1.0}

    def killed(wait):
        if wait == 3:
            raise KeyboardInterrupt

    with active(Application(clock=WaitingClock(killed))), pytest.raises(KeyboardInterrupt):
        vacuum(table, **given)
    assert len(table.on_disk() - table.paths) == 2
    assert table.checksum() == before
    clock = WaitingClock()
    with active(Application(clock=clock)):
        rows = vacuum(table, **given)
    assert clock.waits == [0, 1]
    assert sum(row.files for row in rows if row.state == "deleted") == 2
    assert table.on_disk() == table.paths
    assert not any(file.exists() for file in strays)
    assert table.checksum() == before
    second, first = traces(table)
    assert (first.state, first.input_files_stats.num_files) == ("failed", 2)
    assert (second.state, second.input_files_stats.num_files) == ("deleted", 2)
    history = table.sql("DESCRIBE HISTORY {t} LIMIT 4")
    assert [(h.operation, h.operationParameters.get("status")) for h in history] == [
        ("VACUUM END", "COMPLETED"),
        ("VACUUM START", None),
        ("VACUUM END", "FAILED"),
        ("VACUUM START", None),
    ]
    assert second.version == history[0].version


@pytest.mark.slow
def test_a_file_that_another_writer_restores_meanwhile_stays(table):
    """The file was removed when the vacuum made its list, and is live again when its turn comes."""
    (removed,) = table.on_disk() - table.paths
    before = rows_of_version(table, 1)
    young = put(table, "young.parquet", 2)

    def restore(wait):
        if wait == 1:
            table.sql("RESTORE TABLE {t} TO VERSION AS OF 1")
            date_back(young, 0)
            os.utime(young, (time.time() + 60, time.time() + 60))

    with active(Application(clock=WaitingClock(restore))):
        (kept,) = vacuum(table, retention_hours=0.0, force=True, max_files_per_second=10.0)
    assert kept.reason == "KEPT"
    assert removed in table.paths
    assert young.exists()
    assert table.checksum() == before


@pytest.mark.slow
def test_a_long_dry_run_counts_the_rest_by_reason(table, monkeypatch):
    monkeypatch.setattr(vacuum_run, "MAX_PATHS_SHOWN", 2)
    (removed,) = table.on_disk() - table.paths
    put(table, "0.parquet", 2)
    put(table, "00.parquet", 2)
    put(table, "z.parquet", 2)
    rows = vacuum(table, retention_hours=0.0, dry_run=True)
    assert [(r.path and r.path.rsplit("/")[-1], r.reason, r.files, r.bytes) for r in rows] == [
        ("0.parquet", "UNREFERENCED", 1, 7),
        ("00.parquet", "UNREFERENCED", 1, 7),
        (None, "EXPIRED", 1, (table.path / removed).stat().st_size),
        (None, "UNREFERENCED", 1, 7),
    ]


@pytest.mark.slow
def test_files_that_cannot_be_deleted_are_not_counted(table, monkeypatch):
    """Delta counts what it deletes; the reasons of the others are looked up."""
    put(table, "stray.parquet", 2)
    real = TableVacuum.delete_all

    def one(self, mode, files):
        real(self, mode, files.where("path LIKE '%stray%'"))

    monkeypatch.setattr(TableVacuum, "delete_all", one)
    rows = vacuum(table, retention_hours=0.0, force=True)
    assert [(r.reason, r.files, r.bytes) for r in rows][:-1] == [("UNREFERENCED", 1, 7)]


@pytest.mark.slow
def test_lite_at_a_limited_rate_notes_what_it_covers(table):
    given = {"retention_hours": 0.0, "force": True, "mode": "lite"}
    rows = vacuum(table, max_files_per_second=100.0, **given)
    assert [(row.reason, row.files) for row in rows][:-1] == [("EXPIRED", 1)]
    assert table.on_disk() == table.paths
    note = json.loads((table.path / "_delta_log" / "_last_vacuum_info").read_text(encoding="utf-8"))
    assert note["latestCommitVersionOutsideOfRetentionWindow"] >= 2
    assert [row.reason for row in vacuum(table, **given)] == ["KEPT"]


def test_every_parameter_has_a_test_here():
    tested = {
        "table",
        "retention_hours",
        "dry_run",
        "mode",
        "inventory",
        "force",
        "parallelism",
        "max_files_per_second",
    }
    assert {p.name for p in VACUUM.parameters} == tested
