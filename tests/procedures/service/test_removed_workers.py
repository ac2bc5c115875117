"""A service that is stopped, or a table that is dropped, while the table is checked; without Spark."""

import pytest
from service_fakes import FakeService

from procedures.process.application import application
from procedures.service.execution import TaskQueue

WANTED = {"use.optimization.type": "UnindexedFiles"}


@pytest.fixture
def fake():
    made = FakeService()
    made.place = made.tables.put("a", WANTED)
    return made


def stopped_during(fake, name, answer):
    """Lets the engine's answer to a question arrive after the service was stopped."""

    def late(*_):
        fake.service.stop()
        return answer

    setattr(fake.engine, name, late)


def test_a_run_does_not_begin_after_the_stop(fake):
    stopped_during(fake, "suspended", answer=False)
    assert fake.tick() == []
    assert application().automations.all() == []


def test_a_run_does_not_begin_if_the_service_stops_while_it_looks_at_the_queue(fake):
    stopped_during(fake, "queue", TaskQueue(0, 4))
    assert fake.tick() == []
    assert application().automations.all() == []


@pytest.mark.parametrize(("name", "answer"), [("suspended", True), ("queue", TaskQueue(9, 4)), ("commits", 0)])
def test_a_table_that_would_wait_is_not_shown_after_the_stop(fake, name, answer):
    if name == "commits":
        fake.tables.put("a", {**WANTED, "use.optimization.trigger.commits": "3"})
    stopped_during(fake, name, answer)
    assert fake.tick() == []
    assert application().automations.all() == []


def test_other_tables_go_on_if_one_is_removed_meanwhile(fake):
    fake.tables.put("b", WANTED)

    def suspended(location):
        if location == fake.place:
            fake.service._workers.stop(fake.place, "TABLE_DROPPED", "the table was dropped")
        return False

    fake.engine.suspended = suspended
    assert fake.tick() == ["b"]
    assert [known.table for known in application().automations.all()] == ["b"]
