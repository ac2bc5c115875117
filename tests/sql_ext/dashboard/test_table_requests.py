"""Requests for tables: time limits, few at once, and shared results."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from fake_clock import FakeClock

from sql_ext.dashboard.table_requests import NoAnswerError, TableRequests


class Tables:
    """Tables that answer when the test lets them."""

    def __init__(self):
        self.asked, self.cancelled = [], []
        self.is_asked, self.answers = threading.Event(), threading.Event()

    def gather(self, name, with_plan, group):
        self.asked.append((name, with_plan, group))
        self.is_asked.set()
        if name != "quick":
            self.answers.wait(30)
        if name == "stopped" and group in self.cancelled:
            raise InterruptedError("its jobs were cancelled")
        if name == "damaged":
            raise TimeoutError("its log does not answer")
        return f"{name} {with_plan}"


@pytest.fixture
def tables():
    tables = Tables()
    yield tables
    tables.answers.set()


@pytest.fixture
def requests(tables):
    return TableRequests(tables.gather, tables.cancelled.append, FakeClock())


def test_a_result_is_returned_again_for_some_seconds(tables, requests):
    assert [requests.get("quick", False, 30) for _ in range(3)] == ["quick False"] * 3
    assert requests.get("quick", True, 30) == "quick True"
    assert len(tables.asked) == 2
    requests._clock.go_on(5_000)
    requests.get("quick", False, 30)
    assert len(tables.asked) == 3


def test_a_slow_table_is_left_alone_and_its_jobs_are_cancelled(tables, requests):
    with pytest.raises(NoAnswerError, match=r"slow did not answer within 0\.01 seconds"):
        requests.get("slow", False, 0.01)
    assert tables.cancelled == [tables.asked[0][2]]
    # It is not asked twice at once.
    with pytest.raises(NoAnswerError):
        requests.get("slow", False, 0.01)
    assert len(tables.asked) == 1


def test_a_reader_who_gives_up_leaves_the_request_to_the_others(tables, requests):
    with ThreadPoolExecutor(1) as pool:
        patient = pool.submit(requests.get, "stopped", False, 30)
        assert tables.is_asked.wait(30)
        with pytest.raises(NoAnswerError):
            requests.get("stopped", False, 0.01)
        assert tables.cancelled == []
        tables.answers.set()
        assert patient.result() == "stopped False"
    assert len(tables.asked) == 1


def test_the_reader_after_a_cancelled_request_starts_it_anew(tables, requests):
    with pytest.raises(NoAnswerError):
        requests.get("stopped", False, 0.01)
    with ThreadPoolExecutor(1) as pool:
        # Whether the cancelled request has ended makes no difference.
        early = pool.submit(requests.get, "stopped", False, 30)
        tables.answers.set()
        assert early.result() == "stopped False"
    assert requests.get("stopped", False, 30) == "stopped False"
    assert len(tables.asked) == 2


def test_slow_tables_keep_few_threads_busy(requests, tables):
    for number in range(4):
        with pytest.raises(NoAnswerError, match="did not answer"):
            requests.get(f"slow {number}", False, 0.01)
    with pytest.raises(NoAnswerError, match="4 other requests are under way"):
        requests.get("quick", False, 30)
    assert len(tables.asked) == 4


def test_the_error_of_a_table_is_its_own(requests, tables):
    tables.answers.set()
    with pytest.raises(TimeoutError, match="its log does not answer"):
        requests.get("damaged", False, 30)
    assert tables.cancelled == []
