"""The benchmark of all systems: its page shows its figures, and its parts count and compare as they say."""

import json
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from marked_pages import page_with  # noqa: E402
from peers import main, page  # noqa: E402
from peers.answers import is_same, texts_of  # noqa: E402
from peers.object_store import CountingStore  # noqa: E402
from peers.summary import summary_of  # noqa: E402
from peers.systems import SYSTEMS  # noqa: E402
from peers.worker import Account, Run, maintain  # noqa: E402
from peers.workload import Step, Table, Workload, load  # noqa: E402
from peers.workloads import customers, page_views, persons, sensors  # noqa: E402


@pytest.fixture(scope="module")
def figures():
    return json.loads(page.FIGURES.read_text("utf-8"))


@pytest.mark.parametrize("path", page.PAGES, ids=lambda path: path.name)
def test_pages_have_the_figures_of_the_benchmark(figures, path):
    text = path.read_text("utf-8")
    assert text == page_with(text, page.parts_of(page.PAGES[path], figures))


def test_every_answer_was_that_of_duckdb(figures):
    for systems in figures.values():
        assert "use" in systems
        for run in systems.values():
            assert all(query["ok"] for each in run["queries"].values() for query in each.values())


def _query(seconds=(1.0,), bytes_read=10, ok=True):
    cost = {"bytes_read": bytes_read, "requests": 1, "planning": 0.1, "cpu_seconds": 0.1}
    return {**cost, "ok": ok, "seconds": list(seconds)}


def _run(bytes_read=10, seconds=(1.0,), written=100, ok=True):
    steps = {name: {"seconds": 1, "cpu_seconds": 2, "bytes_written": 1000} for name in ("load", "lay out")}
    return {
        "spark": "4.1.0",
        "log_bytes": 1,
        "sizes": {"bulk": {"t": {"files": 1, "bytes": 1000}}},
        "steps": {**steps, "maintain": {"seconds": 1, "cpu_seconds": 1, "bytes_written": written}},
        "queries": {"bulk": {"Q1": _query(seconds, bytes_read, ok)}},
    }


def test_losses_are_listed_once_for_all_budgets_and_apart_for_each_place():
    figures = {
        f"tpch 1 4 {rest}": {"use": _run(30), "delta": _run(read)}
        for rest, read in (("2", 20), ("8", 10), ("2 s3", 15), ("2 s3 2w", 3))
    }
    lines = page.losses(figures).splitlines()[2:]
    assert [line.split(" | ")[0].removeprefix("| ") for line in lines] == [
        "TPC-H, scale 1, 4 steps, budget 2, on S3, 2 workers",
        "TPC-H, scale 1, 4 steps, budget 8",
        "TPC-H, scale 1, 4 steps, budget 2, on S3",
    ]


def test_losses_name_the_best_other_system():
    figures = {"tpch 1 4 2": {"use": _run(30), "delta": _run(20), "iceberg-sort": _run(10)}}
    assert (
        "| TPC-H, scale 1, 4 steps, budget 2 | as loaded | bytes read | 0.0 MB | 0.0 MB (Iceberg sort) | 3.00 |"
        in page.losses(figures)
    )
    assert "Q1 3.00" in page.lost_queries(figures)
    assert "bytes read" not in page.losses({"tpch 1 4 2": {"use": _run(10), "delta": _run(10)}})


def test_a_wrong_answer_cannot_be_shown():
    with pytest.raises(SystemExit, match="bulk Q1"):
        page.workloads({"tpch 1 4 2": {"use": _run(ok=False)}})


def test_times_need_ten_turns():
    turns = [1.0] * 10
    figures = {"tpch 1 4 2": {"use": _run(seconds=turns), "delta": _run(seconds=[2.0] * 10)}}
    assert "| plain Delta | as loaded | 2.00 | 2.00 to 2.00 |" in page.workloads(figures)
    assert "| as loaded | USE | 0.0 | 1 | 0.1 | 0.1 | 1.0 |" in page.workloads(figures)
    assert "time |" not in page.losses(figures)
    figures["tpch 1 4 2"]["delta"] = _run(seconds=[0.5] * 10)
    assert "| time | 1.0 s | 0.5 s (plain Delta) | 2.00 |" in page.losses(figures)
    figures["tpch 1 4 2"]["use"] = _run(seconds=turns[:9])
    assert "0.50 to 0.50" not in page.workloads(figures)
    assert "time |" not in page.losses(figures)


def test_an_overview_is_relative_to_use():
    runs = {"use": _run(30), "delta": _run(60, written=50)}
    shown = page.overview({"tpch 1 4 2": runs, "tpch 0.1 4 2": {"use": _run()}, "sensors 0.1 6 2": runs})
    assert "| system | TPC-H 1 | TPC-H 0.1 | Sensors |" in shown
    assert "| plain Delta | 2.00 / 0.50 |  | 2.00 / 0.50 |" in shown


def test_a_workload_says_when_and_of_what_it_was_measured():
    old, new = _run(), _run(seconds=[1.0] * 10) | {"measured": "2026-11-29", "commit": "abc"}
    lines = page.runs({"tpch 1 4 2": {"use": new, "delta": old}, "tpch 1 4 8": {"use": new, "delta": new}}).splitlines()
    assert lines[2:] == [
        "| TPC-H, scale 1, 4 steps, budget 2 | USE | 2026-11-29 | abc | 10 |",
        "| TPC-H, scale 1, 4 steps, budget 2 | plain Delta |  |  | 1 |",
        "| TPC-H, scale 1, 4 steps, budget 8 | all | 2026-11-29 | abc | 10 |",
    ]


def test_a_run_without_use_or_without_others_breaks_no_page():
    figures = {"tpch 1 4 2": {"delta": _run()}, "tpch 1 4 8": {"use": _run()}}
    parts = page.parts_of(page.OWN_PARTS, figures)
    assert "budget 8" in parts["workloads"]
    assert "budget 2" not in parts["workloads"]
    assert "| as loaded | none |" in page.lost_queries({"tpch 1 4 2": {"use": _run()}})


def test_results_of_other_code_are_measured_again(tmp_path, monkeypatch):
    result = tmp_path / "a.json"
    result.write_text('{"steps": []}')
    made = result.stat().st_mtime - 1
    assert not main._is_current(result, made, main.code_of("delta"))
    results = {"delta": result, "use": tmp_path / "missing.json"}
    main._note_origins(results, {system: main._origin(system) for system in results})
    assert main._is_current(result, made, main.code_of("delta"))
    assert not main._is_current(result, result.stat().st_mtime, main.code_of("delta"))
    assert main.code_of("use") != main.code_of("delta")
    monkeypatch.setattr(main, "PRODUCT", ("otree",))
    assert not main._is_current(result, made, main.code_of("use"))


@pytest.mark.parametrize(("system", "expected"), [
    ("use", ["move a", "maintain b 40", "maintain a 60"]),
    ("delta-liquid", ["lay out a", "maintain b 40", "maintain a 60"]),
])  # fmt: skip
def test_each_table_gets_the_rest_of_the_budget_and_new_columns_a_layout(system, expected):
    """Each rewrite writes 60 bytes. The first round adds 100, and the second one 80 to the debt of 20."""
    done = []

    class Storage:
        def start(self, _):
            pass

        def counts(self, _):
            return {"data.bytes_written": 60}

    class Measured(Run):
        jvm = None

        def _totals(self):
            return {}

    tables = {name: Table(name, "", ("x",)) for name in "ab"}
    steps = tuple(Step("append", table=name) for name in "ab")
    work = Workload(1, tuple(tables.values()), {}, steps)
    fake = replace(
        SYSTEMS[system],
        lay_out=lambda spark, table, size: done.append(f"lay out {table.name}"),
        maintain=lambda spark, table, size, rest: done.append(f"maintain {table.name} {rest}"),
        move=SYSTEMS[system].move and (lambda spark, table, size: done.append(f"move {table.name}")),
    )
    run, account = Measured(None, fake, Storage(), former={"a"}), Account(100)
    maintain(run, work, tables, account)
    account.share = 80
    maintain(run, work, tables, account)
    assert done == expected


def test_curves_are_relative_to_the_table():
    figures = {f"tpch 1 4 {budget}": {"use": _run(100 / budget, written=100 * budget)} for budget in (1, 2)}
    assert page.curves(figures) == {"TPC-H, scale 1, 4 steps": {"use": [(0.1, 0.1), (0.2, 0.05)]}}
    # A system with one budget has no curve.
    figures["tpch 1 4 1"]["delta"] = _run()
    assert set(page.curves(figures)["TPC-H, scale 1, 4 steps"]) == {"use"}
    assert not page.curves({"tpch 1 4 1": {"use": _run()}})


def test_a_system_without_times_shows_none_beside_others():
    counted = _run()
    del counted["queries"]["bulk"]["Q1"]["planning"]
    shown = page.workloads({"tpch 1 4 2": {"use": _run(), "delta": counted}})
    assert "| USE | 4 | 0 | 1 | 0.0 | 0.0 | 0.0 |" in shown
    assert "| plain Delta |  |  |  | 0.0 | 0.0 | 0.0 |" in shown


def test_a_summary_takes_bytes_of_the_first_round_and_times_of_the_others():
    cost = {"planning": 0.0, "task_seconds": 0.0, "cpu_seconds": 0.0, "jobs": 1}
    counts = {"data.bytes_read": 5, "data.gets": 2, "log.heads": 3, "log.bytes_read": 7, "data.bytes_written": 11}
    rounds = [
        {"step": "query", "name": "bulk", "query": "Q", "ok": True, "seconds": seconds, "counts": counts, **cost}
        for seconds in (9.0, 1.0, 2.0)
    ]
    rounds[1]["counts"] = {}
    load = {"step": "load", "seconds": 1.0, "counts": counts, **cost}
    summary = summary_of({"steps": [load, *rounds], "spark": "4", "log_bytes": 0})
    query = summary["queries"]["bulk"]["Q"]
    assert (query["bytes_read"], query["log_bytes_read"], query["requests"], query["seconds"]) == (5, 7, 5, [1.0, 2.0])
    assert summary["steps"]["load"]["bytes_written"] == 11
    once = summary_of({"steps": [load, rounds[0]], "spark": "4", "log_bytes": 0})["queries"]["bulk"]["Q"]
    assert (once["bytes_read"], once["seconds"], "planning" in once) == (5, [], False)


def test_a_run_without_timed_rounds_shows_no_times():
    counted = _run(5, seconds=())
    del counted["queries"]["bulk"]["Q1"]["planning"], counted["queries"]["bulk"]["Q1"]["cpu_seconds"]
    figures = {"tpch 1 4 2": {"use": _run(10), "delta": counted}}
    assert "bytes read | 0.0 MB | 0.0 MB (plain Delta) | 2.00 |" in page.losses(figures)
    assert "planning" not in page.losses(figures)
    assert "| 0.0 | 1 |  |  |" in page.workloads(figures)


def test_answers_may_differ_in_order_and_rounding_only():
    rows = [(1, "a ", None), (2.0000001, "b", True)]
    assert is_same([rows[1], rows[0]], texts_of(rows))
    assert is_same([(1.0, "a", None), (2, "b", True)], texts_of(rows))
    assert not is_same(rows[:1], texts_of(rows))
    assert not is_same([(1, "a", None), (3, "b", True)], texts_of(rows))
    assert not is_same([(1, "a", 0), (2, "b", True)], texts_of(rows))


@pytest.mark.slow
def test_the_time_of_tasks_is_not_that_of_the_session(spark):
    run = Run(spark, SYSTEMS["use"], None)
    before = run._task_seconds()
    time.sleep(0.2)
    assert run._task_seconds() == before
    spark.range(2_000_000).selectExpr("sum(sin(id))").collect()
    assert run._task_seconds() > before


def test_the_file_system_counts_what_a_store_would_be_asked(spark, tmp_path):
    jvm = spark.sparkContext._jvm
    files = jvm.io.usespark.testing.CountingFileSystem()
    root = tmp_path / "t"
    root.mkdir()
    for number in range(3):
        (root / f"{number}.parquet").write_bytes(bytes(100))
    (tmp_path / "other.parquet").write_bytes(bytes(100))
    files.initialize(jvm.java.net.URI("file:///"), spark.sparkContext._jsc.hadoopConfiguration())
    counting = jvm.io.usespark.testing.CountingFileSystem
    counting.start(str(root))
    path = jvm.org.apache.hadoop.fs.Path
    stream = files.open(path(str(root / "0.parquet")))
    for _ in range(10):
        stream.read()
    stream.seek(10)  # goes on where it is
    stream.read()
    stream.seek(50)
    stream.read()
    stream.close()
    assert len(files.listStatus(path(str(root)))) == 3
    files.getFileStatus(path(str(root / "1.parquet")))
    out = files.create(path(str(root / "_delta_log" / "0.json")))
    out.write(bytearray(b"0123"))
    out.close()
    other = files.open(path(str(tmp_path / "other.parquet")))
    other.read()
    other.close()
    assert dict(counting.counts()) == {
        "data.bytes_read": 12, "data.gets": 2, "data.heads": 1, "log.lists": 1, "log.puts": 1, "log.bytes_written": 4,
    }  # fmt: skip
    assert not list(tmp_path.rglob("*.crc"))


def test_a_server_counts_requests_by_bucket_and_kind_of_object():
    def answer(environ, start_response):
        start_response("200 OK", [])
        return [b"12", b"345"]

    store = CountingStore(answer)

    def ask(path, method="GET", length=""):
        environ = {"PATH_INFO": path, "REQUEST_METHOD": method, "CONTENT_LENGTH": length}
        return b"".join(store(environ, lambda *_: None))

    for path in ("/bench/t/part-1.parquet", "/bench/t/part-2.parquet", "/bench/t/_delta_log/1.checkpoint.parquet"):
        assert ask(path) == b"12345"
    ask("/bench/t/part-1.parquet", "HEAD")
    ask("/bench/t/part-3.parquet", "PUT", "7")
    ask("/bench")
    ask("/other/t/part-1.parquet")
    assert json.loads(ask("/_counts/bench")) == {
        "data.gets": 2, "data.bytes_read": 10, "log.gets": 1, "log.bytes_read": 5, "data.heads": 1,
        "data.puts": 1, "data.bytes_written": 7, "log.lists": 1,
    }  # fmt: skip
    assert json.loads(ask("/_counts/bench")) == {}
    assert json.loads(ask("/_counts/other")) == {"data.gets": 1, "data.bytes_read": 5}


def test_sizes_show_how_bytes_grow():
    figures = {"tpch 0.1 4 2": {"use": _run(1_000_000)}, "tpch 10 4 2": {"use": _run(25_000_000)}}
    assert "| TPC-H, 4 steps, budget 2 | USE | 1.00, 1 | 25.00, 1 | 5.0 |" in page.sizes(figures)
    assert "Not measured" in page.sizes({"tpch 1 4 2": {"use": _run()}})
    assert "Not measured" in page.sizes({"tpch 1 4 2": {"use": _run()}, "tpch 10 8 2": {"use": _run()}})


def test_figures_of_a_bucket_are_named():
    figures = {"tpch 1 4 2": {"use": _run()}, "tpch 1 4 2 s3": {"use": _run()}}
    assert "### TPC-H, scale 1, 4 steps, budget 2, on S3" in page.workloads(figures)
    assert not page.curves(figures)


def test_the_picture_is_drawn_from_the_recorded_figures(tmp_path):
    page.draw(json.loads(main.RESULTS.read_text("utf-8")), tmp_path / "now.svg")
    assert (tmp_path / "now.svg").read_bytes() == page.PICTURE.read_bytes()


def test_a_round_that_is_timed_has_the_machine_for_itself(tmp_path, monkeypatch):
    """Each system is timed twice in one measurement, and one of them ends early."""
    active, log = set(), []

    class Worker:
        """Asks for what it is given, and is active in between."""

        def __init__(self, name, *_):
            self.name, self.asks = name, iter(["READY", "READY", "TIMED"] if name != "short" else ["READY"])
            active.add(name)

        def go_on(self):
            active.add(self.name)

        def wait(self):
            log.append((self.name, sorted(active)))
            active.discard(self.name)
            return next(self.asks, None)

        def end(self):
            pass

    monkeypatch.setattr(main, "Worker", Worker)
    monkeypatch.setattr(main, "BUILD", tmp_path)
    main.run_in_turn({name: tmp_path / name for name in ("a", "b", "short")}, tmp_path, 2.0, 2)
    assert log[0] == ("a", ["a", "b", "short"])
    timed = log[3:8]
    assert Counter(name for name, _ in timed) == {"a": 2, "b": 2, "short": 1}
    assert all(running == [name] for name, running in timed)
    assert log[8:] == [("a", ["a", "b"]), ("b", ["b"])]


def test_a_workload_is_made_again_if_its_code_changes(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(main, "BUILD", tmp_path)
    monkeypatch.setattr(main, "WORKLOADS", {"sensors": (lambda *given: made.append(given), 10)})
    folder = main.make_workload("sensors", 0.1, 10)
    assert main.make_workload("sensors", 0.1, 10) == folder
    assert made == [(folder, 0.1, 10)]
    monkeypatch.setattr(main, "_rules", lambda: "other")
    main.make_workload("sensors", 0.1, 10)
    assert len(made) == 2


@pytest.mark.parametrize("module", [customers, page_views, persons, sensors])
def test_a_stored_history_leads_to_its_answers(module, tmp_path):
    work = module.make(tmp_path, 0.002, 2)
    assert load(tmp_path) == work
    database = duckdb.connect()
    (table,) = work.tables
    database.execute(f"CREATE TABLE {table.name} AS FROM '{tmp_path / table.rows}'")
    measured = set()
    for step in work.steps:
        rows = f"FROM '{tmp_path / step.rows}'"
        if step.kind == "append":
            database.execute(f"INSERT INTO {table.name} {rows}")
        elif step.kind == "upsert":
            database.execute(f"DELETE FROM {table.name} WHERE id IN (SELECT id {rows})")
            database.execute(f"INSERT INTO {table.name} {rows}")
        elif step.kind == "delete":
            database.execute(f"DELETE FROM {table.name} WHERE {step.condition}")
        elif step.kind == "measure":
            measured.add(step.name)
            for query in step.queries:
                found = database.execute(work.queries[query]).fetchall()
                assert is_same(found, work.answers[step.name][query]), (step.name, query)
    assert measured == set(work.answers)
    assert any(work.answers[name][query] for name in measured for query in work.answers[name])
