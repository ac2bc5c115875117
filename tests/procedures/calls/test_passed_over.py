"""What a run left alone, as its table's status and its events tell it; without Spark."""

import json

import pytest
from service_fakes import MINUTE, FakeService

from catalog.errors import UseError
from catalog.history.events import FileFacts, FilesTotals, event_of_vacuum, event_without_commit
from catalog.state.lease import this_process
from procedures.groups.group import SkippedGroup
from procedures.loop.report import nothing_row, passed_over, skipped_row
from procedures.process.application import application
from procedures.service.execution import note_of

TOO_SMALL = SkippedGroup("LeveledCompaction", "BYTES_PER_ITER_TOO_SMALL", 2, 100, "level 1 needs 100 bytes")
OTHER = SkippedGroup("LeveledCompaction", "BYTES_PER_ITER_TOO_SMALL", 3, 50, "level 2 needs 50 bytes")


@pytest.fixture(autouse=True)
def _clean():
    yield
    for known in application().automations.all():
        application().automations.remove(known.location)


def test_equal_reasons_of_one_strategy_are_one():
    rows = [skipped_row(1, TOO_SMALL, 5), skipped_row(2, OTHER, 6), nothing_row(3, "LIMIT_REACHED", None, "enough")]
    groups, limit = passed_over(rows)
    assert (groups.strategy, groups.reason, groups.groups) == ("LeveledCompaction", "BYTES_PER_ITER_TOO_SMALL", 2)
    assert (groups.files, groups.bytes) == (5, 150)
    assert groups.text == "LeveledCompaction: BYTES_PER_ITER_TOO_SMALL, and 1 more (level 1 needs 100 bytes)"
    assert (limit.strategy, limit.reason, limit.text) == (None, "LIMIT_REACHED", "LIMIT_REACHED (enough)")


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        ([], ""),
        ([nothing_row(1, "NOTHING_TO_DO", 5, "no unindexed files")], ""),
        ([nothing_row(1, "CANCELLED", None, "run x was cancelled")], ""),
        ([nothing_row(0, "LEASE_HELD", None, "h:1 optimizes")], "LEASE_HELD (h:1 optimizes)"),
        (
            [skipped_row(1, TOO_SMALL, 5)],
            "LeveledCompaction: BYTES_PER_ITER_TOO_SMALL (level 1 needs 100 bytes)",
        ),
    ],
)
def test_the_note_of_an_automatic_run(rows, note):
    assert note_of(rows) == note


def test_a_note_has_an_end():
    many = [SkippedGroup(f"Strategy{n}", "REASON", 1, 1, "") for n in range(20)]
    assert note_of([skipped_row(1, group, 5) for group in many]).endswith("Strategy4: REASON; and 15 more reasons")


def test_the_status_of_a_table_says_what_its_last_run_passed_over():
    fake = FakeService()
    place = fake.tables.put("a", {"use.optimization.type": "LeveledCompaction"})
    fake.engine.note = "LeveledCompaction: BYTES_PER_ITER_TOO_SMALL"
    fake.tick()
    assert (
        application().automations.get(place).note == "the last run skipped LeveledCompaction: BYTES_PER_ITER_TOO_SMALL"
    )
    # Nothing changes while the table is idle.
    fake.tick(60 * MINUTE)
    assert "BYTES_PER_ITER_TOO_SMALL" in application().automations.get(place).note
    fake.engine.note = ""
    fake.tables.commit("a")
    fake.tick(60 * MINUTE)
    assert application().automations.get(place).note is None


def test_what_was_not_read_or_written_has_no_statistics():
    event = json.loads(event_without_commit("S", "manual", "R", {}, (1, 2)).commit_json())
    assert (event["input_files_stats"], event["output_files_stats"], event["kind"]) == (None, None, "optimize")
    inputs = FilesTotals.of([FileFacts("f", 10, 5, (), (), -1)])
    event = json.loads(event_without_commit("S", "manual", "R", {}, (1, 2), inputs).commit_json())
    assert event["input_files_stats"] == {
        "num_files": 1,
        "bytes": 10,
        "files": ["f"],
        "file_levels": [-1],
        "element_count": 5,
    }
    event = json.loads(event_of_vacuum("cli", "UNREFERENCED", {}, (1, 2), FilesTotals(3, None), 7).commit_json())
    assert (event["kind"], event["trigger"], event["table_bytes"]) == ("vacuum", "cli", 7)
    assert (event["input_files_stats"]["num_files"], event["input_files_stats"]["bytes"]) == (3, None)


# ------------------------------------------------------------------------- one sick table does not stop the service


def test_a_table_that_cannot_be_asked_for_its_suspension_keeps_nobody_waiting():
    fake = FakeService()
    for name in ("a", "b", "c"):
        fake.tables.put(name, {"use.optimization.type": "UnindexedFiles"})
    suspended = fake.engine.suspended

    def broken(location):
        if location == "file:/b":
            raise UseError("no answer", code="USE_WRITE_DENIED")
        return suspended(location)

    fake.engine.suspended = broken
    assert fake.tick() == ["a", "c"]
    states = {known.table: (known.state, known.last_error) for known in application().automations.all()}
    assert states["b"] == ("failed", "USE_WRITE_DENIED: no answer")
    assert states["a"] == states["c"] == ("scheduled", None)


def test_a_suspension_is_seen_although_another_table_does_not_answer():
    fake = FakeService(at_once=False)
    for name in ("a", "b"):
        fake.tables.put(name, {"use.optimization.type": "UnindexedFiles"})
    fake.tick()
    stopped = []
    fake.engine.during = lambda run: stopped.append((run.table, run.stop_reason))
    fake.engine.is_suspended.add("file:/b")

    def broken(location):
        if location == "file:/a":
            raise OSError("no answer")
        return location in fake.engine.is_suspended

    fake.engine.suspended = broken
    fake.tick(MINUTE)
    fake.threads.run_all()
    assert dict(stopped)["a"] is None
    assert dict(stopped)["b"].code == "SUSPENDED"


def test_news_of_a_table_that_cannot_be_looked_at_loses_none_of_the_others(monkeypatch):
    from procedures.process.running_services import CatalogChange

    fake = FakeService()
    sick, sound = fake.tables.put("sick", {}), fake.tables.put("sound", {"use.optimization.type": "UnindexedFiles"})
    add = fake.tables.add

    def broken(name, location):
        if location == sick:
            raise OSError("no such file system")
        return add(name, location)

    monkeypatch.setattr(fake.tables, "add", broken)
    fake.service.notify(CatalogChange("changed", "sound", sound))
    fake.service.notify(CatalogChange("changed", "sick", sick))
    assert fake.tick(look=False) == ["sound"]


def test_the_process_that_suspended_can_be_read():
    # A lease and a suspension name it, and both refuse what does not print.
    assert this_process().isprintable()
