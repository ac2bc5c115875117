"""The parts of the fault tests that need no Spark: the oracle, damages, the store in trouble, the summary."""

import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

sys.path.insert(0, str(Path(__file__).parents[1]))

from faults import cases, damage, kills, oracle, store, worker_process
from faults.judge import APPENDED, WRITTEN, Tables, problem_after, problem_before, unclear
from faults.results import Outcome, Results, report, summary


def rows(ids):
    xs, ys = [(n * 7919 % 1009) / 1009 for n in ids], [n * 31 % 1000 for n in ids]
    return pa.table({"id": pa.array(ids), "x": pa.array(xs), "y": pa.array(ys, pa.int32())})


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t"
    for first in (0, 10, 20):
        write_deltalake(str(path), rows(list(range(first, first + 10))), mode="append")
    return path


def test_a_sound_table(table):
    assert problem_before(table, "vacuum", list(range(30))) is None
    assert (oracle.missing(table), oracle.orphans(table)) == ([], [])


def test_lost_rows_are_seen(table):
    DeltaTable(table).delete("id = 7")
    assert "1 rows are lost" in problem_before(table, "vacuum", list(range(30)))


def test_changed_values_are_seen(table):
    DeltaTable(table).update(updates={"y": "-1"}, predicate="id = 7")
    assert problem_before(table, "vacuum", list(range(30))) == "the values of rows have changed"


def test_a_missing_file_is_seen(table):
    next(table.glob("*.parquet")).unlink()
    assert "1 files of the newest version are missing" in problem_before(table, "vacuum", list(range(30)))


def test_orphans_are_seen(table):
    DeltaTable(table).optimize.compact()
    assert len(oracle.orphans(table)) == 3
    assert "a vacuum leaves" in problem_after(table, "vacuum", list(range(30)), list(range(30)))


def test_the_checkpoint_counts(table):
    before = oracle.live_files(table)
    DeltaTable(table).create_checkpoint()
    for file in (table / "_delta_log").glob("*.json"):
        file.unlink()
    assert oracle.live_files(table) == before


def test_a_write_may_be_there_or_not(table):
    before = list(range(30))
    assert problem_before(table, "write", before) is None
    write_deltalake(str(table), rows(list(WRITTEN)), mode="append")
    assert problem_before(table, "write", before) is None
    assert problem_before(table, "vacuum", before) is not None
    write_deltalake(str(table), rows(list(APPENDED)), mode="append")
    assert problem_before(table, "write", before, appended=True) is None


def test_an_internal_error_is_unclear():
    assert unclear({"code": "USE_INTERNAL", "message": "x"})
    assert unclear({"code": "USE_FILE_SYSTEM", "message": " "})
    assert unclear({"code": "USE_FILE_SYSTEM", "message": "No space left on device"}) is None
    assert unclear({}) is None


def test_cases_of_an_operation():
    made = list(cases.cases_of("purge", {"commit": 2, "read lease": 1}, {"commit"}))
    kinds = [(c.point, c.nth, c.kind) for c in made]
    assert ("commit", 2, cases.LOST_ANSWER) in kinds
    assert ("commit", 1, cases.DELAY) in kinds
    assert [kind for point, _, kind in kinds if point == "read lease"] == [cases.ERROR]
    assert len({c.name for c in made}) == len(made)


@pytest.mark.parametrize("kind", ["empty", "cut off", "flipped bit"])
def test_damages(kind):
    content = b'{"version": 1, "since": 2}'
    for is_log in (False, True):
        changed = damage.damaged(content, kind, is_log=is_log)
        assert changed != content
        assert len(changed) == {"empty": 0, "cut off": 13, "flipped bit": 26}[kind]


def test_operations_under_way():
    notes = [
        "begin 1",
        "at 1 write rows",
        "begin 2",
        "end 1 {}",
        "at 1 late",
        "at 2 commit",
        "at None lease",
        "begin 3",
    ]
    assert kills._under_way(notes) == {2: "commit", 3: "begin"}


def test_results_go_on(tmp_path):
    file = tmp_path / "results.jsonl"
    results = Results(file)
    results.add(Outcome("a", "vacuum", "error", "commit"))
    results.add(Outcome("b", "purge", "kill", "", "rows are lost"))
    again = Results(file)
    assert (again.has("a"), again.has("c"), again.failed) == (True, False, 1)
    assert [line.split() for line in summary(again.outcomes).splitlines()[1:3]] == [
        ["vacuum", "1", "-", "1"],
        ["purge", "-", "1", "(1", "failed)", "1", "(1", "failed)"],
    ]
    assert "2 cases, 1 failed" in report(again)


def test_a_store_in_trouble():
    answered = []

    def application(environ, start_response):
        answered.append(environ)
        start_response("200 OK", [])
        return [b"ok"]

    faulty = store.FaultyStore(application, 1)
    seen = []

    def ask(path):
        return b"".join(faulty({"PATH_INFO": path}, lambda status, _: seen.append(status)))

    assert ask("/lake/x") == b"ok"
    ask(f"/_faults/{store.THROTTLED}")
    for _ in range(40):
        ask("/lake/x")
    ask("/_faults/")
    throttled = seen.count("503 Slow Down")
    assert throttled == faulty.struck[store.THROTTLED] > 2
    assert len(answered) == 41 - throttled
    assert ask("/lake/x") == b"ok"


# ------------------------------------------------------------------------------------------ with a worker that is none


class FakeWorker:
    """A worker that runs nothing; notes and answers are given."""

    made = []

    def __init__(self, folder):
        self.folder, self.is_alive, self.cases, self.recovered = folder / "w", True, [], []
        FakeWorker.made.append(self)

    def send(self, do, **arguments):
        self.cases = arguments["cases"]

    def ask(self, do, **arguments):
        if do == "recover_all":
            self.recovered = arguments["cases"]
            return {"answers": {str(case["number"]): {} for case in arguments["cases"]}}
        return {"struck": True, "appended": False, "code": "USE_FILE_SYSTEM", "message": "no"} if do == "fault" else {}

    def notes(self):
        begun = [f"begin {case['number']}" for case in self.cases[:5]]
        # The first one has ended, the others have not.
        return [*begun, f"end {self.cases[0]['number']} {{}}", f"at {self.cases[1]['number']} commit"]

    def kill(self):
        self.is_alive = False


@pytest.fixture
def tables(tmp_path):
    for name in ("a", "b"):
        write_deltalake(str(tmp_path / "templates" / name), rows(list(range(5))))
    return Tables(tmp_path, {"vacuum": "a", "purge": "b"})


def test_a_case_at_a_point(tables, tmp_path):
    case = cases.FaultCase("vacuum", "commit", 1, "first", cases.ERROR)
    outcome = cases.run(FakeWorker(tmp_path), tables, case)
    assert outcome == Outcome("vacuum / commit / first / error", "vacuum", "error", "commit", None, "USE_FILE_SYSTEM")
    assert not list((tmp_path / "tables").iterdir())


def test_each_kill_is_of_an_operation_under_way(tables, tmp_path, monkeypatch):
    monkeypatch.setattr(kills, "WorkerProcess", FakeWorker)
    monkeypatch.setattr(kills.time, "sleep", lambda _: None)
    FakeWorker.made = []
    outcomes = []
    runner = kills.Kills(tmp_path, tables, {"vacuum": 0.01, "purge": 0.01})
    runner.run(range(6), outcomes.append, lambda: False)
    assert sorted(o.case for o in outcomes) == [f"kill {n}" for n in range(6)]
    assert {o.failed for o in outcomes} == {None}
    assert "commit" in {o.where for o in outcomes}
    # Each process is judged by the next one, which is killed in its turn.
    assert [len(worker.recovered) for worker in FakeWorker.made] == [0, 4, 2]
    assert not list((tmp_path / "tables").iterdir())


def test_a_worker_may_be_killed_again(tmp_path, monkeypatch):
    endless = tmp_path / "endless.py"
    endless.write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setattr(worker_process, "WORKER", endless)
    worker = worker_process.WorkerProcess(tmp_path / "workers")
    worker.kill()
    assert not worker.is_alive
    worker.kill()
