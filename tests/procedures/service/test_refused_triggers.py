"""A manual trigger that fails leaves no run behind, which would block the table and the stop of a server; no Spark."""

from types import SimpleNamespace

import pytest
from service_fakes import FakeThreads

from catalog.errors import InvalidArgumentError
from procedures.process.application import Application
from procedures.service import manual
from procedures.service.manual import Started, trigger

TRIGGER = {"use.optimization.type": "UnindexedFiles"}


def session(**settings):
    return SimpleNamespace(conf=SimpleNamespace(get=lambda key, default=None: settings.get(key, default)))


INVALID = session(**{"spark.qbeast.use.service.max-tables": "many"})


@pytest.fixture
def app(monkeypatch):
    table = SimpleNamespace(name="spark_catalog.default.t", location="file:/t", spark=None)
    monkeypatch.setattr(manual, "background_session", lambda spark: spark)
    monkeypatch.setattr(manual, "ManagedTable", SimpleNamespace(find=lambda spark, name: table))
    monkeypatch.setattr(manual, "check_rights_of", lambda *_: None)
    monkeypatch.setattr(manual, "_check_index", lambda *_: {})
    monkeypatch.setattr(manual, "qualified", lambda spark, place: place)
    monkeypatch.setattr(manual, "lease", SimpleNamespace(holder_of=lambda *_: None))
    monkeypatch.setattr(manual, "suspension_of", lambda _: None)
    return Application()


def test_an_invalid_setting_of_the_session_starts_no_run(app):
    with pytest.raises(InvalidArgumentError, match="max-tables"):
        trigger(INVALID, "t", TRIGGER, app=app)
    assert app.runs.live() == []
    assert isinstance(trigger(session(), "t", TRIGGER, FakeThreads(at_once=False), app), Started)
    assert len(app.runs.live()) == 1


def test_a_run_without_a_thread_ends(app):
    def refused(name, work):
        raise RuntimeError("can't start new thread")

    with pytest.raises(RuntimeError, match="new thread"):
        trigger(session(), "t", TRIGGER, refused, app)
    assert app.runs.live() == []
