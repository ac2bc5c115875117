"""The lease on a table, without Spark; times are epoch milliseconds of an injected clock."""

from pathlib import Path

import pytest
from fake_clock import LimitedClock
from folders import FolderHandle, RecordingHandle, folder_table

from catalog.state import lease
from catalog.state.lease import (
    LEASE_FILE,
    LEASE_MILLIS,
    Acquired,
    HeldBy,
    Lease,
    acquire,
    holder_of,
    leases_of,
    read_lease,
    renewed,
    this_process,
)

NOW = 1_000_000


@pytest.fixture
def table(tmp_path):
    return folder_table(tmp_path)


def test_a_free_table_is_taken_and_says_by_whom(table):
    assert holder_of(table, NOW) is None
    assert acquire(table, "a", "call", NOW) == Acquired()
    held = read_lease(table)
    assert (held.run_id, held.holder, held.trigger) == ("a", this_process(), "call")
    assert (held.acquired_at, held.expires_at) == (NOW, NOW + LEASE_MILLIS)


def test_a_held_one_is_in_the_way_until_it_expires(table):
    acquire(table, "a", "call", NOW)
    last = NOW + LEASE_MILLIS - 1
    assert acquire(table, "b", "automatic", last) == HeldBy(read_lease(table))
    assert read_lease(table).run_id == "a"
    assert acquire(table, "b", "automatic", last + 1) == Acquired()
    assert read_lease(table).run_id == "b"


def test_the_holder_is_not_in_its_own_way(table):
    acquire(table, "a", "call", NOW)
    assert acquire(table, "a", "call", NOW + 5) == Acquired()
    assert read_lease(table).expires_at == NOW + 5 + LEASE_MILLIS


@pytest.mark.parametrize("text", ["", '{"run_id": "x", "hol', '{"other": 1}', "[]"])
def test_a_half_written_or_foreign_one_is_taken_over(table, text):
    table.write_state(LEASE_FILE, text)
    assert holder_of(table, NOW) is None
    assert acquire(table, "a", "call", NOW) == Acquired()
    assert read_lease(table).run_id == "a"


class Interleaved(FolderHandle):
    """Lets another run take the lease just before, or just after, the file is created."""

    def __init__(self, root, before):
        super().__init__(root)
        self.before, self.other = before, folder_table(root)

    def create_text(self, file, text):
        if self.before:
            acquire(self.other, "other", "call", NOW)
            return super().create_text(file, text)
        created = super().create_text(file, text)
        self.other.delete_state(LEASE_FILE)
        acquire(self.other, "other", "call", NOW)
        return created


@pytest.mark.parametrize("before", [True, False])
def test_of_two_at_once_one_has_it(tmp_path, before):
    table = folder_table(tmp_path, Interleaved(tmp_path, before))
    assert acquire(table, "a", "call", NOW).lease.run_id == "other"
    assert read_lease(table).run_id == "other"


class ReleasedMeanwhile(FolderHandle):
    """A run takes the lease and releases it while another one finds out who has it, and a third run takes it."""

    taken = False

    def create_text(self, file, text):
        if not self.taken:
            self.taken = True
            acquire(folder_table(self.root), "first", "call", NOW)
        return super().create_text(file, text)

    def read_text(self, file):
        if '"first"' not in (super().read_text(file) or ""):
            return super().read_text(file)
        self.delete(file)
        acquire(folder_table(self.root), "third", "call", NOW)
        return None


def test_one_that_was_released_and_taken_is_not_overwritten(tmp_path):
    table = folder_table(tmp_path, ReleasedMeanwhile(tmp_path))
    assert acquire(table, "a", "call", NOW).lease.run_id == "third"
    assert read_lease(table).run_id == "third"


def test_it_is_renewed_three_times_in_its_time_and_released(table):
    clock = LimitedClock(NOW, waits=4)
    acquire(table, "a", "call", NOW)
    with renewed(table, "a", "call", clock):
        assert clock.waits_over.wait(60)
        held = read_lease(table)
        assert (held.run_id, held.acquired_at) == ("a", NOW)
        assert held.expires_at == clock.now() + LEASE_MILLIS == NOW + 4 * LEASE_MILLIS // 3 + LEASE_MILLIS
    assert table.read_state(LEASE_FILE) is None


def test_one_that_another_run_took_over_is_left_to_it(table):
    theirs = lease.Lease("b", "elsewhere:1", "automatic", NOW, NOW + LEASE_MILLIS).to_json()
    clock = LimitedClock(NOW, waits=2)
    table.write_state(LEASE_FILE, theirs)
    with renewed(table, "a", "call", clock):
        assert clock.waits_over.wait(60)
        assert table.read_state(LEASE_FILE) == theirs
    assert table.read_state(LEASE_FILE) == theirs


def test_one_that_expired_in_other_hands_is_taken_back(table):
    clock = LimitedClock(NOW, waits=4)
    table.write_state(LEASE_FILE, lease.Lease("b", "elsewhere:1", "automatic", NOW, NOW + 1).to_json())
    with renewed(table, "a", "call", clock):
        assert clock.waits_over.wait(60)
        assert read_lease(table).run_id == "a"
    assert table.read_state(LEASE_FILE) is None


# ------------------------------------------------------------------------------------------------- leases of a plan


def test_runs_of_one_plan_share_the_lease_and_keep_others_off(table):
    assert acquire(table, "a", "call", NOW, "00000000000a") == Acquired()
    assert acquire(table, "b", "cli", NOW + 1, "00000000000a") == Acquired()
    assert read_lease(table).plan == "00000000000a"
    for plan in (None, "00000000000b"):
        assert isinstance(acquire(table, "c", "call", NOW + 2, plan), HeldBy)
    assert table.list_state("plans/00000000000a/runs") == ["a.json", "b.json"]
    assert table.list_state("plans/00000000000b/runs") == []


def test_a_lease_without_a_plan_keeps_plans_off(table):
    acquire(table, "a", "call", NOW)
    assert acquire(table, "b", "call", NOW, "00000000000a").lease.run_id == "a"
    assert table.list_state("plans/00000000000a/runs") == []


def _ended(table, run):
    """The run ends after one renewal."""
    clock = LimitedClock(NOW, waits=1)
    with renewed(table, run, "call", clock, "00000000000a"):
        assert clock.waits_over.wait(60)


def test_the_run_that_ends_hands_the_lease_over_and_the_last_one_deletes_it(table):
    for run in ("b", "a"):
        acquire(table, run, "call", NOW, "00000000000a")
    assert read_lease(table).run_id == "a"
    _ended(table, "a")
    held = holder_of(table, NOW)
    assert (held.run_id, held.plan) == ("b", "00000000000a")
    assert table.list_state("plans/00000000000a/runs") == ["b.json"]
    _ended(table, "b")
    assert table.read_state(LEASE_FILE) is None


class EndsAtOnce(FolderHandle):
    """The run that is given the lease has ended just before it is written."""

    def write_text(self, file, text):
        if file.endswith(LEASE_FILE) and '"run_id":"b"' in text:
            self.delete("_use/plans/00000000000a/runs/b.json")
        super().write_text(file, text)


@pytest.mark.parametrize("others", ["b", "bc"])
def test_a_run_that_has_ended_is_not_given_the_lease(tmp_path, others):
    for run in (*others, "a"):
        acquire(folder_table(tmp_path), run, "call", NOW, "00000000000a")
    table = folder_table(tmp_path, EndsAtOnce(tmp_path))
    _ended(table, "a")
    held = holder_of(table, NOW)
    assert held is None if others == "b" else held.run_id == "c"


class JoinsMeanwhile(FolderHandle):
    """A run of the plan takes the lease between the last look at the runs and the deletion of the lease."""

    def delete(self, file):
        if file.endswith(LEASE_FILE):
            acquire(folder_table(self.root), "late", "call", NOW, "00000000000a")
        super().delete(file)


def test_a_run_that_joins_while_the_lease_is_released_keeps_it(tmp_path):
    acquire(folder_table(tmp_path), "a", "call", NOW, "00000000000a")
    _ended(folder_table(tmp_path, JoinsMeanwhile(tmp_path)), "a")
    assert acquire(folder_table(tmp_path), "other", "call", NOW).lease.run_id == "late"


def test_a_run_that_was_killed_does_not_keep_the_lease(table):
    acquire(table, "killed", "call", NOW, "00000000000a")
    clock = LimitedClock(NOW + LEASE_MILLIS + 1, waits=1)
    acquire(table, "a", "call", clock.now(), "00000000000a")
    with renewed(table, "a", "call", clock, "00000000000a"):
        assert clock.waits_over.wait(60)
    assert table.read_state(LEASE_FILE) is None


@pytest.mark.parametrize(
    "plan", ["../../../other/_use/plans/x", "..", "/etc", "file:/etc", "a/b", "", "x" * 65, "a\nb"]
)
def test_the_plan_of_a_lease_leads_nowhere_else(plan):
    """Whoever can write the file names the folder in which further leases are looked for."""
    text = Lease("a", "h:1", "call", NOW, NOW + LEASE_MILLIS, plan).to_json()
    handle = RecordingHandle({f"_use/{LEASE_FILE}": text})
    (found,) = leases_of(folder_table(Path("/t"), handle), NOW)
    assert (found.run_id, found.plan) == ("a", None)
    assert handle.asked == {f"_use/{LEASE_FILE}"}
