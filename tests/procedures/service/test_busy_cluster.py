"""Runs of the service wait while the cluster has queued tasks of others: clock, engine and catalog are fakes."""

import pytest
from service_fakes import MINUTE, FakeService

from catalog.errors import InvalidArgumentError
from procedures.process.application import application
from procedures.process.running_services import CatalogChange
from procedures.service.execution import Files, TaskQueue
from procedures.service.service_settings import MAX_QUEUED_TASKS, ServiceSettings

WANTED = {"use.optimization.type": "UnindexedFiles"}
IDLE, BUSY = TaskQueue(4, 4), TaskQueue(5, 4)


@pytest.fixture
def fake():
    made = FakeService()
    made.place = made.tables.put("a", WANTED)
    made.engine.queued = BUSY
    return made


def known():
    (only,) = application().automations.all()
    return only


def test_a_due_run_waits_until_the_queue_is_short(fake):
    assert fake.tick() == []
    assert (known().state, known().next_run) == ("waiting", fake.clock.time + 10 * MINUTE)
    assert "5 tasks of other jobs are queued, and it starts with at most 4" in known().note
    assert MAX_QUEUED_TASKS.name in known().note
    assert fake.tick(MINUTE) == []
    assert known().next_run == fake.clock.time + 9 * MINUTE
    fake.engine.queued = IDLE
    assert fake.tick(MINUTE) == ["a"]
    assert (known().state, known().note, known().next_run) == ("scheduled", None, fake.clock.time + 10 * MINUTE)
    assert set(fake.engine.queue_looks) == {"use"}


def test_a_run_waits_for_one_interval_at_most_each_time(fake):
    starts = []
    fake.engine.during = lambda run: starts.append(fake.clock.time)
    first = fake.clock.time
    for _ in range(60):
        fake.tick()
        fake.tables.commit("a")
        fake.clock.go_on(MINUTE)
    # Due at once, and then an interval after each start.
    assert [start - first for start in starts] == [10 * MINUTE, 30 * MINUTE, 50 * MINUTE]


@pytest.mark.parametrize(
    ("limit", "queued", "runs"),
    [("", 4, 1), ("", 5, 0), ("0", 0, 1), ("0", 1, 0), ("100", 100, 1), ("100", 101, 0), ("999999999", 10**6, 1)],
)
def test_the_limit(fake, limit, queued, runs):
    fake.conf[MAX_QUEUED_TASKS.name] = limit
    fake.engine.queued = TaskQueue(queued, 4)
    assert len(fake.tick()) == runs


def test_the_jobs_of_others_are_counted_once_in_a_round_and_only_if_there_is_work(fake):
    fake.tables.put("b", WANTED)
    fake.tick()
    assert len(fake.engine.queue_looks) == 1
    fake.engine.queued = IDLE
    fake.tick(MINUTE)
    looks = len(fake.engine.queue_looks)
    for _ in range(30):
        fake.tick(MINUTE)
    assert (len(fake.engine.queue_looks), len(fake.engine.runs)) == (looks, 2)


def test_a_table_without_work_does_not_wait(fake):
    fake.engine.queued = IDLE
    fake.tick()
    fake.engine.queued = BUSY
    fake.tick(20 * MINUTE)
    assert known().state == "scheduled"


def test_triggers_wait_too(fake):
    fake.tables.put("a", {**WANTED, "use.optimization.trigger.small-files": "3"})
    fake.engine.of_files = Files(10, 0, 3)
    fake.tick()
    assert (known().state, known().next_run) == ("waiting", fake.clock.time + 10 * MINUTE)
    # Somebody else merges the files meanwhile.
    fake.engine.of_files = Files(10, 0, 1)
    fake.tick(MINUTE)
    assert (known().state, known().note, known().next_run) == ("scheduled", None, None)


def test_a_suspension_and_new_properties_end_the_wait(fake):
    fake.tick()
    fake.engine.is_suspended.add(fake.place)
    fake.service.notify(CatalogChange("suspended", "a", fake.place))
    fake.tick(MINUTE)
    assert (known().state, known().note) == ("suspended", None)
    fake.engine.is_suspended.clear()
    fake.service.notify(CatalogChange("resumed", "a", fake.place))
    fake.tick(MINUTE, look=False)
    assert (known().state, known().next_run) == ("waiting", fake.clock.time + 10 * MINUTE)
    fake.tables.put("a", {**WANTED, "use.optimization.bytes-per-iter": "5"})
    fake.tick(5 * MINUTE)
    assert known().next_run == fake.clock.time + 10 * MINUTE
    fake.tables.put("a", {})
    fake.tick(MINUTE)
    assert not application().automations.all()


def test_a_run_under_way_is_not_stopped():
    fake = FakeService(at_once=False)
    fake.tables.put("a", WANTED)
    fake.tick()
    fake.engine.queued = BUSY
    fake.tick(5 * MINUTE)
    stopped = []
    fake.engine.during = lambda run: stopped.append(run.stop_reason)
    fake.threads.run_all()
    assert stopped == [None]


def test_a_queue_that_cannot_be_counted_keeps_nobody_waiting(fake, caplog):
    fake.engine.queued = RuntimeError("no status")
    assert fake.tick() == ["a"]
    assert "no status" in caplog.text


def test_a_failed_table_shows_its_error_while_it_waits(fake):
    fake.engine.queued = IDLE
    fake.engine.error = ValueError("broken")
    fake.tick()
    fake.engine.queued = BUSY
    fake.tick(10 * MINUTE)
    assert known().state == "failed"
    assert "a run waits" in known().note


def test_the_setting():
    assert ServiceSettings.of(lambda _, default: default).max_queued_tasks is None
    for text in ("-1", "some", "1.5"):
        with pytest.raises(InvalidArgumentError, match="max-queued-tasks"):
            MAX_QUEUED_TASKS.parse(text)
