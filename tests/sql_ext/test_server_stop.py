"""The stop of a server while the service has more tables to optimize; no Spark."""

from types import SimpleNamespace

import pytest

from procedures.declare.runs import AUTOMATIC, MANUAL, Run
from procedures.process.application import Application, active
from sql_ext.server import serving


class Backlog:
    """The attached service: it begins the run of the next table when one has ended, until it is stopped."""

    is_alive = True

    def __init__(self, runs, tables):
        self.runs, self.tables = runs, list(tables)
        self.begun, self.waits = [], []

    def start(self):
        if self.tables and not self.waits:
            self.begun.append(self.runs.begin(Run(self.tables.pop(0), "file:/t", AUTOMATIC, {}, 0)))

    def stop(self, wait=None):
        # What is under way ends only if somebody ends it: see ``ends_groups``.
        assert wait == 0 or not self.runs.live()
        self.waits.append(wait)
        for run in self.begun:
            run.request_stop("SERVICE_STOPPED", "the optimization service was stopped")
        return not self.runs.live()


@pytest.fixture
def app(monkeypatch):
    made = Application()

    def ends_groups(_):
        """While the server sleeps, the groups of runs that were asked to stop end."""
        for run in made.runs.live(lambda run: run.stop_reason is not None):
            made.runs.end(run)
            made.services.attached.start()

    monkeypatch.setattr(serving, "time", SimpleNamespace(sleep=ends_groups))
    monkeypatch.setattr(serving, "_SECONDS_TO_FETCH", 0)
    with active(made):
        yield made


def test_the_service_begins_no_run_after_the_current_group(app):
    service, lines = Backlog(app.runs, ["a", "b", "c"]), []
    app.services.start_attached(lambda: service)
    call = app.runs.begin(Run("d", "file:/d", MANUAL, {}, 1))
    serving._stop_runs(lines.append)
    assert ([run.table for run in service.begun], service.tables) == (["a"], ["b", "c"])
    assert (service.begun[0].stop_reason.code, call.stop_reason.code) == ("SERVICE_STOPPED", "INTERRUPTED")
    # First it begins nothing more, and finally it is waited for.
    assert service.waits == [0, None]
    assert lines == ["stopping after the current groups are committed: a, d"]
    assert app.services.attached is None


def test_a_server_without_a_service_stops(app):
    serving._stop_runs(print)
    assert app.runs.live() == []
