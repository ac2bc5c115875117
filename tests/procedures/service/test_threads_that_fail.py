"""Threads that the operating system refuses: the service has no run that never ends; without Spark."""

import pytest
from service_fakes import MINUTE, FakeService

from procedures.process.application import application
from procedures.service.ended_run import EndedRun
from procedures.service.service import Service

WANTED = {"use.optimization.type": "UnindexedFiles"}


class RefusedThreads:
    """Starts no thread while ``is_refused``; else the work is done at once."""

    def __init__(self, service):
        self.is_refused = True
        service.service._workers._spawn = self

    def __call__(self, name, work):
        if self.is_refused:
            raise RuntimeError("can't start new thread")
        work()


@pytest.fixture
def ended():
    return list[EndedRun]()


@pytest.fixture
def fake(ended, monkeypatch):
    # There is no Spark, so that the service would keep failures to itself.
    monkeypatch.setattr(Service, "is_alive", True)
    made = FakeService(on_run=ended.append)
    made.refused = RefusedThreads(made)
    return made


def only():
    (known,) = application().automations.all()
    return known


@pytest.mark.parametrize("properties", [WANTED, {"use.log.consolidation.interval": "1 hour"}])
def test_a_run_without_a_thread_ends_with_the_error_and_is_tried_again(fake, ended, properties):
    fake.tables.put("a", properties)
    assert fake.tick() == []
    assert (only().state, only().run_id) == ("failed", None)
    assert "can't start new thread" in only().last_error
    assert [(run.table, len(run.problems)) for run in ended] == [("a", 1)]
    fake.refused.is_refused = False
    fake.tick(10 * MINUTE)
    assert len(fake.engine.runs) + len(fake.engine.consolidated) == 1
    assert (only().state, only().last_error) == ("scheduled", None)


def test_other_tables_are_tried_if_a_thread_is_refused(fake, ended):
    fake.conf["spark.qbeast.use.service.max-tables"] = "2"
    for name in ("a", "b"):
        fake.tables.put(name, WANTED)
    fake.tick()
    assert [run.table for run in ended] == ["a", "b"]


def test_an_appraisal_without_a_thread_is_tried_again(fake):
    fake.tables.of_session = {"use.fleet.maxBytes": "1g"}
    fake.tables.put("a", WANTED)
    fake.tick()
    assert fake.engine.appraised == []
    assert "can't start new thread" in only().last_error
    fake.refused.is_refused = False
    fake.tick(10 * MINUTE)
    assert fake.engine.appraised == ["a"]
