"""Triggers of many tables: a few are asked at the same time, within a limit of time, and none is forgotten."""

import threading
import time
from collections import Counter

from service_fakes import MINUTE, FakeService

from catalog.files import log_changes
from catalog.jvm.files import TextFile
from procedures.process.application import application
from procedures.service.execution import Files, SparkEngine, TaskQueue

WANTED = {"use.index.columns": "x", "use.optimization.type": "UnindexedFiles"}
ON = {**WANTED, "use.optimization.trigger.commits": "3"}


def _service(tables):
    fake = FakeService()
    for number in range(tables):
        fake.tables.put(f"t{number:03}", ON)
    return fake


def test_tables_are_asked_at_the_same_time():
    fake, together = _service(32), threading.Barrier(16)

    def commits(*_):
        # Raises unless others are asked meanwhile.
        together.wait(60)
        return 0

    fake.engine.commits = commits
    fake.tick()
    assert {automation.state for automation in application().automations.all()} == {"scheduled"}


def test_a_round_that_takes_long_ends_and_the_next_one_goes_on_with_the_others():
    fake = _service(48)
    asked = []

    def commits(location, after, newest, most):
        asked.append((location, newest))
        if len(asked) % 16 == 0:
            fake.clock.go_on(11_000)
        return 0

    fake.engine.commits = commits
    counts, woken = [], []
    fake.service._wake.clear()
    for _ in range(3):
        fake.service.tick()
        counts.append(len(asked))
        woken.append(fake.service._wake.is_set())
        fake.service._wake.clear()
    # 16 at the same time, and those of which a round finds out what they offer.
    assert counts == [20, 40, 48]
    assert woken == [True, True, False]
    assert sorted(asked) == [(f"file:/t{number:03}", 0) for number in range(48)]


def test_only_as_many_tables_without_triggers_are_asked_as_may_start():
    fake = FakeService()
    fake.conf["spark.qbeast.use.service.max-tables"] = "2"
    for number in range(20):
        fake.tables.put(f"t{number:03}", {"use.index.columns": "x", "use.optimization.type": "UnindexedFiles"})
    fake.threads.at_once = False
    asked = []
    fake.engine.suspended = asked.append
    fake.tick()
    assert len(asked) == 2


def _commits(monkeypatch, operations, sizes=None):
    """The texts of commits by version; the commit of an operation that is None has no ``commitInfo``."""
    read, of_delta = [], []

    def text_file(spark, path, most_bytes):
        version = int(path.rsplit("/", 1)[1].removesuffix(".json"))
        read.append(version)
        operation = operations[version]
        if operation == "long":
            return TextFile(0, None)
        info = f'{{"commitInfo":{{"operation":"{operation}"}}}}\n' if operation else ""
        return TextFile(0, info + '{"add":{}}')

    def counted_commits(spark, *arguments):
        of_delta.append(arguments)
        return 7

    monkeypatch.setattr(log_changes, "text_file", text_file)
    monkeypatch.setattr(log_changes, "counted_commits", counted_commits)
    return read, of_delta


def test_commits_are_counted_from_the_newest_one_and_no_further_than_needed(monkeypatch):
    read, of_delta = _commits(monkeypatch, ["CREATE", "WRITE", "OURS", None, "WRITE", "MERGE"])
    assert log_changes.commits_since(None, "/t", "OURS", -1, 5, 10) == 3
    assert read == [5, 4, 3, 2]
    assert log_changes.commits_since(None, "/t", "OURS", -1, 5, 2) == 2
    assert log_changes.commits_since(None, "/t", "OURS", 4, 5, 10) == 1
    assert log_changes.commits_since(None, "/t", "OURS", 5, 5, 10) == 0
    assert not of_delta


def test_commits_that_are_long_or_elsewhere_are_counted_by_delta(monkeypatch):
    _, of_delta = _commits(monkeypatch, ["CREATE", "long", "WRITE"])
    assert log_changes.commits_since(None, "/t", "OURS", -1, 2, 10) == 7
    assert of_delta == [("/t", "OURS", -1, 10)]


def test_while_the_cluster_is_busy_each_table_is_asked_and_the_service_rests():
    fake = _service(48)
    fake.conf["spark.qbeast.use.service.max-tables"] = "100"
    fake.engine.queued = TaskQueue(9, 4)
    asked = Counter()

    def commits(location, after, newest, most):
        asked[location] += 1
        if asked.total() % 16 == 0:
            fake.clock.go_on(11_000)
        return 3

    fake.engine.commits = commits
    woken = []
    for _ in range(6):
        fake.service._wake.clear()
        fake.service.tick()
        woken.append(fake.service._wake.is_set())
    assert len(asked) == 48
    assert woken[3:] == [False] * 3
    assert {known.state for known in application().automations.all()} == {"waiting"}


def test_few_tables_are_asked_for_their_files_at_the_same_time():
    fake = FakeService()
    for number in range(8):
        fake.tables.put(f"t{number}", {**WANTED, "use.optimization.trigger.small-files": "4"})
    together, most, lock = [], [], threading.Lock()

    def files(table):
        with lock:
            together.append(table)
            most.append(len(together))
        time.sleep(0.02)
        with lock:
            together.remove(table)
        return Files(0, 0, 0)

    fake.engine.files = files
    fake.tick()
    assert len(most) == 8
    assert max(most) <= 2


def test_a_commit_that_arrives_while_the_triggers_are_looked_at_is_looked_at_too():
    fake = FakeService()
    fake.tables.put("a", ON)
    seen = []

    def commits(location, after, newest, most):
        seen.append(newest)
        if len(seen) == 1:
            # The catalog tells of a commit before the answer is recorded.
            fake.tables.commit("a")
            fake.service._workers.update("a", location, newest + 1)
            return 2
        return 3

    fake.engine.commits = commits
    assert fake.tick() == []
    assert fake.tick(1) == ["a"]


def test_too_few_commits_are_known_without_a_look():
    assert SparkEngine(None, None).commits("/nowhere", 3, 5, 10) == 2


def test_many_commits_are_counted_by_delta(monkeypatch):
    read, of_delta = _commits(monkeypatch, ["WRITE"] * 200)
    assert log_changes.commits_since(None, "/t", "OURS", -1, 199, 100) == 7
    assert of_delta == [("/t", "OURS", -1, 100)]
    assert len(read) == log_changes.MAX_SHORT_COMMITS


def test_a_check_of_maintenance_that_fails_counts_once():
    fake = FakeService()
    fake.tables.put("a", {"use.log.consolidation.interval": "1 hour"})
    suspended, fake.engine.suspended = fake.engine.suspended, lambda location: 1 / 0
    fake.tick()
    fake.engine.suspended = suspended
    fake.tick(10 * MINUTE)
    assert fake.engine.consolidated == ["a"]
