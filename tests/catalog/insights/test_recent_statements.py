"""The statements of the last minutes, read from the texts of commits; without Spark."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from file_lists import file_table
from py4j.protocol import Py4JJavaError

from catalog.columns.column_names import FoundColumn
from catalog.insights import recent_statements as module
from catalog.insights.recent_statements import LoggedStatement, StatementTail, compared_columns, recent_statements
from catalog.insights.statement_pace import Span
from catalog.jvm.files import TextFile

MERGE_ON_DAY = '["((id#224L = id#228L) AND (day#225 = 2024-01-30))"]'
COLUMNS = [FoundColumn((name,), (name,), None) for name in ("day", "customer")]


def add(path, low=0, high=9, **more):
    ranges = {"minValues": {"day": low, "customer": 0}, "maxValues": {"day": high, "customer": 99}}
    stats = json.dumps({"numRecords": 1, **ranges})
    return {
        "add": {"path": path, "partitionValues": {}, "modificationTime": 1, "stats": stats, "dataChange": True, **more}
    }


def remove(path, **more):
    return {"remove": {"path": path, "partitionValues": {}, "dataChange": True, "stats": '{"numRecords":1}', **more}}


def commit(*actions, operation="MERGE", blind=False, predicate=MERGE_ON_DAY, **more):
    info = {"operation": operation, "isBlindAppend": blind, "operationParameters": {"predicate": predicate}, **more}
    return "\n".join(json.dumps(action) for action in ({"commitInfo": info}, *actions))


# ------------------------------------------------------------------------------------------------- which commits count


def test_a_statement_is_a_commit_that_removes_files_and_changes_data():
    found = LoggedStatement.of(commit(remove("a"), add("b")))
    assert found.operation == "MERGE"
    assert ([r["path"] for r in found.removed], [a["path"] for a in found.added]) == (["a"], ["b"])


@pytest.mark.parametrize(
    "text",
    [
        commit(add("a"), operation="WRITE", blind=True),
        commit(remove("a", dataChange=False), add("b", dataChange=False), operation="OPTIMIZE"),
        commit(remove("a", dataChange=False), add("b", dataChange=False), operation="USE OPTIMIZE"),
        commit(remove("a"), add("b"), operation="USE OPTIMIZE"),
        commit(operation="SET TBLPROPERTIES"),
        json.dumps(add("a")),
    ],
    ids=["an append", "OPTIMIZE of Delta", "a rewrite", "outdated rows are removed", "no file", "an unknown append"],
)
def test_other_commits_do_not_count(text):
    assert LoggedStatement.of(text) is None


@pytest.mark.parametrize(
    "text",
    [
        '{"commitInfo": "x"}', '{"commitInfo": {"tags": 7}}',
        '{"commitInfo": {"operationParameters": [1]}}\n{"remove": {"path": "a"}}',
        '{"commitInfo": {}}\n{"remove": [1]}',
        '{"commitInfo": {"operation": "MERGE", "timestamp": Infinity}}\n{"remove": {"path": "a"}}',
        '["commitInfo"]', '{"commitInfo": ' + "[" * 100_000, '{"commitInfo": {',
    ],
    ids=range(8),
)  # fmt: skip
def test_what_is_no_commit_is_one_kind_of_error(text, log):
    with pytest.raises(ValueError, match=r"no commit|line 1"):
        LoggedStatement.of(text)
    log.put(1, commit(remove("a"), add("b")))
    tail = StatementTail(log.snapshot)
    log.put(2, text)
    log.put(3, commit(remove("b"), add("c")))
    assert tail.new_spans() == [None]


def test_a_merge_that_only_inserts_counts_and_so_does_a_writer_that_says_nothing():
    assert LoggedStatement.of(commit(add("a"))) is not None
    unknown = LoggedStatement.of("\n".join(map(json.dumps, (remove("a"), add("b")))))
    assert (unknown.operation, unknown.compared) == ("", None)


@pytest.mark.parametrize(
    ("predicate", "columns"),
    [
        (MERGE_ON_DAY, {"day"}),
        ('["((id#1 = id#2) AND (day#3 = day#4))"]', set()),
        ('["((Day#2211 >= 2024-01-02) AND (customer#2212 < 5))"]', {"day", "customer"}),
        ("day = '2024-01-30'", None),
        ('["true"]', None),
        ("[]", None),
        (None, None),
    ],
)
def test_only_comparisons_with_values_restrict_what_is_read(predicate, columns):
    assert compared_columns({"operationParameters": {"predicate": predicate}}) == columns


# ------------------------------------------------------------------------------------------------------ reading the log


class Log:
    """A log of commits: time and text by version."""

    def __init__(self, monkeypatch):
        self.commits, self.reads, self.former = {}, [], None
        monkeypatch.setattr(module, "text_file", self.read)
        monkeypatch.setattr(module, "exists", lambda _, __, file: int(file[-25:-5]) in self.commits)
        monkeypatch.setattr(module, "_files", files_of)
        monkeypatch.setattr(module, "_KEPT_COMMITS", module._KeptCommits())

    def put(self, time, text):
        self.commits[len(self.commits)] = TextFile(time, text)

    def read(self, _, path, most_bytes):
        version = int(path[-25:-5])
        self.reads.append(version)
        if version not in self.commits:
            raise Py4JJavaError("gone", SimpleNamespace(_target_id="o1", _gateway_client=None))
        found = self.commits[version]
        return found if found.text is not None and len(found.text) <= most_bytes else TextFile(found.modified, None)

    @property
    def snapshot(self):
        newest = max(self.commits)
        return SimpleNamespace(
            spark=None,
            location="/t",
            table_id="id",
            version=newest,
            committed_at=self.commits[newest].modified,
            version_files=SimpleNamespace(kept_before=self.former),
        )

    def since(self, time):
        self.reads.clear()
        return recent_statements(self.snapshot, COLUMNS, time)


def files_of(_, columns, actions):
    stats = [json.loads(action["stats"]) if "modificationTime" in action else {} for action in actions]

    def values(name):
        return np.array([[s.get(name, {}).get(c.path[0], np.nan) for c in columns] for s in stats], float)

    shape = len(actions), len(columns)
    paths = tuple(action["path"] for action in actions)
    low, high = values("minValues").reshape(shape), values("maxValues").reshape(shape)
    return module._Files(paths, tuple("" for _ in actions), low, high)


@pytest.fixture
def log(monkeypatch):
    return Log(monkeypatch)


def test_an_idle_table_costs_no_look(log):
    log.put(100, commit(remove("a"), add("b")))
    assert log.since(101) == ()
    assert log.reads == []


def test_each_commit_is_read_once_and_only_as_far_back_as_asked(log):
    for number in range(6):
        log.put(number * 10, commit(remove(f"f{number}"), add(f"f{number + 1}")))
    assert [s.time for s in log.since(30)] == [30, 40, 50]
    assert log.reads == [5, 4, 3, 2]
    log.put(60, commit(remove("f6"), add("f7")))
    assert [s.written for s in log.since(40)] == [("f5",), ("f6",), ("f7",)]
    assert log.reads == [6]
    assert len(log.since(40)) == 3
    assert log.reads == []


def test_reading_is_bounded(log, monkeypatch):
    monkeypatch.setattr(module, "MAX_COMMITS", 3)
    for number in range(6):
        log.put(number, commit(remove(f"f{number}"), add(f"f{number + 1}")))
    assert len(log.since(0)) == 3
    monkeypatch.setattr(module, "MAX_COMMIT_BYTES", 10)
    log.put(7, commit(remove("f6"), add("f7")))
    assert len(log.since(0)) == 2  # the large one is not read


def test_a_log_that_was_cleaned_up_ends_the_look(log):
    for number in range(4):
        log.put(number, commit(remove(f"f{number}"), add(f"f{number + 1}")))
    del log.commits[1]
    assert [s.time for s in log.since(0)] == [2, 3]


def test_ranges_of_removed_files_come_from_the_commits_that_wrote_them(log):
    log.put(1, commit(remove("unknown"), add("a", 3, 4)))
    log.put(2, commit(remove("a"), add("b", 5, 6), add("c", 8, 9)))
    first, second = log.since(0)
    # Nothing is known of the first file: its rows are in the file that was written.
    assert (first.low[:, 0].tolist(), first.high[:, 0].tolist()) == ([3], [4])
    assert (second.low[:, 0].tolist(), second.high[:, 0].tolist()) == ([3], [4])
    log.put(3, commit(remove("b"), remove("lost"), add("d", 1, 7)))
    third = log.since(0)[-1]
    assert (third.low[:, 0].tolist(), third.high[:, 0].tolist()) == ([5, 1], [6, 7])


def test_ranges_of_removed_files_come_from_an_earlier_list_of_files(log):
    log.former = 0, file_table(1, low=[[3.0, 0.0]], high=[[4.0, 9.0]])
    log.put(1, commit(remove("f0"), add("a", 0, 9)))
    (found,) = log.since(0)
    assert (found.low.tolist(), found.high.tolist()) == ([[3.0, 0.0]], [[4.0, 9.0]])


def test_a_deletion_vector_removes_and_adds_the_same_file(log):
    log.put(1, commit(remove("a"), add("a", 3, 4), add("b", 7, 8)))
    (found,) = log.since(0)
    assert (found.low[:, 0].tolist(), found.high[:, 0].tolist()) == ([3], [4])
    assert found.written == ("a", "b")


def test_a_delete_of_whole_files_has_no_known_ranges(log):
    log.put(1, commit(remove("a"), operation="DELETE"))
    (found,) = log.since(0)
    assert np.isnan(found.low).all()


def test_the_tail_of_a_log_tells_of_statements_only(log):
    log.put(1, commit(remove("a"), add("b")))
    tail = StatementTail(log.snapshot)
    assert tail.new_spans() == []
    log.put(2, commit(add("c"), operation="WRITE", blind=True))
    assert tail.new_spans() == []
    log.put(3, commit(remove("b"), add("d"), timestamp=1_000, operationMetrics={"executionTimeMs": "300"}))
    log.put(4, commit(add("e"), operation="WRITE", blind=True))
    log.put(5, commit(remove("d"), add("f")))
    assert tail.new_spans() == [Span(700, 1_000), None]
    assert tail.new_spans() == []
