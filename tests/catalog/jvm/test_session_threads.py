"""Several pieces of work at a time in one session, without Spark."""

import threading
from types import SimpleNamespace

import pytest

from catalog.jvm import session, session_threads
from catalog.jvm.session_threads import in_threads


@pytest.fixture(autouse=True)
def _without_spark(monkeypatch):
    monkeypatch.setattr(session_threads, "activate", lambda _spark: None)
    monkeypatch.setattr(session_threads, "acts_for_another_user", lambda _spark: False)
    monkeypatch.setattr(session_threads, "InheritableThread", threading.Thread)


def test_results_are_in_the_order_of_the_items():
    met = threading.Barrier(3)

    def work(item):
        met.wait(60)
        return item * 2, threading.current_thread().name

    results = in_threads(None, work, [1, 2, 3], most=3)
    assert [number for number, _ in results] == [2, 4, 6]
    assert len({name for _, name in results}) == 3
    assert in_threads(None, work, []) == []


def test_one_item_needs_no_thread():
    assert in_threads(None, lambda _: threading.current_thread(), [1]) == [threading.current_thread()]


def test_work_for_another_user_stays_in_the_thread_that_has_its_rights(monkeypatch):
    monkeypatch.setattr(session_threads, "acts_for_another_user", lambda _spark: True)
    assert set(in_threads(None, lambda _: threading.current_thread(), [1, 2, 3])) == {threading.current_thread()}


@pytest.mark.parametrize(
    ("caller", "of_threads", "differs"),
    [("server", "server", False), ("alice", "server", True), ("alice", "alice", False)],
)
def test_another_user_is_one_whose_rights_new_threads_do_not_have(monkeypatch, caller, of_threads, differs):
    own = threading.current_thread()

    def current():
        name = caller if threading.current_thread() is own else of_threads
        return SimpleNamespace(getShortUserName=lambda: name)

    users = SimpleNamespace(
        getCurrentUser=current, getLoginUser=lambda: SimpleNamespace(getShortUserName=lambda: "server")
    )
    monkeypatch.setattr(session, "java_class", lambda _spark, _name: users)
    assert session.acts_for_another_user(None) == differs


def test_the_first_error_is_raised_and_the_rest_is_left_out():
    done = []

    def work(item):
        done.append(item)
        if item:
            raise ValueError(item)

    with pytest.raises(ValueError, match="1"):
        in_threads(None, work, [0, 1, 2, 3], most=1)
    assert done == [0, 1]
