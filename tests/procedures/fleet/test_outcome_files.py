"""What is kept of a table's turns: any text is read without an error, and a denied write is none."""

from pathlib import Path

from folders import MemoryHandle, folder_table
from hypothesis import given
from hypothesis import strategies as st

from catalog.state.state_files import Unreadable
from procedures.fleet.outcome_files import MOST_OUTCOMES, TurnRecord, parse_turns, store_turns, turns_of
from procedures.fleet.outcomes import Outcome

numbers = st.floats(0, 1e12)
outcomes = st.builds(
    Outcome, st.integers(0, 10**13), st.integers(0, 10**12), numbers, numbers, numbers, st.none() | numbers
)


@given(st.builds(TurnRecord, st.none() | st.integers(0, 10**13), st.lists(outcomes, max_size=3).map(tuple)))
def test_what_is_stored_is_read(record):
    table = folder_table(Path("/t"), MemoryHandle({}))
    store_turns(table, record)
    assert turns_of(table) == record


@given(st.text(max_size=40) | st.sampled_from(['{"outcomes":[1]}', '{"outcomes":[{"at":1}]}', '{"since":1}', "[]"]))
def test_any_other_text_is_unreadable(text):
    assert isinstance(parse_turns(text), Unreadable)


def test_the_oldest_of_too_many_are_left_out():
    table = folder_table(Path("/t"), MemoryHandle({}))
    store_turns(table, TurnRecord(1, tuple(Outcome(at, 1, 0.0, 0.0, 0.0) for at in range(MOST_OUTCOMES + 5))))
    assert [outcome.at for outcome in turns_of(table).outcomes] == list(range(5, MOST_OUTCOMES + 5))


def test_a_denied_write_is_no_error():
    class Denying(MemoryHandle):
        def write_text(self, file, text):
            raise OSError("denied")

    table = folder_table(Path("/t"), Denying({}))
    store_turns(table, TurnRecord(1))
    assert turns_of(table) == TurnRecord()
