"""Suspending a table, without Spark."""

import pytest
from folders import folder_table

from catalog.state.lease import this_process
from catalog.state.suspension import SUSPENSION_FILE, Suspension, resume, suspend, suspension_of


@pytest.fixture
def table(tmp_path):
    return folder_table(tmp_path)


def test_suspended_until_resumed(table):
    assert suspension_of(table) is None
    assert suspend(table, 5) == suspension_of(table) == Suspension(5, this_process())
    assert resume(table)
    assert suspension_of(table) is None
    assert not resume(table)


def test_the_first_suspension_stays(table):
    suspend(table, 5)
    assert suspend(table, 9).since == 5


@pytest.mark.parametrize("text", ["", "{", '{"since": 1}', "7"])
def test_what_cannot_be_read_suspends_too(table, text):
    table.write_state(SUSPENSION_FILE, text)
    found = suspension_of(table)
    assert (found.since, found.by) == (0, "unknown")
    assert found.problem
    assert "use.resume" in found.note
    assert resume(table)
    assert suspension_of(table) is None
