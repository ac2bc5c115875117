"""Runs start within the hours of their table, and stop when these end: clock, engine and catalog are fakes."""

import pytest
from service_fakes import MINUTE, FakeService

from catalog.properties.hours import Hours
from procedures.process.application import application

NIGHT = "01:00-05:00"
WANTED = {"use.optimization.type": "UnindexedFiles", "use.fleet.hours": NIGHT}
HOUR = 60 * MINUTE


@pytest.fixture
def fake():
    made = FakeService()
    # Noon of some day.
    made.clock.go_on(Hours.of("12:00-13:00").next_begin(made.clock.time) - made.clock.time)
    return made


def known():
    (only,) = application().automations.all()
    return only


def test_a_due_run_waits_for_the_hours(fake):
    fake.tables.put("a", WANTED)
    assert fake.tick() == []
    assert (known().state, known().next_run) == ("waiting", fake.clock.time + 13 * HOUR)
    assert known().note == "a run waits for the hours 01:00-05:00 UTC"
    assert fake.tick(13 * HOUR - MINUTE) == []
    assert fake.tick(MINUTE) == ["a"]
    assert (known().state, known().note) == ("scheduled", None)
    # Within the hours, the interval counts.
    fake.tables.commit("a")
    assert fake.tick(10 * MINUTE) == ["a", "a"]
    fake.tables.commit("a")
    assert fake.tick(5 * HOUR) == ["a", "a"]


def test_triggers_and_maintenance_wait_too(fake):
    fake.tables.put("a", WANTED | {"use.optimization.trigger.commits": "1"})
    fake.tables.put("b", {"use.retention.hours": "400", "use.fleet.hours": NIGHT})
    fake.engine.commits_of_others = 5
    assert fake.tick() == []
    assert fake.engine.reclaimed == []
    assert {a.state for a in application().automations.all()} == {"waiting"}
    assert {a.next_run for a in application().automations.all()} == {fake.clock.time + 13 * HOUR}
    fake.tick(13 * HOUR)
    assert [name for name, *_ in fake.engine.runs] == ["a"]
    assert [name for name, _ in fake.engine.reclaimed] == ["b"]


def test_a_run_stops_when_the_hours_end(fake):
    fake.threads.at_once = False
    fake.tables.put("a", WANTED)
    fake.tick(14 * HOUR)
    assert known().state == "running"
    stopped = []
    fake.engine.during = lambda run: stopped.append(run.stop_reason)
    fake.tick(HOUR)
    fake.tick(2 * HOUR)
    fake.threads.run_all()
    assert [stop.code for stop in stopped] == ["OUTSIDE_HOURS"]
    fake.tick(MINUTE)
    assert known().state == "waiting"


def test_a_table_without_hours_does_not_wait_and_hours_can_be_taken_away(fake):
    fake.tables.put("a", WANTED)
    fake.tables.put("b", {"use.optimization.type": "UnindexedFiles"})
    assert fake.tick() == ["b"]
    fake.tables.put("a", {"use.optimization.type": "UnindexedFiles"})
    assert fake.tick(MINUTE) == ["b", "a"]


def test_hours_of_the_database_count(fake):
    fake.tables.of_database = {"use.fleet.hours": NIGHT}
    fake.tables.put("a", {"use.optimization.type": "UnindexedFiles"})
    assert fake.tick() == []
    assert fake.tick(13 * HOUR) == ["a"]
