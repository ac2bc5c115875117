"""What the commits of statements say, added up."""

import json

from hypothesis import given
from hypothesis import strategies as st

from catalog.insights.recent_statements import LoggedStatement, may_repeat
from catalog.insights.statement_notes import STATEMENT_TAG, StatementNotes


def tag(repeats=0, **plain_files):
    return json.dumps({"repeats": repeats, "plain_files": plain_files})


def test_notes_are_added_up():
    notes = StatementNotes.of([tag(), tag(2), tag(1, B=3), tag(0, A=1, B=4)])
    assert (notes.statements, notes.repeated, notes.plain_total) == (4, 2, 8)
    assert notes.plain_files == {"A": 1, "B": 7}
    assert notes.reasons == "A 1, B 7"


def test_errors_of_keys_are_added_up():
    notes = StatementNotes.of([tag(), *(json.dumps({"keys_error": code}) for code in ("B", "A", "B", 7, None))])
    assert (notes.statements, notes.key_errors_total) == (6, 3)
    assert notes.key_error_codes == "A 1, B 2"


def test_no_notes():
    notes = StatementNotes.of([])
    assert (notes.statements, notes.repeated, notes.plain_total, notes.reasons) == (0, 0, 0, "")


@given(st.lists(st.one_of(st.text(), st.recursive(st.integers() | st.text(), st.lists).map(json.dumps))))
def test_unreadable_notes_count_as_statements(texts):
    notes = StatementNotes.of(texts)
    assert notes.statements == len(texts)
    assert notes.repeated == 0


def test_statements_that_run_again_need_no_quiet_period():
    info = {"operation": "MERGE", "isBlindAppend": False}
    assert may_repeat(info)
    assert not may_repeat({**info, "tags": {STATEMENT_TAG: tag()}})
    assert may_repeat({**info, "tags": {"delta.rowTracking.preserved": "true"}})
    removed = json.dumps({"remove": {"path": "a", "dataChange": True}})
    logged = "\n".join([json.dumps({"commitInfo": {**info, "tags": {STATEMENT_TAG: tag()}}}), removed])
    assert LoggedStatement.of(logged) is None


def test_notes_of_any_number_or_depth_add_up_to_a_number_of_sql():
    texts = [tag(10**400, A=2**62), tag(-1, A=-5), tag(True, A=2**31 - 1), '{"plain_files": ' + "[" * 100_000]
    notes = StatementNotes.of(texts)
    assert (notes.statements, notes.repeated, notes.plain_total) == (4, 1, 2**31 - 1)
