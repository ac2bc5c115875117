"""Which stored plans a vacuum deletes, without Spark."""

from dataclasses import asdict

import pytest
from fake_clock import LimitedClock
from folders import folder_table

from catalog.state.lease import LEASE_MILLIS
from catalog.state.plan_claims import DONE, GroupClaims
from catalog.state.plan_expiry import delete_plan, expired_plans
from catalog.state.plan_files import PLANS_FOLDER, StoredGroup, StoredPlan, plan_ids, store_plan

MADE = 1_000_000
DAY = 24 * 60 * 60 * 1000
PLAN = StoredPlan("0" * 12, "t", 1, MADE, 1, 0, ())


@pytest.fixture
def table(tmp_path):
    return folder_table(tmp_path)


def _store(table, **changes):
    groups = [StoredGroup(n, "SMALL", 0, "", (f"f{n}",), ("",), (1,), 1, 1, 1, 1) for n in (1, 2, 3)]
    return store_plan(table, StoredPlan(**{**asdict(PLAN), **changes}), groups)


def _expired(table, now, retention=DAY):
    return [plan.plan_id for plan in expired_plans(table, now - retention, now)]


def test_a_plan_expires_after_the_retention_unless_somebody_has_worked_on_it(table):
    plan = _store(table)
    other = _store(table, plan_id="f" * 12)
    assert _expired(table, MADE + DAY) == []
    worked = MADE + DAY // 2
    for group, is_done in ((3, True), (1, False)):
        claims = GroupClaims(table, plan, "run", "call", LimitedClock(worked, waits=9))
        claims.take(group)
        if is_done:
            claims.finish(group, DONE, 5)
    assert _expired(table, MADE + DAY + 1) == [other.plan_id]
    # A claim counts up to its end, after which any process may take the group.
    assert _expired(table, worked + DAY + LEASE_MILLIS) == [other.plan_id]
    assert _expired(table, worked + DAY + LEASE_MILLIS + 1) == [plan.plan_id, other.plan_id]


def test_a_deletion_leaves_nothing_and_goes_on_after_an_interruption(table, tmp_path, monkeypatch):
    plan = _store(table)
    GroupClaims(table, plan, "run", "call", LimitedClock(MADE, waits=9)).take(2)
    table.write_state(f"{plan.folder}/runs/run.json", "{}")
    now = MADE + 3 * DAY
    (expired,) = expired_plans(table, now - DAY, now)
    delete = type(table).delete_state
    deleted = []

    def interrupted(self, file):
        if len(deleted) == len(expired.files) - 2:
            raise OSError("interrupted")
        deleted.append(file)
        delete(self, file)

    monkeypatch.setattr(type(table), "delete_state", interrupted)
    with pytest.raises(OSError, match="interrupted"):
        delete_plan(table, expired)
    monkeypatch.undo()
    assert plan_ids(table) == [plan.plan_id]
    (expired,) = expired_plans(table, now - DAY, now)
    delete_plan(table, expired)
    assert list((tmp_path / "_use" / PLANS_FOLDER).iterdir()) == []


@pytest.mark.parametrize("writes", [1, 2, 3])
def test_parts_of_a_plan_whose_writing_was_killed_are_deleted(table, tmp_path, monkeypatch, writes):
    """Its marker, its part, and the marker beside a complete plan."""
    write = type(table).write_state
    written = []

    def write_or_die(self, file, text):
        if len(written) == writes:
            raise KeyboardInterrupt
        written.append(file)
        write(self, file, text)

    def die(self, file):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(table), "write_state", write_or_die)
    monkeypatch.setattr(type(table), "delete_state", die)
    with pytest.raises(KeyboardInterrupt):
        _store(table)
    monkeypatch.undo()
    assert len(written) == writes
    now = MADE + DAY
    assert expired_plans(table, MADE, now) == []
    now += 1
    (interrupted, *plans) = reversed(expired_plans(table, now, now))
    assert len(plans) == (writes == 3)
    delete_plan(table, interrupted)
    left = {path.name for path in (tmp_path / "_use" / PLANS_FOLDER).iterdir()}
    assert left == ({PLAN.plan_id, f"{PLAN.plan_id}.json"} if plans else set())
    for plan in plans:
        delete_plan(table, plan)
    assert list((tmp_path / "_use" / PLANS_FOLDER).iterdir()) == []


def test_a_plan_that_cannot_be_read_stays(table):
    plan = _store(table)
    table.write_state(f"{plan.folder}.json", "{")
    assert _expired(table, MADE + 9 * DAY) == []
