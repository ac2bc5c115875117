"""Requests to runs of other processes to stop, without Spark."""

import json

import pytest
from fake_clock import LimitedClock
from folders import FolderHandle, folder_table

from catalog.errors import WriteDeniedError
from catalog.state.cancel_requests import CancelRequest, can_be_asked, cancel_request, delete_request, request_cancel
from catalog.state.lease import LEASE_MILLIS, LeasedRun, acquire, holder_of, leases_of, read_lease, renewed

NOW = 1_000_000


@pytest.fixture
def table(tmp_path):
    return folder_table(tmp_path)


class _Run:
    """A run, as its lease sees it."""

    def __init__(self):
        self.progress, self.cancelled = ("planning", 0, 0), []

    @property
    def leased(self):
        return LeasedRun("app-1", lambda: self.progress, self.cancelled.append)


def test_a_request_is_read_by_its_run_alone(table):
    assert cancel_request(table, "a") is None
    request_cancel(table, "a", NOW, "host:1")
    assert cancel_request(table, "a") == CancelRequest(NOW, "host:1")
    assert cancel_request(table, "b") is None
    delete_request(table, "a")
    delete_request(table, "a")
    assert cancel_request(table, "a") is None


def test_a_file_that_cannot_be_parsed_is_a_request(table):
    table.write_state("cancels/a.json", "stop it")
    assert cancel_request(table, "a") == CancelRequest(0, "unknown")


@pytest.mark.parametrize("run_id", ["", "../x", "a/b", "a.json", "x" * 65, "a b"])
def test_an_id_that_is_no_name_of_a_file_is_not_asked(run_id):
    assert not can_be_asked(run_id)
    assert can_be_asked("0f3a-b_C")


def test_a_denied_write_is_an_error(tmp_path):
    class Denied(FolderHandle):
        def write_text(self, file, text):
            raise OSError("read-only")

    with pytest.raises(WriteDeniedError, match=r"cancels/a\.json cannot be written"):
        request_cancel(folder_table(tmp_path, Denied(tmp_path)), "a", NOW, "host:1")


def test_the_lease_shows_the_progress_of_its_run(table):
    run, clock = _Run(), LimitedClock(NOW, waits=1)
    acquire(table, "a", "call", NOW, run=run.leased)
    held = read_lease(table)
    assert (held.application, held.current, held.committed, held.committed_bytes) == ("app-1", "planning", 0, 0)
    run.progress = ("12 files", 3, 500)
    with renewed(table, "a", "call", clock, run=run.leased):
        assert clock.waits_over.wait(60)
        held = holder_of(table, clock.now())
    assert (held.current, held.committed, held.committed_bytes) == ("12 files", 3, 500)
    assert run.cancelled == []


def test_a_run_sees_its_request_when_it_renews_the_lease_and_deletes_it_at_its_end(table):
    run, clock = _Run(), LimitedClock(NOW, waits=2)
    acquire(table, "a", "call", NOW, run=run.leased)
    request_cancel(table, "a", NOW, "host:1")
    request_cancel(table, "crashed", NOW, "host:1")
    with renewed(table, "a", "call", clock, run=run.leased):
        assert clock.waits_over.wait(60)
    assert set(run.cancelled) == {"host:1"}
    assert table.list_state("cancels") == []


def test_a_run_that_lost_its_lease_leaves_the_request_to_the_next_one(table):
    acquire(table, "a", "call", NOW)
    with renewed(table, "a", "call", LimitedClock(NOW, waits=0)):
        acquire(table, "b", "call", NOW + LEASE_MILLIS)
        request_cancel(table, "a", NOW, "host:1")
        request_cancel(table, "b", NOW, "host:2")
    assert read_lease(table).run_id == "b"
    assert table.list_state("cancels") == ["b.json"]


def test_work_that_cannot_be_stopped_looks_for_no_request(table):
    clock = LimitedClock(NOW, waits=1)
    acquire(table, "a", "call", NOW)
    request_cancel(table, "a", NOW, "host:1")
    with renewed(table, "a", "call", clock):
        assert clock.waits_over.wait(60)
        assert read_lease(table).current is None


def test_each_run_of_a_plan_has_its_own_lease_and_request(table):
    first, second, clock = _Run(), _Run(), LimitedClock(NOW, waits=1)
    acquire(table, "a", "call", NOW, "00000000000a", first.leased)
    acquire(table, "b", "call", NOW, "00000000000a", second.leased)
    assert {lease.run_id for lease in leases_of(table, NOW)} == {"a", "b"}
    request_cancel(table, "a", NOW, "host:1")
    request_cancel(table, "b", NOW, "host:2")
    with renewed(table, "a", "call", clock, "00000000000a", first.leased):
        assert clock.waits_over.wait(60)
    assert (first.cancelled, second.cancelled) == (["host:1"], [])
    assert table.list_state("cancels") == ["b.json"]
    assert [lease.run_id for lease in leases_of(table, NOW)] == ["b"]


def test_a_lease_of_an_older_version_has_no_progress(table):
    acquire(table, "a", "call", NOW)
    text = json.loads(table.read_state("lease.json"))
    for name in ("application", "current", "committed", "committed_bytes"):
        del text[name]
    table.write_state("lease.json", json.dumps(text))
    assert (read_lease(table).run_id, read_lease(table).current) == ("a", None)
