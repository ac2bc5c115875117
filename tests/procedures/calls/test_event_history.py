"""``<table>.optimizations`` over log and store, the lease of a run, and what plain Delta does to our folder."""

import json
import shutil
from dataclasses import replace

import pytest
from tables import NUMBERS, numbers

import sql_ext
from catalog.clock import SYSTEM_CLOCK
from catalog.errors import UseError
from catalog.files import log_changes
from catalog.history import event_store, events
from catalog.history.event_store import RECONCILED_FILE, merge, reconcile, record_failure, record_ignored
from catalog.history.events import event_without_commit
from catalog.state.lease import LEASE_FILE, LEASE_MILLIS, Lease
from catalog.state.line_folder import GRACE_MILLIS


@pytest.fixture
def table(spark, new_table):
    return new_table(NUMBERS, index="x,y", cube_size=200, file_bytes="12kb").append(numbers(spark, 300))


def _shown(table):
    return table.sql("SELECT * FROM {t}.optimizations")


def _folder(table):
    return {str(f.relative_to(table.path)) for f in table.path.rglob("*") if f.is_file()}


def _without_commit(reason, at, **more):
    return event_without_commit("LeveledCompaction", "manual", reason, {"a": "b"}, (at, at + 5), **more)


@pytest.mark.slow
def test_runs_and_leases_and_what_plain_delta_does_to_our_files(spark, table, set_conf):
    held = Lease("run7", "elsewhere:7", "automatic", SYSTEM_CLOCK.now(), SYSTEM_CLOCK.now() + LEASE_MILLIS)
    table.managed.write_state(LEASE_FILE, held.to_json())
    before = table.state(), _folder(table)
    (row,) = table.optimize()
    assert (row.state, row.reason, row.input_files, row.version) == ("skipped", "LEASE_HELD", 0, None)
    assert all(word in row.message for word in ("elsewhere:7", "run7", "automatic"))
    assert [r.state for r in table.optimize(dry_run=True)] == ["planned"]
    assert (table.state(), _folder(table)) == before

    table.managed.write_state(LEASE_FILE, replace(held, expires_at=1).to_json())
    assert {r.state for r in table.optimize()} == {"committed"}
    assert table.managed.read_state(LEASE_FILE) is None

    before = _folder(table)
    assert [r.reason for r in table.optimize()] == ["NOTHING_TO_DO"]
    assert _folder(table) == before

    ours, data = {f for f in before if f.startswith("_use/events/")}, table.on_disk()
    assert ours
    set_conf("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    table.sql("VACUUM {t} RETAIN 0 HOURS")
    left = _folder(table)
    assert ours <= left
    assert table.on_disk() < data
    (summary,) = sql_ext.call(spark, "check", table=table.name).collect()
    assert summary.severity == "ok"


@pytest.mark.slow
def test_the_history_is_that_of_the_log_and_of_the_store(spark, table):
    table.index()
    managed = table.managed
    (first,) = _shown(table)
    assert (first.state, first.version, first.error, first.error_code) == ("committed", table.version, None, None)
    assert first.write_amplification == 1.0

    later = first.finished_at + 1000
    unknown = _without_commit("UNINDEXED", later, write_id=first.write_id)
    record_failure(managed, unknown, UseError("who knows", code="USE_COMMIT_UNKNOWN"))
    record_failure(managed, _without_commit("LEVEL_1", later), UseError("it broke", code="USE_ROWS_CHANGED"))
    record_ignored(managed, _without_commit("ALREADY_RUNNING", later + 1000))
    record_ignored(managed, _without_commit("OF_ANOTHER_TABLE", later, table_id="before"))
    managed.write_state("events/5-half.json", '{"write_id": "x", "state": "comm')
    managed.write_state("events/6-foreign.json", '{"write_id": 7, "state": ["x"]}\nhello')
    (managed_path := table.path / "_use" / "events" / "7-binary.json").write_bytes(b"\xff\xfe\x00")
    assert managed_path.exists()
    shown = _shown(table)
    assert [(r.state, r.reason, r.error_code, r.version) for r in shown] == [
        ("ignored", "ALREADY_RUNNING", None, None),
        ("failed", "LEVEL_1", "USE_ROWS_CHANGED", None),
        ("committed", "UNINDEXED", None, first.version),
    ]
    assert (shown[1].error, shown[1].trigger, shown[1].kind) == ("it broke", "manual", "optimize")
    assert {r.table_id for r in shown} == {first.table_id}

    # As after a crash between commit and store; then the log is cleaned up.
    shutil.rmtree(table.path / "_use")
    reconcile(managed)
    assert json.loads(managed.read_state(RECONCILED_FILE))["version"] == first.version
    (file,) = managed.list_state("events")
    reconcile(managed)
    assert managed.list_state("events") == [file]
    table.append(numbers(spark, 50, start=300))
    table.index()
    table.append(numbers(spark, 1))
    table.checkpoint()
    for version in range(table.version):
        (table.path / "_delta_log" / f"{version:020d}.json").unlink()
    shown = _shown(table)
    assert [r.version for r in shown] == [first.version + 2, first.version]
    assert shown[1] == first
    written = sum(r.output_files_stats.bytes for r in shown)
    assert written / shown[0].write_amplification == pytest.approx(sum(f.size for f in _live(table)[1:]), rel=1e-9)


@pytest.mark.slow
def test_parts_of_merged_files_may_go_while_the_history_is_read(table, monkeypatch):
    """A merge leaves the parts for a while, and deletes them without asking who reads."""
    for number in range(101):
        record_ignored(table.managed, _without_commit(f"R{number}", number + 1))
    merge(table.managed, SYSTEM_CLOCK.now())
    read = event_store.stored_events

    def later(spark, files):
        merge(table.managed, SYSTEM_CLOCK.now() + GRACE_MILLIS)
        assert len(list((table.path / "_use/events").glob("*.json"))) == 1
        return read(spark, files)

    monkeypatch.setattr(event_store, "stored_events", later)
    assert len(_shown(table)) == 101


def test_events_that_only_the_log_has_are_read_in_the_driver_or_from_the_history(table, monkeypatch):
    table.index()
    managed = table.managed
    stored = []
    for most_bytes in (log_changes.MAX_SHORT_BYTES, 0):
        monkeypatch.setattr(log_changes, "MAX_SHORT_BYTES", most_bytes)
        shutil.rmtree(table.path / "_use")
        reconcile(managed)
        (file,) = managed.list_state("events")
        stored.append(json.loads(managed.read_state(f"events/{file}")))
    assert stored[0] == stored[1]
    assert (stored[0]["state"], stored[0]["version"]) == ("committed", table.version)
    assert [row.version for row in _shown(table)] == [table.version]


def _live(table):
    """Live files, the newest append first."""
    found = table.managed.snapshot().files.orderBy("modification_time", ascending=False).collect()
    return [type("File", (), {"size": r["size"]}) for r in found]


@pytest.mark.slow
def test_long_lists_lie_beside_the_log(spark, table, monkeypatch):
    monkeypatch.setattr(events, "MAX_NAMES_IN_COMMIT", 0)
    table.index()
    (row,) = _shown(table)
    (name,) = table.managed.list_state("lists")
    assert name == f"{row.write_id}.json"
    assert row.output_files_stats.files == [a["path"] for a in table.added(table.version)]
    assert '"files":null' in table.commit_info(table.version)["operationParameters"]["event"]
    # Where they were kept before.
    shutil.move(table.path / "_use" / "lists" / name, table.path / "_use" / "events" / name)
    assert _shown(table) == [row]
    table.managed.delete_state(f"events/{name}")
    (without,) = _shown(table)
    assert (without.output_files_stats.files, without.write_id) == (None, row.write_id)


@pytest.mark.slow
def test_clone_restore_and_drop(spark, table, new_table):
    table.index()
    clone = f"{table.name}_clone"
    spark.sql(f"CREATE TABLE {clone} SHALLOW CLONE {table.name}")
    try:
        assert spark.table(f"{clone}.optimizations").count() == 0
    finally:
        spark.sql(f"DROP TABLE {clone}")
    table.sql("RESTORE TABLE {t} TO VERSION AS OF 1")
    assert [r.state for r in _shown(table)] == ["committed"]
    managed, path = table.managed, table.path
    shutil.rmtree(path)
    reconcile(managed)
    record_failure(managed, _without_commit("LEVEL_1", 5, table_id="t"), UseError("gone"))
    record_ignored(managed, _without_commit("LEVEL_1", 5))
    assert not path.exists()
