"""The shared state of a process: one object, that tests can make anew; without Spark."""

import threading

import pytest
from fake_clock import FakeClock
from service_fakes import FakeService
from tables import numbers

from catalog.errors import UnknownNameError
from procedures.calls.registry import procedure, procedures, register
from procedures.declare.declaration import Procedure
from procedures.process.application import Application, active, application
from procedures.process.running_services import RunningServices
from procedures.selection import Strategy, register_strategy, strategies, strategy


class Nothing(Strategy):
    name = "Nothing"
    doc = "No file."

    def groups(self, table, settings):
        yield "Nothing is chosen."


def test_a_new_application_has_the_built_in_procedures_and_strategies():
    with active(Application()) as made:
        assert {"optimize", "help", "status"} <= set(procedures())
        assert {"UnindexedFiles", "LeveledCompaction"} <= set(strategies())
    assert (made.runs.live(), list(made.automations.all())) == ([], [])


def test_the_application_of_the_process_stays_the_same():
    assert application() is application()


def test_what_is_registered_in_one_application_is_unknown_in_another():
    before = application()
    with active(Application()) as made:
        assert application() is made
        register(Procedure("only_here", "For tests.", (), "n int", numbers))
        register_strategy(Nothing())
        assert procedure("ONLY_HERE").name == "only_here"
        assert strategy("nothing").name in strategies()
    assert application() is before
    assert "only_here" not in procedures()
    assert "Nothing" not in strategies()
    with pytest.raises(UnknownNameError):
        procedure("only_here")


def test_an_error_inside_puts_the_application_back():
    before = application()
    with pytest.raises(KeyError), active(Application()):
        raise KeyError("staged")
    assert application() is before


def test_threads_see_the_application_of_the_process():
    seen = []
    with active(Application()) as made:
        thread = threading.Thread(target=lambda: seen.append(application()))
        thread.start()
        thread.join()
    assert seen == [made]


def test_a_service_shows_its_tables_in_its_application():
    with active(Application(clock=FakeClock())) as made:
        fake = FakeService()
        fake.tables.put("a", {"use.optimization.type": "UnindexedFiles"})
        fake.tick()
    assert [known.table for known in made.automations.all()] == ["a"]
    assert "a" not in [known.table for known in application().automations.all()]


class Listener:
    """A service that notes what it is told."""

    def __init__(self):
        self.is_alive = False
        self.seen = []

    def start(self):
        self.is_alive = True

    def stop(self, wait=None):
        self.is_alive = False
        self.seen.append(("stop", wait))
        return True

    def notify(self, change):
        self.seen.append(change)


def test_only_services_that_listen_are_notified():
    services, one, two = RunningServices(), Listener(), Listener()
    services.listen(one)
    services.listen(two)
    services.notify("first")
    assert not services.ignore(one)
    services.notify("second")
    assert services.ignore(two)
    services.notify("third")
    assert (one.seen, two.seen) == (["first"], ["first", "second"])


def test_one_attached_service_runs_at_a_time():
    services, made = RunningServices(), []

    def make():
        made.append(Listener())
        return made[-1]

    assert services.attached is None
    assert services.start_attached(make) is services.start_attached(make) is services.attached is made[0]
    # Its Spark has stopped: the next one takes its place and the runs of the first end soon.
    made[0].is_alive = False
    assert services.attached is None
    assert services.start_attached(make) is made[1]
    assert made[0].seen == [("stop", 5)]
    services.stop_attached(3)
    services.stop_attached(3)
    assert made[1].seen == [("stop", 3)]
    assert services.attached is None
