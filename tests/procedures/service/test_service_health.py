"""Whether the loop of a service works, without Spark."""

import threading

import pytest
from service_fakes import FakeService

MINUTE = 60_000
DAY = 24 * 60 * MINUTE


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr("procedures.service.service.is_running", lambda _spark: True)
    made = FakeService(listener_interval="30 seconds")
    made.service._thread = threading.current_thread()
    return made


def test_a_service_that_looks_at_its_tables_works(fake):
    assert fake.service.problem() is None
    fake.clock.go_on(10 * MINUTE)
    fake.service.tick()
    fake.clock.go_on(2 * MINUTE)
    assert fake.service.problem() is None


def test_rounds_without_a_look_do_not_count(fake):
    fake.clock.go_on(2 * MINUTE + 1)
    fake.service.tick(look=False)
    assert fake.service.problem() == "the last look at the tables was 120 seconds ago"


def test_a_short_interval_leaves_a_minute(monkeypatch, fake):
    fake.conf["spark.qbeast.use.listener-interval"] = "200 ms"
    fake.service.tick()
    fake.clock.go_on(MINUTE)
    assert fake.service.problem() is None
    fake.clock.go_on(1)
    assert fake.service.problem() is not None


def test_a_clock_that_is_set_back_hides_no_late_look(fake):
    fake.service.tick()
    fake.clock.set_back(30 * DAY)
    assert fake.service.problem() is None
    fake.clock.go_on(3 * MINUTE)
    assert fake.service.problem() == "the last look at the tables was 180 seconds ago"


def test_looks_go_on_after_the_clock_is_set_back(monkeypatch, fake):
    monkeypatch.setattr("procedures.service.service.prepare_thread", lambda *_: None)
    waits = []

    def wait(event, seconds):
        waits.append(seconds)
        fake.clock.go_on(int(seconds * 1000))
        if len(waits) == 1:
            fake.clock.set_back(30 * DAY)
        elif len(waits) == 4:
            fake.service._ending.set()

    monkeypatch.setattr(fake.clock, "wait", wait)
    fake.service._loop()
    assert (waits, fake.tables.lists) == ([30.0] * 4, 4)


def test_a_loop_that_has_ended_is_named(monkeypatch, fake):
    fake.service._thread = None
    assert fake.service.problem() == "the loop of the service has ended"
    monkeypatch.setattr("procedures.service.service.is_running", lambda _spark: False)
    assert fake.service.problem() == "Spark has stopped"
    fake.service._ending.set()
    assert fake.service.problem() == "the service is stopping"
