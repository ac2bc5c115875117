"""A table whose state files hold anything, beside a sound one: it is optimized, and breaks no view over all tables."""

import json
import logging

import pytest
from fake_clock import FakeClock
from service_fakes import MINUTE
from tables import NUMBERS, numbers

import sql_ext
from catalog.clock import SYSTEM_CLOCK
from catalog.history.event_rows import committed_events, history_of
from catalog.history.event_store import RECONCILED_FILE, reconcile
from catalog.history.events import EVENT_KEY, EVENTS_FOLDER, LISTS_FOLDER, OPERATION
from catalog.jvm.log_probe import Question
from catalog.state.automation import Automation
from catalog.state.lease import LEASE_FILE, read_lease
from catalog.state.suspension import SUSPENSION_FILE
from procedures.process.application import application
from procedures.service.service import Service
from procedures.service.watched_tables import SparkTables

SUMMARY = "use_catalog.system_lake_tables.metastore_summary"
OF_ALL = "use_catalog.system_lake_tables.optimizations"
AUTOMATIC = {"use.optimization.type": "UnindexedFiles"}
FAR = 8_000_000_000_000_000


def _event(**odd):
    return json.dumps(
        {"write_id": "w", "state": "committed", "started_at": 1, "finished_at": 2, "table_id": "t", "kind": "optimize"}
        | odd
    )


def _damage(table):
    """Fills the state folder with what a reader must survive."""
    folder, table_id = table.path / "_use", table.managed.snapshot().table_id
    for name in (EVENTS_FOLDER, LISTS_FOLDER):
        (folder / name).mkdir(parents=True, exist_ok=True)
    lease = {"run_id": "r", "holder": "h", "trigger": "call", "acquired_at": 1, "expires_at": None}
    events = {
        "1-null.json": "null",
        "2-deep.json": "[" * 50_000,
        "3-binary.json": "\x00\x01",
        "4-half.json": _event(table_id=table_id)[:-9],
        "5-types.json": _event(table_id=table_id, write_id="types", started_at="x", version=1e300, parameters=[1]),
        "6-far.json": _event(table_id=table_id, write_id="far", started_at=FAR, finished_at=FAR),
        "7-bytes.json": "\n".join(
            _event(table_id=table_id, write_id=f"bytes{n}", output_files_stats={"bytes": 2**63 - 1}, table_bytes=1)
            for n in range(3)
        ),
        "8-lists.json": _event(table_id=table_id, write_id="lists", input_files_stats={"files": "x", "num_files": []}),
        "9-strange.json": _event(
            table_id=table_id, write_id="strange", finished_at=-5, error="\ud800", unknown={"a": 1}
        ),
        f"{FAR}-newest.json": _event(table_id=table_id, finished_at="tomorrow", state="failed", error=[1]),
        "9-x.parts": '{"merged_at": 1e999, "parts": 7}',
    }
    for name, text in events.items():
        (folder / EVENTS_FOLDER / name).write_text(text, encoding="utf-8")
    (folder / EVENTS_FOLDER / "10-folder.json").mkdir()
    (folder / LISTS_FOLDER / f"{'0' * 32}.json").write_text('{"write_id": ["lists"]}')
    (folder / RECONCILED_FILE).write_text('{"table_id": null, "version": 1e999}')
    (folder / LEASE_FILE).write_text(json.dumps(lease))


@pytest.mark.slow
def test_one_sick_table_beside_a_sound_one(spark, new_table, set_conf, caplog):
    caplog.set_level(logging.WARNING)
    sick, sound = (
        new_table(NUMBERS, index="x,y", cube_size=200, properties=AUTOMATIC).append(numbers(spark, 200))
        for _ in range(2)
    )
    names = [t.name.removeprefix("default.") for t in (sick, sound)]
    full_name = sick.managed.name
    _damage(sick)
    # Another writer's commit that looks like ours, with half an event in it.
    sick.append(numbers(spark, 10, start=200))
    log = sick.path / "_delta_log" / f"{sick.version:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    info = next(a["commitInfo"] for a in actions if "commitInfo" in a)
    info |= {"operation": OPERATION, "operationParameters": {"event": '{"write_id": "theirs", "started_at": "x"}'}}
    log.write_text("\n".join(map(json.dumps, actions)) + "\n")
    (log.parent / f".{log.name}.crc").unlink(missing_ok=True)

    def views():
        summary = {r.name: r for r in spark.table(SUMMARY).collect() if r.name in names}
        history = [r for r in spark.table(OF_ALL).collect() if r["table"] == full_name]
        statuses = {r.table: r for r in spark.sql("CALL use.status(details => true)").collect()}
        return summary, history, statuses

    summary, history, _ = views()
    # The newest event that can be read says that it failed, and not why.
    assert [summary[name].last_error for name in names] == ["the last optimization failed", None]
    assert summary[names[0]].last_run is None
    assert [summary[name].state for name in names] == ["scheduled", "scheduled"]
    shown = {r.write_id: r for r in history}
    assert shown.keys() == {"types", "far", "bytes0", "bytes1", "bytes2", "lists", "strange", "theirs", "w"}
    assert (shown["far"].started_at, shown["far"].started_time) == (FAR, None)
    assert [r.write_id for r in sick.sql("SELECT write_id FROM {t}.optimizations WHERE started_time IS NULL")]
    (status,) = sql_ext.call(spark, "status", table=sick.name, details=True).collect()
    assert (status.state, status.lease_holder) == ("idle", None)

    # A lease of a clock that is centuries ahead.
    ahead = {"run_id": "r", "holder": "h", "trigger": "call", "acquired_at": 1, "expires_at": FAR // 1000}
    (sick.path / "_use" / LEASE_FILE).write_text(json.dumps(ahead))
    assert {r.state for r in sick.optimize(strategy="UnindexedFiles")} == {"committed"}
    assert sick.managed.read_state(LEASE_FILE) is None
    assert not sick.unindexed
    reconcile(sick.managed)
    assert json.loads(sick.managed.read_state(RECONCILED_FILE))["version"] == sick.version
    assert sum(LEASE_FILE in message for message in caplog.messages) == 1

    # Folders in the places of the files, and a suspension that nobody can read.
    sick.append(numbers(spark, 10, start=300))
    for name in (LEASE_FILE, SUSPENSION_FILE):
        (sick.path / "_use" / name).mkdir()
    assert {r.state for r in sick.optimize(strategy="UnindexedFiles")} == {"committed"}
    assert read_lease(sick.managed) is None
    set_conf("spark.qbeast.use.service.enabled", "true")
    service = Service(spark, clock=FakeClock())
    try:
        sick.append(numbers(spark, 10, start=400))
        service.tick()
        assert service.join(120)
        assert len(sick.unindexed) == 1
        assert not sound.unindexed
        summary, _, statuses = views()
        assert [summary[name].state for name in names] == ["suspended", "scheduled"]
        assert "suspended.json cannot be read" in summary[names[0]].message
        assert statuses[full_name].state == "suspended"
        sql_ext.call(spark, "resume", table=sick.name)
        service._clock.go_on(11 * MINUTE)
        service.tick()
        assert service.join(120)
        assert not sick.unindexed
    finally:
        service.stop()
    assert not application().automations.all()

    # What cannot be looked at at all has its error in its row.
    log = sick.path / "_delta_log" / f"{sick.version + 1:020d}.json"
    log.write_text("no JSON\n")
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    application().automations.put(Automation(full_name, str(sick.path), "scheduled"))
    try:
        summary, (row,), statuses = views()
    finally:
        application().automations.remove(str(sick.path))
        log.unlink()
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    assert summary[names[0]].last_error
    assert summary[names[1]].last_error is None
    assert (row.state, row.write_id, row.started_time) == ("unreadable", None, None)
    assert row.error_code.startswith("USE_")
    assert row.error == summary[names[0]].last_error == statuses[full_name].last_error
    assert statuses[full_name].state == "failed"


def test_commits_of_other_writers_that_look_like_ours(spark):
    sound = {"write_id": "sound", "table_id": "t", "started_at": 5, "finished_at": 9, "table_bytes": 2}
    texts = {
        "sound": json.dumps(sound | {"output_files_stats": {"bytes": 4}}),
        "types": json.dumps({"write_id": "types", "table_id": None, "started_at": "x", "parameters": 7, "more": {}}),
        "huge": '{"write_id": "huge", "started_at": 1e400, "finished_at": -9223372036854775809, "table_bytes": 0}',
        "half": json.dumps(sound)[:-3],
        "deep": '{"write_id":' + "[" * 5000 + "]" * 5000 + "}",
        "list": "[]",
        "empty": "",
        "nobody": "{}",
    }
    rows = [(n, OPERATION, {EVENT_KEY: text, "other": None}) for n, text in enumerate(texts.values())]
    rows += [(97, OPERATION, {"other": "{}"}), (98, OPERATION, None), (99, "WRITE", {EVENT_KEY: texts["sound"]})]
    history = spark.createDataFrame(rows, "version bigint, operation string, operationParameters map<string,string>")
    shown = {r.write_id: r for r in history_of(committed_events(history)).collect()}
    assert {"sound", "types"} <= shown.keys() <= {"sound", "types", "huge", "half"}
    assert (shown["sound"].write_amplification, shown["sound"].started_time.timestamp()) == (2.0, 0.005)
    assert (shown["types"].started_at, shown["types"].started_time, shown["types"].table_id) == (None, None, None)


def test_the_service_names_a_table_without_a_file_system_once(spark, caplog):
    looked = SparkTables(spark)
    far = looked.add("far", "nowhere://x/y")
    questions = [Question(far), Question(looked.add("near", "/tmp/near"))]
    states = [[seen.state for seen in looked.look(questions)] for _ in range(2)]
    assert states == [["failed", "missing"]] * 2
    assert sum("nowhere://x/y" in message for message in caplog.messages) == 1


@pytest.mark.slow
def test_a_manual_trigger_that_finds_nothing_leaves_a_row(spark, new_table, monkeypatch):
    from procedures.service import manual

    table = new_table("a BIGINT", index="a", properties={})
    table.append(spark.range(20).selectExpr("id a")).index()
    now = {"use.optimization.type": "LeveledCompaction"}
    before = table.version
    for _ in range(2):
        assert manual.trigger(spark, table.name, now, spawn=lambda _, work: work()).run_id
    assert table.version == before
    rows = table.sql("SELECT * FROM {t}.optimizations WHERE state = 'ignored'")
    assert [(r.reason, r.trigger, r.optimization_name) for r in rows] == [
        ("NOTHING_TO_DO", "manual", "LeveledCompaction")
    ] * 2
    assert {(r.input_files_stats, r.output_files_stats, r.version) for r in rows} == {(None, None, None)}
    (row,) = table.sql("SELECT * FROM {t}.optimizations WHERE state = 'committed'")
    for at, time in ((row.started_at, row.started_time), (row.finished_at, row.finished_time)):
        assert SYSTEM_CLOCK.now() - 600_000 < at == round(time.timestamp() * 1000)
    of_all = spark.sql(f"SELECT unix_millis(started_time) m FROM {OF_ALL} WHERE write_id = '{row.write_id}'").collect()
    assert [r.m for r in of_all] == [row.started_at]
