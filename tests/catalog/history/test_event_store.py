"""The files of the event store, without Spark: merging, and finding the newest."""

import json
from types import SimpleNamespace

import pytest
from folders import folder_table

from catalog.history import event_store, recent_events
from catalog.history.event_files import StoredEvent, parse_event
from catalog.history.event_store import MOST_FILES, merge
from catalog.history.events import EVENT_KEY, EVENTS_FOLDER, OPERATION
from catalog.history.recent_events import newest_event
from catalog.state.line_folder import GRACE_MILLIS

NOW = 10_000_000


@pytest.fixture
def table(tmp_path):
    return folder_table(tmp_path)


def _event(number, state="committed", table_id="t"):
    return {"write_id": f"w{number}", "started_at": number, "state": state, "table_id": table_id}


def _put(table, name, *events):
    table.write_state(f"{EVENTS_FOLDER}/{name}", "\n".join(json.dumps(e) for e in events))


def _fill(table, numbers):
    for number in numbers:
        _put(table, f"{number}-w{number}.json", _event(number))


def _stored(table):
    """States of all events by write id, whatever files hold them."""
    found = {}
    for name in table.list_state(EVENTS_FOLDER):
        for event in (recent_events._events_in(table, name) or ()) if name.endswith(".json") else ():
            found.setdefault(event.write_id, set()).add(event.state)
    return found


def _files(table):
    return [n for n in table.list_state(EVENTS_FOLDER) if n.endswith(".json")]


def test_few_files_stay_as_they_are(table):
    _fill(table, range(MOST_FILES))
    before = table.list_state(EVENTS_FOLDER)
    merge(table, NOW)
    assert table.list_state(EVENTS_FOLDER) == before


def test_many_files_become_one_after_a_while_and_nothing_is_lost(table):
    _fill(table, range(250))
    before = _stored(table)
    merge(table, NOW)
    # Whoever listed the folder a moment ago finds every file that he saw.
    assert len(_files(table)) == 251
    merge(table, NOW + 1)
    assert len(_files(table)) == 251
    merge(table, NOW + GRACE_MILLIS)
    assert len(table.list_state(EVENTS_FOLDER)) == 1
    assert _stored(table) == before


def test_what_was_merged_is_merged_again_until_it_is_large(table, monkeypatch):
    _fill(table, range(200))
    merge(table, NOW)
    merge(table, NOW + GRACE_MILLIS)
    _fill(table, range(200, 320))
    monkeypatch.setattr(event_store, "FULL_CHARACTERS", 100)
    merge(table, NOW + 2 * GRACE_MILLIS)
    merge(table, NOW + 3 * GRACE_MILLIS)
    (full,) = _files(table)
    _fill(table, range(400, 520))
    merge(table, NOW + 4 * GRACE_MILLIS)
    merge(table, NOW + 5 * GRACE_MILLIS)
    assert full in _files(table)
    assert len(_files(table)) == 2
    assert set(_stored(table)) == {f"w{n}" for n in (*range(320), *range(400, 520))}


def test_files_that_are_not_events_are_left_alone(table):
    strange = {
        "1-half.json": '{"write_id": "x", "sta',
        "2-foreign.json": '{"a": 1}',
        "note.txt": "hello",
        "3-e.json": "",
    }
    for name, text in strange.items():
        table.write_state(f"{EVENTS_FOLDER}/{name}", text)
    _fill(table, range(10, 200))
    merge(table, NOW)
    merge(table, NOW + GRACE_MILLIS)
    for name, text in strange.items():
        assert table.read_state(f"{EVENTS_FOLDER}/{name}") == text
    assert len(_files(table)) == 4
    assert set(_stored(table)) == {f"w{n}" for n in range(10, 200)}


def test_a_commit_counts_more_than_a_failure_of_the_same_write(table):
    _fill(table, range(150))
    _put(table, "7-unknown.json", _event(7, "failed"))
    _put(table, "9-late.json", _event(500, "failed"))
    _put(table, "501-late.json", _event(500))
    merge(table, NOW)
    merge(table, NOW + GRACE_MILLIS)
    assert len(_files(table)) == 1
    assert _stored(table)["w7"] == _stored(table)["w500"] == {"committed"}


def test_a_crash_between_the_steps_and_two_at_once_only_cost_space(table):
    _fill(table, range(150))
    merge(table, NOW)
    (listing,) = (n for n in table.list_state(EVENTS_FOLDER) if not n.endswith(".json"))
    # As after a crash: merged, and not noted.
    table.delete_state(f"{EVENTS_FOLDER}/{listing}")
    merge(table, NOW + 1)
    assert len(_files(table)) == 152
    merge(table, NOW + 1 + GRACE_MILLIS)
    assert len(_files(table)) == 1
    assert set(_stored(table)) == {f"w{n}" for n in range(150)}


def test_a_listing_that_names_other_files_deletes_none_of_them(table):
    _fill(table, range(150))
    table.write_state("lease.json", "{}")
    evil = {"merged_at": 0, "parts": ["../lease.json", "note.txt"]}
    table.write_state(f"{EVENTS_FOLDER}/note.txt", "hello")
    table.write_state(f"{EVENTS_FOLDER}/5-x.parts", json.dumps(evil))
    merge(table, NOW)
    assert table.read_state("lease.json") == "{}"
    assert table.read_state(f"{EVENTS_FOLDER}/note.txt") == "hello"


def test_the_newest_event(table):
    assert newest_event(table, "t") is None
    _fill(table, (9, 10))
    assert newest_event(table, "t").write_id == "w10"
    _put(table, "11-half.json")
    _put(table, "12-other.json", _event(12, table_id="before"))
    assert newest_event(table, "t").write_id == "w10"
    _fill(table, range(20, 140))
    merge(table, NOW)
    merge(table, NOW + GRACE_MILLIS)
    assert newest_event(table, "t").write_id == "w139"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        '{"commitInfo": 5}',
        '{"commitInfo": {"operation": "WRITE", "operationParameters": {"event": "{}"}}}',
        '{"commitInfo": {"operation": "USE OPTIMIZE"}}',
        '{"commitInfo": {"operation": "USE OPTIMIZE", "operationParameters": {"event": 5}}}',
        '{"commitInfo": {"operation": "USE OPTIMIZE", "operationParameters": {"event": "[1]"}}}',
        '{"add": {"path": "commitInfo"}}',
        "[" * 100_000,
    ],
)
def test_commits_of_other_writers_have_no_event(text, monkeypatch):
    event = json.dumps({"write_id": "w", "started_at": 5, "of a later version": 1})
    ours = {"commitInfo": {"operation": "USE OPTIMIZE", "operationParameters": {"event": event}}}
    commits = {7: text, 8: json.dumps(ours, separators=(",", ":")) + "\n" + text}
    monkeypatch.setattr(event_store, "short_commits", lambda *_: commits)
    lines = event_store._committed_lines(SimpleNamespace(spark=None, location="/t"), 6, 8)
    events = [e for line in lines if isinstance(e := parse_event(line), StoredEvent)]
    assert [(e.write_id, e.state, e.shown["version"]) for e in events] == [("w", "committed", 8)]
    assert json.loads(events[0].line)["of a later version"] == 1


class GrowingLog:
    """The history of a table whose other writers commit before the first look at it, or before each one."""

    def __init__(self, newest, oldest=0, arriving=3, looks=1):
        self.newest, self.oldest, self.arriving, self.looks = newest, oldest, arriving, looks
        self.spark = self.location = None

    def history(self, limit):
        if self.looks:
            self.newest, self.looks = self.newest + self.arriving, self.looks - 1
        versions = range(self.newest, max(self.oldest, self.newest - limit + 1) - 1, -1)
        parameters = {EVENT_KEY: json.dumps({"write_id": "w"})}
        rows = [
            SimpleNamespace(version=v, asDict=lambda: {"operation": OPERATION, "operationParameters": parameters})
            for v in versions
        ]
        return SimpleNamespace(select=lambda *_: SimpleNamespace(collect=lambda: rows))


@pytest.mark.parametrize(
    ("oldest", "arriving", "first"), [(0, 0, 11), (0, 3, 11), (0, 50, 11), (25, 3, 25), (25, 50, 25)]
)
def test_commits_that_arrive_hide_no_event_of_the_log(monkeypatch, oldest, arriving, first):
    monkeypatch.setattr(event_store, "short_commits", lambda *_: None)
    lines = event_store._committed_lines(GrowingLog(40, oldest, arriving), 10, 40)
    assert sorted(json.loads(line)["version"] for line in lines) == list(range(first, 41))


@pytest.mark.parametrize("arriving", [1, 3, 50])
def test_a_writer_without_a_pause_does_not_keep_a_reader_of_the_log(arriving):
    log = GrowingLog(40, arriving=arriving, looks=20)
    assert sorted(event_store._listed_commits(log, 10, 40)) == list(range(11, 41))
    assert log.looks >= 17, "the history was read more than three times"
