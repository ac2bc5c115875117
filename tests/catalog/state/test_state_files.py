"""Whatever the files below ``_use/`` hold, reading them gives a value or a coded reason; without Spark.

The clock is injected; times are epoch milliseconds.
"""

import json
import logging

import pytest
from broken_texts import ODD_VALUES, broken_texts
from fake_clock import FakeClock
from folders import folder_table, memory_table
from hypothesis import example, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import AnalysisException

from catalog.epoch_millis import LAST_MILLIS, moment
from catalog.errors import WriteDeniedError
from catalog.history import event_store
from catalog.history.event_files import (
    Marker,
    StoredEvent,
    parse_event,
    parse_events,
    parse_marker,
)
from catalog.history.event_store import RECONCILED_FILE, merge
from catalog.history.events import EVENTS_FOLDER
from catalog.history.recent_events import newest_event
from catalog.state.automation import Automation
from catalog.state.lease import (
    LEASE_FILE,
    LEASE_MILLIS,
    MOST_LEASE_TIMES,
    Acquired,
    HeldBy,
    Lease,
    acquire,
    holder_of,
    parse_lease,
    read_lease,
    renewed,
)
from catalog.state.line_folder import GRACE_MILLIS, MergedParts, parse_parts
from catalog.state.state_files import NOT_ACCESSIBLE, NOT_AN_OBJECT, NOT_JSON, WRONG_FIELD, Unreadable, parse
from catalog.state.suspension import SUSPENSION_FILE, Suspension, parse_suspension, resume, suspend, suspension_of
from procedures.calls.status import status_row

NOW = 1_700_000_000_000
LEASE = {"run_id": "r", "holder": "h:1", "trigger": "call", "acquired_at": NOW, "expires_at": NOW + LEASE_MILLIS}
SUSPENSION = {"since": NOW, "by": "h:1"}
EVENT = {
    "optimization_name": "LeveledCompaction",
    "write_id": "w",
    "table_id": "t",
    "started_at": NOW,
    "finished_at": NOW + 5,
    "state": "failed",
    "kind": "optimize",
    "trigger": "call",
    "reason": "LEVEL_1",
    "version": 3,
    "error": "it broke",
    "error_code": "USE_X",
    "input_files_stats": {"files": ["a"], "num_files": 1},
}
PARTS = {"merged_at": NOW, "parts": ["1-a.json", "2-b.json"]}
MARKER = {"table_id": "t", "version": 7}
CODES = {NOT_ACCESSIBLE, NOT_JSON, NOT_AN_OBJECT, WRONG_FIELD}
FAILURES = st.sampled_from(
    [Py4JError("no\nanswer"), Py4JNetworkError("gone"), AnalysisException("denied"), PermissionError("denied")]
)
many = settings(max_examples=150)


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.WARNING)


def _is_line(text):
    text.encode()
    return text.isprintable()


def _refused(found):
    if isinstance(found, Unreadable):
        assert found.code in CODES
        assert found.detail
        assert _is_line(str(found))
        assert len(str(found)) < 1000
        return True
    return False


# ------------------------------------------------------------------------------------------------------- parsing


@pytest.mark.parametrize(
    ("parsed", "sound", "value"),
    [
        (lambda text: parse_lease(text, NOW), LEASE, Lease(**LEASE)),
        (parse_lease, {**LEASE, "expires_at": LAST_MILLIS}, Lease(**{**LEASE, "expires_at": LAST_MILLIS})),
        (parse_suspension, SUSPENSION, Suspension(NOW, "h:1")),
        (lambda text: parse_parts(text, NOW), PARTS, MergedParts(NOW, ("1-a.json", "2-b.json"))),
        (parse_marker, MARKER, Marker("t", 7)),
    ],
)
def test_a_sound_text_gives_its_value_whatever_else_it_holds(parsed, sound, value):
    assert parsed(json.dumps(sound)) == value
    assert parsed(json.dumps({**sound, "of a later version": [1]})) == value


def test_a_sound_event_keeps_its_line():
    line = json.dumps({**EVENT, "of a later version": [1]})
    event = parse_event(line)
    assert (event.line, event.write_id, event.state, event.started_at, event.table_id) == (
        line,
        "w",
        "failed",
        NOW,
        "t",
    )
    assert event.shown["error"] == "it broke"
    assert parse_events(f"{line}\n{line}") == [event, event]


@many
@given(broken_texts(LEASE))
@example(json.dumps({**LEASE, "expires_at": None}))
@example(json.dumps({**LEASE, "expires_at": "tomorrow"}))
@example(json.dumps({**LEASE, "expires_at": True}))
def test_leases(text):
    for found in (parse_lease(text, NOW), parse_lease(text)):
        if not _refused(found):
            assert all(_is_line(word) for word in (found.run_id, found.holder, found.trigger))
            assert moment(found.acquired_at)
            assert moment(found.expires_at)
    found = parse_lease(text, NOW)
    assert isinstance(found, Unreadable) or found.expires_at <= NOW + MOST_LEASE_TIMES * LEASE_MILLIS


@many
@given(broken_texts(SUSPENSION))
def test_suspensions(text):
    found = parse_suspension(text)
    assert _refused(found) or (moment(found.since) and _is_line(found.by) and _is_line(found.note))


@many
@given(broken_texts(EVENT))
def test_events(text):
    found = parse_event(text)
    if not _refused(found):
        assert found.line == text
        assert found.started_at >= 0
        for value in found.shown.values():
            assert value is None or isinstance(value, int) or _is_line(value)
        assert found.shown["finished_at"] is None or moment(found.shown["finished_at"])
    whole = parse_events(f"{text}\n{json.dumps(EVENT)}")
    assert _refused(whole) or len(whole) >= 2


@many
@given(broken_texts(PARTS), broken_texts(MARKER))
def test_lists_of_parts_and_markers(parts, marker):
    found = parse_parts(parts, NOW)
    assert _refused(found) or (found.merged_at <= NOW and all(map(_is_line, found.parts)))
    found = parse_marker(marker)
    assert _refused(found) or (found.version >= 0 and _is_line(found.table_id))


@given(ODD_VALUES)
def test_moments_are_total(value):
    assert (moment(value) is None) == (
        not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LAST_MILLIS
    )


# ------------------------------------------------------------------------------------------------ a table's state

_texts = st.one_of(broken_texts(LEASE), FAILURES)


@many
@given(_texts)
@example(Py4JError("a folder has this name"))
def test_a_run_never_fails_by_a_lease_and_is_never_blocked_for_long(text):
    table = memory_table({LEASE_FILE: text})
    held = holder_of(table, NOW)
    assert holder_of(table, NOW + (MOST_LEASE_TIMES + 1) * LEASE_MILLIS) is None
    taken = acquire(table, "mine", "call", NOW)
    assert taken == (Acquired(is_stored=not isinstance(text, Exception)) if held is None else HeldBy(held))
    if held is None and not isinstance(text, Exception):
        assert read_lease(table).run_id == "mine"
    with renewed(table, "mine", "call", FakeClock(NOW)):
        pass
    assert status_row("t", "/t", lease=held).state in ("running", "idle")


@many
@given(st.one_of(broken_texts(SUSPENSION), FAILURES))
def test_a_suspension_that_cannot_be_read_suspends(text):
    table = memory_table({SUSPENSION_FILE: text})
    found = suspension_of(table)
    assert found is not None
    assert suspend(table, NOW) == found
    row = status_row("t", "/t", known=Automation("t", "/t", "scheduled", note="a note"), suspension=found)
    assert row.state == "suspended"
    assert row.message.endswith("; a note")
    if isinstance(text, Exception):
        with pytest.raises(WriteDeniedError, match=r"suspended\.json cannot be deleted"):
            resume(table)
    else:
        assert resume(table)
        assert suspension_of(table) is None


@many
@given(st.dictionaries(st.integers(NOW - 10, NOW), st.one_of(broken_texts(EVENT), FAILURES), max_size=10))
def test_the_newest_event_is_one_that_can_be_read(texts):
    files = {f"{EVENTS_FOLDER}/{number}-a.json": text for number, text in texts.items()}
    sound = {f"{EVENTS_FOLDER}/5-sound.json": json.dumps({**EVENT, "write_id": "sound"})}
    found = newest_event(memory_table({**files, **sound}), "t")
    assert isinstance(found, StoredEvent)
    assert found.table_id == "t"


@many
@given(
    st.dictionaries(
        st.tuples(st.integers(0, 20), st.sampled_from(["-w.json", "-merged-x.json", "-full-x.json", ".txt"])),
        st.one_of(broken_texts(EVENT), st.integers(0, 30).map(lambda n: json.dumps({**EVENT, "write_id": f"w{n}"}))),
    ),
    st.dictionaries(st.integers(100, 105).map("{}-merged-y.parts".format), broken_texts(PARTS), max_size=3),
)
def test_merging_loses_no_event_that_can_be_read(events, listings):
    files = {f"{EVENTS_FOLDER}/{number}{kind}": text for (number, kind), text in events.items()}
    table = memory_table({**files, **{f"{EVENTS_FOLDER}/{name}": text for name, text in listings.items()}})
    before = _readable(table)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(event_store, "MOST_FILES", 3)
        for later in range(4):
            merge(table, NOW + later * GRACE_MILLIS)
            assert _readable(table) == before


def _readable(table):
    names = [name for name in table.list_state(EVENTS_FOLDER) if name.endswith(".json")]
    found = [parse_events(table.read_state(f"{EVENTS_FOLDER}/{name}")) for name in names]
    return {event.write_id for events in found if not isinstance(events, Unreadable) for event in events}


def test_a_damaged_merged_file_keeps_its_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(event_store, "MOST_FILES", 3)
    table = folder_table(tmp_path)
    for number in range(10, 20):
        line = json.dumps({**EVENT, "write_id": f"w{number}", "started_at": number})
        table.write_state(f"{EVENTS_FOLDER}/{number}-w{number}.json", line)
    before = _readable(table)
    merge(table, NOW)
    (merged,) = [name for name in table.list_state(EVENTS_FOLDER) if "-merged-" in name and name.endswith(".json")]
    table.write_state(f"{EVENTS_FOLDER}/{merged}", '{"write_id": "w1')
    for later in range(1, 5):
        merge(table, NOW + later * GRACE_MILLIS)
        assert _readable(table) == before


# -------------------------------------------------------------------------------------------------------- warnings


def test_a_warning_is_logged_once_and_again_after_the_file_could_be_read(tmp_path, caplog):
    table = folder_table(tmp_path)
    table.write_state(LEASE_FILE, json.dumps({**LEASE, "expires_at": "tomorrow"}))
    for _ in range(3):
        assert holder_of(table, NOW) is None
    (warning,) = caplog.messages
    assert str(tmp_path / "_use" / LEASE_FILE) in warning
    assert "WRONG_FIELD: 'expires_at' is 'tomorrow', expected a whole number" in warning
    assert "delete the file" in warning
    table.write_state(LEASE_FILE, json.dumps(LEASE))
    assert holder_of(table, NOW).run_id == "r"
    table.write_state(LEASE_FILE, "[]")
    assert holder_of(table, NOW) is None
    assert len(caplog.messages) == 2


def test_a_lease_of_a_clock_far_ahead_blocks_nobody(tmp_path, caplog):
    table = folder_table(tmp_path)
    ahead = {**LEASE, "expires_at": NOW + MOST_LEASE_TIMES * LEASE_MILLIS}
    table.write_state(LEASE_FILE, json.dumps(ahead))
    assert holder_of(table, NOW).run_id == "r"
    table.write_state(LEASE_FILE, json.dumps({**ahead, "expires_at": ahead["expires_at"] + 1}))
    assert holder_of(table, NOW) is None
    assert "compare the clocks" in caplog.messages[0]
    assert acquire(table, "mine", "call", NOW) == Acquired()
    assert read_lease(table).run_id == "mine"


@pytest.mark.parametrize("file", [LEASE_FILE, SUSPENSION_FILE, f"{EVENTS_FOLDER}/5-a.json", RECONCILED_FILE])
def test_a_folder_in_the_place_of_a_file(tmp_path, file):
    table = folder_table(tmp_path)
    place = tmp_path / "_use" / file
    place.mkdir(parents=True)
    assert acquire(table, "mine", "call", NOW) == Acquired(is_stored=file != LEASE_FILE)
    with renewed(table, "mine", "call", FakeClock(NOW)):
        pass
    assert newest_event(table, "t") is None
    assert (suspension_of(table) is not None) == (file == SUSPENSION_FILE)
    if file == SUSPENSION_FILE:
        (place / "x").write_text("")
        with pytest.raises(WriteDeniedError, match="stays suspended"):
            resume(table)
        (place / "x").unlink()
        assert resume(table)
        assert suspension_of(table) is None


def test_a_long_name_of_a_field_is_cut():
    problem = parse("{}", lambda fields: fields.whole_number("n" * 5_000))
    assert isinstance(problem, Unreadable)
    assert len(str(problem)) < 1_000
