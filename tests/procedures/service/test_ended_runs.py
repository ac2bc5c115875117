"""What the service reports about runs that have ended, without Spark."""

import pytest
from service_fakes import FakeService

from catalog.errors import ConcurrentChangeError, UseError
from procedures.service.ended_run import log_problems

BROKEN = UseError("broken", code="USE_X", sql_state="58000")


@pytest.fixture(autouse=True)
def _spark_runs(monkeypatch):
    monkeypatch.setattr("procedures.service.service.is_running", lambda _spark: True)


def _fake(error=None, on_run=log_problems):
    fake = FakeService(on_run=on_run)
    fake.engine.error = error
    fake.tables.put("t", {"use.optimization.type": "UnindexedFiles"})
    fake.tick()
    return fake


def test_a_service_counts_its_tables():
    fake = FakeService()
    fake.metrics._most_tables = 1
    fake.tables.put("t", {"use.optimization.type": "UnindexedFiles"})
    fake.tick()
    assert {s.label_value for s in fake.metrics.samples((), 0) if s.metric.label == "table"} == {"t"}


def test_each_run_is_reported():
    runs = []
    _fake(None, runs.append)
    assert [(run.table, run.outcome, run.problems) for run in runs] == [("t", "completed", ())]


def test_a_failed_run_is_reported_with_its_code_and_not_logged_too(caplog):
    runs = []
    _fake(BROKEN, runs.append)
    assert [(run.outcome, run.problems) for run in runs] == [("failed", ("USE_X: broken",))]
    assert not caplog.records


def test_a_conflict_is_reported():
    runs = []
    _fake(ConcurrentChangeError("x"), runs.append)
    assert [(run.outcome, run.has_conflict) for run in runs] == [("conflict", True)]


def test_without_a_receiver_errors_are_logged(caplog):
    _fake(BROKEN)
    assert "t: automatic optimization failed: USE_X: broken" in caplog.text


def test_a_failing_receiver_stops_no_worker(caplog):
    def receiver(_run):
        raise BrokenPipeError

    fake = _fake(None, receiver)
    fake.tables.commit("t")
    assert fake.tick(600_000) == ["t", "t"]
    assert "A receiver of the runs of t failed" in caplog.text
