"""Claims on the groups of a stored plan, without Spark; times are epoch milliseconds of an injected clock."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from fake_clock import FakeClock, LimitedClock
from folders import FolderHandle, folder_table

from catalog.clock import SYSTEM_CLOCK
from catalog.state.lease import LEASE_FILE, LEASE_MILLIS, Acquired, HeldBy, acquire, renewed
from catalog.state.plan_claims import (
    DONE,
    FAILED,
    RUNNING,
    STALE,
    GroupClaims,
    GroupState,
    parse_state,
    read_group_states,
    state_file,
    takeover_file,
)
from catalog.state.plan_files import StoredPlan
from catalog.state.state_files import Unreadable

NOW = 1_000_000
PLAN = StoredPlan("0" * 12, "t", 1, 1, 1, 9, (1,))
FILE = state_file(PLAN, 1)


@pytest.fixture
def table(tmp_path):
    return folder_table(tmp_path)


def _claims(table, run, clock=None):
    return GroupClaims(table, PLAN, run, "call", clock or LimitedClock(NOW, waits=1))


def test_one_run_has_a_group_until_it_ends(table):
    first, second = _claims(table, "a"), _claims(table, "b")
    assert first.take(1) is None
    assert (second.take(1).run_id, second.take(1).state) == ("a", RUNNING)
    assert second.take(2) is None
    first.finish(1, DONE, 7)
    assert (second.take(1).state, second.take(1).version) == (DONE, 7)
    assert {number: state.state for number, state in read_group_states(table, PLAN).items()} == {1: DONE, 2: RUNNING}


def test_stale_groups_are_taken_again_only_on_request_and_failed_ones_always(table):
    first, second = _claims(table, "a"), _claims(table, "b")
    first.take(1)
    first.finish(1, STALE, reason="gone")
    assert second.take(1).reason == "gone"
    assert second.take(1, again=True) is None
    second.finish(1, FAILED, reason="USE_X")
    assert first.take(1) is None


def test_only_a_run_that_has_the_group_ends_or_releases_it(table):
    first, second = _claims(table, "a"), _claims(table, "b")
    first.take(1)
    second.finish(1, DONE, 3)
    second.release(1)
    assert second.state(1).run_id == "a"
    first.release(1)
    assert table.read_state(FILE) is None
    assert second.take(1) is None


def test_the_claim_of_a_killed_run_expires(table):
    _claims(table, "killed").take(1)
    assert _claims(table, "b", LimitedClock(NOW + LEASE_MILLIS - 1, waits=1)).take(1) is not None
    late = _claims(table, "b", LimitedClock(NOW + LEASE_MILLIS, waits=1))
    assert late.take(1) is None
    # If the first run was only suspended, its renewal does not take the group back.
    assert late.state(1).run_id == "b"


KILLED = """
    import sys, time
    from pathlib import Path

    sys.path.insert(0, {support!r})
    from folders import folder_table
    from test_plan_claims import PLAN
    from catalog.clock import SYSTEM_CLOCK
    from catalog.state.lease import acquire, renewed
    from catalog.state.plan_claims import GroupClaims

    table = folder_table(Path({root!r}))
    claims = GroupClaims(table, PLAN, "killed", "cli", SYSTEM_CLOCK)
    acquire(table, "killed", "cli", SYSTEM_CLOCK.now(), PLAN.plan_id)
    with renewed(table, "killed", "cli", plan=PLAN.plan_id), claims.renewed():
        claims.take(1)
        claims.take(2)
        claims.finish(2, "done", 5)
        print("claimed", flush=True)
        time.sleep(600)
"""


def test_a_process_that_is_killed_leaves_a_lease_and_claims_that_expire(table, tmp_path):
    here = Path(__file__).parents[1]
    code = textwrap.dedent(KILLED).format(support=str(here.parent / "support"), root=str(tmp_path))
    paths = os.pathsep.join((str(here.parents[1]), str(Path(__file__).parent)))
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths}, text=True
    )
    try:
        assert process.stdout.readline() == "claimed\n"
        # The process works: it shares the lease with runs of the plan, and keeps others off.
        now = SYSTEM_CLOCK.now()
        assert isinstance(acquire(table, "other", "call", now), HeldBy)
        assert _claims(table, "a", FakeClock(now)).take(1).run_id == "killed"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    clock = LimitedClock(SYSTEM_CLOCK.now(), waits=0)
    second = _claims(table, "b", clock)
    assert isinstance(acquire(table, "b", "call", clock.now(), PLAN.plan_id), Acquired)
    with renewed(table, "b", "call", clock, PLAN.plan_id), second.renewed():
        assert [getattr(second.take(n), "run_id", None) for n in (1, 2, 3)] == ["killed", "killed", None]
        clock.go_on(LEASE_MILLIS)
        assert [getattr(second.take(n), "state", None) for n in (1, 2)] == [None, DONE]
        second.finish(1, DONE, 6)
        second.finish(3, DONE, 7)
    assert {number: state.version for number, state in read_group_states(table, PLAN).items()} == {1: 6, 2: 5, 3: 7}
    assert table.read_state(LEASE_FILE) is None
    assert isinstance(acquire(table, "other", "call", clock.now()), Acquired)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"state": "finished"}', '{"state": "running", "run_id": 1}'])
def test_damaged_claims_are_replaced(table, text):
    table.write_state(FILE, text)
    assert isinstance(parse_state(text), Unreadable)
    assert _claims(table, "a").take(1) is None


def test_a_claim_that_ends_years_later_is_none(table):
    state = GroupState(RUNNING, "x", "elsewhere:1", "cli", NOW, NOW + 10**10)
    table.write_state(FILE, state.to_json())
    assert _claims(table, "a").take(1) is None


class Late(FolderHandle):
    """Another run takes over an expired claim at the same moment, and writes last."""

    def __init__(self, root):
        super().__init__(root)
        self.other = folder_table(root)

    def write_text(self, file, text):
        super().write_text(file, text)
        if file.endswith(FILE) and json.loads(text)["run_id"] == "a":
            self.other.write_state(FILE, GroupState(RUNNING, "b", "h:1", "cli", NOW, NOW + LEASE_MILLIS).to_json())


def test_of_two_runs_that_take_over_one_has_the_group(tmp_path):
    table = folder_table(tmp_path, Late(tmp_path))
    table.write_state(FILE, GroupState(RUNNING, "killed", "h:2", "cli", 1, 2).to_json())
    claims = _claims(table, "a")
    assert claims.take(1).run_id == "b"
    claims.finish(1, DONE, 1)
    assert claims.state(1).run_id == "b"


class Interleaved(FolderHandle):
    """Another run takes a group just before one of the requests of a run that does the same."""

    def __init__(self, root, before):
        super().__init__(root)
        self.before, self.requests, self.taken_by_other = before, 0, False

    def _request(self):
        if self.requests == self.before:
            self.taken_by_other = _claims(folder_table(self.root), "b").take(1, again=True) is None
        self.requests += 1

    def create_text(self, file, text):
        self._request()
        if (self.root / file).exists():
            return False
        super().write_text(file, text)
        return True

    def write_text(self, file, text):
        self._request()
        super().write_text(file, text)

    def read_text(self, file):
        self._request()
        return super().read_text(file)

    def delete(self, file):
        self._request()
        super().delete(file)


@pytest.mark.parametrize("state", [FAILED, STALE, RUNNING])
def test_of_two_runs_that_take_over_at_any_time_one_has_the_group(tmp_path, state):
    killed_or_ended = GroupState(state, "first", "h:2", "cli", 1, 2)
    for before in range(9):
        root = tmp_path / str(before)
        handle = Interleaved(root, before)
        folder_table(root).write_state(FILE, killed_or_ended.to_json())
        taken = _claims(folder_table(root, handle), "a").take(1, again=True) is None
        assert taken != handle.taken_by_other
        assert _claims(folder_table(root), "c").take(1).run_id == ("a" if taken else "b")
        assert folder_table(root).list_state(f"{PLAN.folder}/groups") == ["1.json"]


def test_a_run_that_was_killed_while_it_took_a_group_over_does_not_keep_others_off(table):
    table.write_state(FILE, GroupState(FAILED, "first", "h:2", "cli", 1, 2, 3).to_json())
    killed = GroupState(RUNNING, "killed", "h:1", "cli", NOW, NOW + LEASE_MILLIS)
    table.write_state(takeover_file(PLAN, 1), killed.to_json())
    assert _claims(table, "a").take(1) == killed
    assert _claims(table, "a", FakeClock(NOW + LEASE_MILLIS)).take(1) is None
    assert table.read_state(takeover_file(PLAN, 1)) is None
    # The answer to the run's own request was lost.
    table.write_state(FILE, GroupState(FAILED, "first", "h:2", "cli", 1, 2, 3).to_json())
    table.write_state(takeover_file(PLAN, 1), replace(killed, run_id="b").to_json())
    assert _claims(table, "b").take(1) is None


class ReleasedMeanwhile(FolderHandle):
    """The run that has a group gives it back while another one finds out who has it, and a third one claims it.

    Args:
        root: of the table.
        late: whether the third one waits until the other one has seen once more that nobody has the group.
    """

    def __init__(self, root, late):
        super().__init__(root)
        self.late, self.taken_by_third = late, False

    def read_text(self, file):
        text = super().read_text(file)
        if not file.endswith(FILE) or (text is not None and '"first"' not in text):
            return text
        self.delete(file)
        if text is None or not self.late:
            self.taken_by_third = _claims(folder_table(self.root), "third").take(1) is None
        return None


@pytest.mark.parametrize("late", [False, True])
def test_a_group_that_was_given_back_and_claimed_is_not_taken(tmp_path, late):
    handle = ReleasedMeanwhile(tmp_path, late)
    assert _claims(folder_table(tmp_path), "first").take(1) is None
    other = _claims(folder_table(tmp_path, handle), "a").take(1)
    assert handle.taken_by_third == (other is not None and other.run_id == "third")
    assert handle.taken_by_third != late


def test_claims_are_renewed_and_what_is_left_is_given_back(table):
    clock = LimitedClock(NOW, waits=4)
    claims = _claims(table, "a", clock)
    claims.take(1)
    claims.take(2)
    claims.finish(2, DONE, 5)
    with claims.renewed():
        assert clock.waits_over.wait(60)
        assert claims.state(1).expires_at == clock.now() + LEASE_MILLIS
        assert claims.state(2).state == DONE
    assert table.read_state(FILE) is None
    assert claims.state(2).version == 5


def test_a_group_that_another_run_took_over_is_left_to_it(table):
    clock = LimitedClock(NOW, waits=2)
    claims = _claims(table, "a", clock)
    claims.take(1)
    theirs = GroupState(RUNNING, "b", "h:1", "cli", NOW, NOW + 2 * LEASE_MILLIS).to_json()
    table.write_state(FILE, theirs)
    with claims.renewed():
        assert clock.waits_over.wait(60)
    assert table.read_state(FILE) == theirs


def test_the_end_of_a_group_is_logged_if_it_cannot_be_stored(table, caplog, monkeypatch):
    claims = _claims(table, "a", FakeClock())

    def refuse(*_):
        raise OSError("read-only")

    claims.take(1)
    monkeypatch.setattr(FolderHandle, "write_text", refuse)
    claims.finish(1, DONE, 1)
    assert "read-only" in caplog.text
