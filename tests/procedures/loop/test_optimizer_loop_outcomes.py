"""The loop of ``optimize`` over fakes: conflicts, failures, leases and what is counted. No Spark, no file."""

import json
import threading
from types import SimpleNamespace

import pytest
from fake_clock import FakeClock, LimitedClock
from folders import memory_table
from hypothesis import given, settings
from hypothesis import strategies as st
from optimizer_fakes import COMMITTED, FAILED, FakeOptimizer, committed, conflict, input_file, is_group, lost, outcome

from catalog.errors import CommitUnknownError, UseError
from catalog.history.events import EVENTS_FOLDER, event_without_commit
from catalog.state.lease import Acquired, HeldBy
from catalog.table.managed_table import ManagedTable
from procedures.declare.runs import Run
from procedures.groups.group import Relayout, SkippedGroup
from procedures.loop import table_optimizer as engine
from procedures.loop.optimizer import MAX_CONFLICTS_IN_A_ROW
from procedures.loop.report import planned_row

TOO_SMALL = SkippedGroup("LeveledCompaction", "BYTES_PER_ITER_TOO_SMALL", 2, 100, "level 1 needs 100 bytes")


# ------------------------------------------------------------------------------------------------------------ conflicts


def once(action):
    """Acts at the first call only."""
    calls = []

    def act(group):
        calls.append(group)
        if len(calls) == 1:
            action(group)

    return act


def test_a_conflict_is_planned_again():
    fake = FakeOptimizer(sizes=(5,))
    fake.table.during_rewrite = once(conflict)
    report = fake.optimize()
    assert outcome(report) == [lost(1), committed(2)]
    assert (report[0].version, report[0].rows, report[0].message) == (None, 0, "staged")
    assert fake.table.events == [(FAILED, ("f0",), "USE_CONCURRENT_CHANGE"), (COMMITTED, ("f0",), None)]
    assert fake.progress.done_bytes == [5, 5]


def test_after_a_conflict_batches_are_halved_until_a_commit():
    fake = FakeOptimizer()
    fake.table.batch_bytes = 100
    attempts = []

    def twice(group):
        attempts.append(len(group.files))
        if len(attempts) <= 2:
            conflict()

    fake.table.during_rewrite = twice
    assert outcome(fake.optimize()) == [lost(1), lost(2), committed(3), committed(4)]
    assert [request.batch_bytes for request in fake.table.requests] == [None, 20, 10, None, None]
    assert attempts == [4, 2, 1, 3]


def test_a_batch_has_at_least_one_byte():
    fake = FakeOptimizer(sizes=(1,))
    fake.table.during_rewrite = once(conflict)
    fake.optimize()
    assert fake.table.requests[1].batch_bytes == 1


def test_the_smallest_group_is_halved():
    fake = FakeOptimizer(sizes=(40, 8, 20), parallelism=3)
    seen = []

    def first_round(group):
        seen.append(group)
        if len(seen) <= 3:
            conflict()

    fake.table.during_rewrite = first_round
    fake.optimize()
    assert fake.table.requests[1].batch_bytes == 4


def test_constant_conflicts_end_the_run():
    fake = FakeOptimizer()
    fake.table.during_rewrite = conflict
    report = fake.optimize()
    assert MAX_CONFLICTS_IN_A_ROW == 5
    assert outcome(report) == [lost(i) for i in range(1, 6)]
    assert fake.steps[-1] == "release"


def test_a_commit_between_conflicts_starts_the_count_again():
    fake = FakeOptimizer(sizes=[10] * 3)
    attempts = []

    def mostly(_):
        attempts.append(1)
        if len(attempts) % 5:
            conflict()

    fake.table.during_rewrite = mostly
    report = fake.optimize()
    assert [row.state for row in report] == ([FAILED] * 4 + [COMMITTED]) * 3


def test_only_the_group_with_the_conflict_is_planned_again():
    fake = FakeOptimizer(sizes=(5, 6, 7), parallelism=3)
    fake.table.during_rewrite = lambda group: (
        conflict() if fake.table.rewritten.count(("f1",)) == 1 and is_group(group, "f1") else None
    )
    report = fake.optimize()
    assert outcome(report) == [committed(1), lost(1), committed(1), committed(2)]
    # One group was committed: batches stay as they are.
    assert fake.table.requests[1].batch_bytes is None
    assert fake.table.rewritten[-1] == ("f1",)


# ------------------------------------------------------------------------------------------------------------- failures


def test_a_failure_lets_the_other_groups_end_and_is_raised():
    fake = FakeOptimizer(sizes=(5, 6), parallelism=2)
    failed = threading.Event()

    def fail(group):
        if is_group(group, "f1"):
            failed.set()
            raise KeyError("staged")
        assert failed.wait(60)

    fake.table.during_rewrite = fail
    with pytest.raises(KeyError, match="staged"):
        fake.optimize()
    assert sorted(fake.table.events) == [(COMMITTED, ("f0",), None), (FAILED, ("f1",), "USE_INTERNAL")]
    assert fake.run.committed == 1
    assert fake.runs.live() == []
    assert fake.steps[-1] == "release"


@pytest.mark.parametrize(("before", "text"), [(0, "broken."), (2, "broken. 2 groups were committed before.")])
def test_an_error_of_ours_says_what_was_committed_before(before, text):
    fake = FakeOptimizer()

    def fail(_):
        if fake.run.committed == before:
            raise UseError("broken.")

    fake.table.during_rewrite = fail
    with pytest.raises(UseError) as raised:
        fake.optimize()
    assert raised.value.message == text


def test_a_commit_of_unknown_outcome_is_an_event_and_an_error():
    fake = FakeOptimizer()

    def unknown(_):
        raise CommitUnknownError("who knows", write_id="w")

    fake.table.during_rewrite = unknown
    with pytest.raises(CommitUnknownError):
        fake.optimize()
    assert fake.table.events == [(FAILED, ("f0",), "USE_COMMIT_UNKNOWN")]


def test_a_failure_counts_more_than_a_conflict_beside_it():
    fake = FakeOptimizer(parallelism=2)

    def both(group):
        if is_group(group, "f0"):
            raise UseError("broken.")
        conflict()

    fake.table.during_rewrite = both
    with pytest.raises(UseError, match="broken"):
        fake.optimize()


def test_a_folder_that_cannot_be_written_ends_the_run_before_the_lease():
    fake = FakeOptimizer()

    def denied():
        raise UseError("denied", code="USE_WRITE_DENIED")

    fake.table.check_writable = denied
    with pytest.raises(UseError, match="denied"):
        fake.optimize()
    assert "acquire" not in fake.steps
    assert fake.table.rewritten == []


# --------------------------------------------------------------------------------------------------------------- leases


def test_a_held_lease_ends_the_run_before_it_plans():
    fake = FakeOptimizer()
    fake.lease.other = fake.lease_of_another(seconds=30)
    (row,) = fake.optimize()
    assert (row.iteration, row.state, row.reason, row.version) == (0, "skipped", "LEASE_HELD", None)
    assert row.message == "elsewhere:7 optimizes the table in run r2 (automatic); its lease ends in 30 s"
    assert fake.steps == ["look at the lease"]


def test_a_lease_that_is_taken_meanwhile_ends_the_run_before_it_rewrites():
    fake = FakeOptimizer()
    fake.table.skipped = (TOO_SMALL,)

    def taken(_):
        fake.lease.other = fake.lease_of_another(seconds=10)

    fake.table.during_plan = taken
    report = fake.optimize()
    assert outcome(report) == [(0, "skipped", "LEASE_HELD")]
    assert fake.steps == ["look at the lease", "plan", "check_writable", "acquire"]
    assert fake.table.rewritten == []


def test_the_lease_is_taken_once_and_not_looked_at_again():
    fake = FakeOptimizer()

    def taken(_):
        fake.lease.other = fake.lease_of_another()

    # The renewal notices it; correctness does not depend on the lease.
    fake.table.during_rewrite = taken
    assert outcome(fake.optimize()) == [committed(i) for i in range(1, 5)]
    assert fake.steps.count("acquire") == fake.steps.count("look at the lease") == 1


def test_a_lease_that_cannot_be_stored_does_not_end_the_run():
    fake = FakeOptimizer(sizes=(5,))
    fake.lease.is_stored = False
    assert outcome(fake.optimize()) == [committed(1)]


def test_an_expired_lease_ends_in_no_time():
    fake = FakeOptimizer()
    fake.lease.other = fake.lease_of_another(seconds=-5)
    assert fake.optimize()[0].message.endswith("its lease ends in 0 s")


# ---------------------------------------------------------------------------------------------- the parts of a table


def test_the_events_of_a_table_hold_each_outcome(monkeypatch):
    monkeypatch.setattr(ManagedTable, "snapshot", lambda _: SimpleNamespace(table_id="t"))
    table, run = memory_table({}), Run("t", "/t", "manual", {"a": "b"}, 0)
    events = engine.TableEvents(table, run, FakeClock(5000))
    event = event_without_commit("S", "manual", "R", {}, (1, 2), write_id="one")
    events.committed(SimpleNamespace(event=event, version=9))
    group = Relayout("S", 0, "LEVEL_1", (input_file("f", 10), input_file("g", 7)))
    events.failed(group, 4000, CommitUnknownError("who knows", write_id="two"))
    names = table.list_state(EVENTS_FOLDER)
    first, second = (json.loads(table.read_state(f"{EVENTS_FOLDER}/{name}")) for name in names)
    assert (first["state"], first["version"], first["write_id"]) == ("committed", 9, "one")
    assert (second["state"], second["error_code"], second["write_id"]) == ("failed", "USE_COMMIT_UNKNOWN", "two")
    assert (second["trigger"], second["reason"], second["parameters"]) == ("manual", "LEVEL_1", {"a": "b"})
    assert (second["started_at"], second["finished_at"]) == (4000, 5000)
    assert (second["input_files_stats"]["files"], second["input_files_stats"]["bytes"]) == (["f", "g"], 17)


def test_the_lease_of_a_table_is_that_of_the_run():
    table, clock = memory_table({}), FakeClock(5000)
    mine, other = (engine.TableLease(table, Run("t", "/t", "call", {}, 0), clock) for _ in range(2))
    assert mine.holder() is None
    assert mine.acquire() == Acquired()
    assert mine.holder().run_id == mine.run.run_id
    assert other.acquire() == HeldBy(mine.holder())
    clock = LimitedClock(5000, waits=0)
    with engine.TableLease(table, mine.run, clock).renewed():
        assert other.holder().run_id == mine.run.run_id
    assert other.acquire() == Acquired()


# ----------------------------------------------------------------------------------------------------------- everything


@settings(deadline=None, max_examples=150)
@given(
    sizes=st.lists(st.integers(1, 50), max_size=8),
    fates=st.lists(st.booleans(), max_size=30),
    parallelism=st.integers(1, 4),
    batch=st.integers(1, 60),
    groups=st.none() | st.integers(1, 6),
    size=st.none() | st.integers(1, 150),
)
def test_each_planned_group_is_one_row_and_one_event(sizes, fates, parallelism, batch, groups, size):
    """Whatever conflicts happen: planned = committed + failed, and no file is committed twice."""
    fake = FakeOptimizer(sizes, parallelism=parallelism, groups=groups, bytes=size)
    fake.table.batch_bytes = batch
    left = list(fates)

    def fate(_):
        if left and left.pop():
            conflict()

    fake.table.during_rewrite = fate
    report = fake.optimize()
    states = [row.state for row in report]
    ended = [paths for state, paths, _ in fake.table.events if state == COMMITTED]
    done = [path for paths in ended for path in paths]
    assert len(fake.table.planned) == states.count(COMMITTED) + states.count(FAILED) == len(fake.table.events)
    assert len(ended) == states.count(COMMITTED) == fake.run.committed
    assert len(done) == len(set(done))
    assert set(done).isdisjoint(fake.table.files)
    assert len(done) + len(fake.table.files) == len(sizes)
    assert sum(sizes) - sum(fake.table.files.values()) == fake.run.committed_bytes
    if fake.table.files and report[-1].state != FAILED:
        assert report[-1].reason == "LIMIT_REACHED"
    if groups is not None:
        assert fake.run.committed <= groups
    assert fake.progress.done_bytes.count(0) == 0
    assert sum(fake.progress.done_bytes) == sum(fake.progress.planned_bytes)
    assert fake.runs.live() == []
    assert fake.steps.count("release") == fake.steps.count("acquire")


def test_a_dry_run_names_a_few_files():
    few, many = (
        Relayout("S", 0, "R", tuple(input_file(f"f{n}", 1) for n in range(count)), "why") for count in (3, 1200)
    )
    assert planned_row(1, few, 4).message == "why: f0, f1, f2"
    assert planned_row(1, many, 4).message == "why: f0, f1, f2 and 1,197 more"
