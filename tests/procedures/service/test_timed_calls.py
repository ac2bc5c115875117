"""Calls to file systems that do not answer: they keep a thread each, and nobody waits for them twice."""

import threading
import time
from types import SimpleNamespace

import pytest
from service_fakes import MINUTE, FakeService

from procedures.service import table_checks, timed_calls, watched_tables
from procedures.service.timed_calls import TimedCalls

SECONDS = 0.05


class FileSystem:
    """Answers, unless it hangs."""

    def __init__(self):
        self.hangs = set()
        self.calls = []
        self.answer = threading.Event()

    def __call__(self, place):
        self.calls.append(place)
        if place in self.hangs:
            self.answer.wait(30)
        return place


@pytest.fixture
def files():
    _end_of_threads()
    made = FileSystem()
    yield made
    made.answer.set()
    _end_of_threads()


def _answers(calls, files, *places):
    return calls.answers({place: lambda place=place: files(place) for place in places}, SECONDS)


def _threads():
    return [thread for thread in threading.enumerate() if thread.name == "use-check"]


def _end_of_threads():
    for thread in _threads():
        thread.join(60)


def test_a_table_without_an_answer_is_not_asked_again_until_it_answers(files):
    calls = TimedCalls()
    files.hangs.add("s3://a/1")
    for _ in range(3):
        assert _answers(calls, files, "s3://a/1", "s3://a/2") == {"s3://a/2": "s3://a/2"}
    assert files.calls.count("s3://a/1") == 1
    assert len(_threads()) == 1
    files.hangs.clear()
    files.answer.set()
    _threads()[0].join(10)
    assert len(_answers(calls, files, "s3://a/1", "s3://a/2")) == 2


def test_a_file_system_that_hangs_is_not_asked_for_all_of_its_tables(files):
    calls = TimedCalls()
    for number in range(20):
        files.hangs.add(f"s3://a/{number}")
        _answers(calls, files, f"s3://a/{number}")
    assert len(files.calls) == 16
    assert _answers(calls, files, "s3://a/20", "s3://b/1", "spark_catalog.shop.t") == {
        "s3://b/1": "s3://b/1",
        "spark_catalog.shop.t": "spark_catalog.shop.t",
    }


def test_other_tables_of_a_file_system_that_hangs_get_less_time(files, monkeypatch):
    waits = []

    class Thread(threading.Thread):
        def join(self, timeout=None):
            waits.append(timeout)
            super().join(0.01)

    monkeypatch.setattr(timed_calls, "threading", SimpleNamespace(Thread=Thread, Lock=threading.Lock))
    calls = TimedCalls()
    files.hangs |= {"s3://a/1", "s3://a/2"}
    for place in ("s3://a/1", "s3://a/2", "s3://a/3", "s3://b/1"):
        calls.answers({place: lambda place=place: files(place)}, 60.0)
    assert waits == pytest.approx([60.0, 30.0, 20.0, 60.0], abs=5.0)


def test_errors_are_answers():
    error = OSError("denied")

    def refused():
        raise error

    assert TimedCalls().answers({"a": refused, "b": lambda: 1}, 10.0) == {"a": error, "b": 1}


def test_a_running_table_without_an_answer_keeps_one_thread(files, monkeypatch):
    monkeypatch.setattr(table_checks, "CHECK_SECONDS", SECONDS)
    fake = FakeService(at_once=False)
    place = fake.tables.put("a", {"use.optimization.type": "UnindexedFiles"})
    fake.tick()
    files.hangs.add(place)
    fake.engine.suspended = files
    for _ in range(5):
        fake.tick(MINUTE)
    assert (len(files.calls), len(_threads())) == (1, 1)


def test_a_named_table_without_an_answer_keeps_its_place_and_no_other_one_waits(files, monkeypatch):
    monkeypatch.setattr(watched_tables, "LOOK_SECONDS", SECONDS)
    monkeypatch.setattr(watched_tables, "activate", lambda spark: None)
    monkeypatch.setattr(watched_tables, "qualifier", lambda spark: str)
    found = SimpleNamespace(find=lambda spark, name: SimpleNamespace(location=files(name), name=f"delta.`{name}`"))
    monkeypatch.setattr(watched_tables, "ManagedTable", found)
    tables = watched_tables.SparkTables(None, ["/dead", "/live"])
    everything = {"/dead": "delta.`/dead`", "/live": "delta.`/live`"}
    assert tables.listed() == everything
    files.hangs.add("/dead")
    calls = files.calls.count("/dead")
    for _ in range(3):
        assert tables.listed() == everything
        assert tables.add("delta.`/live`", "/live") == "/live"
    assert files.calls.count("/dead") == calls + 1


def test_calls_that_are_under_way_take_no_time_from_others():
    """Only calls that have not returned in time say something about their file system."""
    calls, answers, release = TimedCalls(), {}, threading.Event()

    def ask(table: str) -> None:
        answers[table] = calls.answers({table: lambda: release.wait(10)}, 5.0)

    threads = [threading.Thread(target=ask, args=(f"s3a://bucket/{name}",)) for name in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(0.7)
    release.set()
    for thread in threads:
        thread.join()
    assert answers == {f"s3a://bucket/{name}": {f"s3a://bucket/{name}": True} for name in range(8)}


def test_a_thread_that_cannot_start_is_the_answer_of_its_table_only(files, monkeypatch):
    calls, start = TimedCalls(), threading.Thread.start

    def refusing(thread):
        if not files.calls:
            files.calls.append("refused")
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refusing)
    answers = _answers(calls, files, "s3://a/1", "s3://a/2")
    assert str(answers.pop("s3://a/1")) == "can't start new thread"
    assert answers == {"s3://a/2": "s3://a/2"}
    assert len(_answers(calls, files, "s3://a/1")) == 1
