"""The command line with Spark: inside a session that is there, and as processes of its own."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from urllib.error import URLError
from urllib.request import HTTPCookieProcessor, build_opener

import pyspark
import pytest
from click.testing import CliRunner
from placement import check_placement
from pyspark.sql import SparkSession
from service_fakes import FakeTables
from tables import NUMBERS, create, numbers

from procedures.service.service_settings import OPTIMIZATION_INTERVAL
from sql_ext import configuration, driver_process
from sql_ext.commands import runner
from sql_ext.commands.command_line import cli
from sql_ext.commands.exits import ExitCode
from sql_ext.commands.sessions import SERVICE_ENABLED_KEY
from sql_ext.dashboard import spark_fleet

ROOT = Path(__file__).resolve().parents[2]
SMALL = [
    f"--conf={setting}"
    for setting in (
        "spark.master=local[2]",
        "spark.ui.enabled=false",
        "spark.sql.shuffle.partitions=2",
        "spark.databricks.delta.snapshotPartitions=2",
    )
]
ONE_BY_ONE = ["--strategy=UnindexedFiles", "--option=batch_bytes=1"]


def test_inside_a_session(spark, new_table):
    """It uses the session that is there and leaves it as it was; the event says who asked."""
    table = new_table(NUMBERS, index="x,y", cube_size=100).append(numbers(spark, 300))
    before = dict(spark.conf.getAll)
    arguments = ["optimize", "--table", table.name, "--strategy=UnindexedFiles", "--json", "--no-progress"]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == ExitCode.DONE, done.output
    assert not done.stderr
    (row,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert (row["state"], row["rows"], row["version"]) == ("committed", 300, table.version)
    again = CliRunner().invoke(cli, arguments)
    assert again.exit_code == ExitCode.NOTHING_TO_DO
    assert "NOTHING_TO_DO" in again.stdout
    missing = CliRunner().invoke(cli, ["optimize", "--table=no.such", "--strategy=UnindexedFiles"])
    assert missing.exit_code == ExitCode.FAILED
    assert missing.stderr.startswith("use-spark: USE_TABLE_NOT_FOUND: ")
    assert SparkSession.getActiveSession() is not None
    assert dict(spark.conf.getAll) == before
    (event,) = table.sql("SELECT trigger, parameters FROM {t}.optimizations WHERE state = 'committed'")
    assert event.trigger == "cli"
    assert event.parameters["strategy"] == "UnindexedFiles"


def typed(*arguments):
    """Exit code, rows, and lines for people of a command inside the session."""
    done = CliRunner().invoke(cli, [*arguments, "--json"])
    return done.exit_code, [json.loads(line) for line in done.stdout.splitlines()], done.stderr.splitlines()


@pytest.mark.slow
def test_looking_at_a_table(spark, new_table):
    table = new_table(NUMBERS, index="x,y", cube_size=100).append(numbers(spark, 300)).index()
    table.append(numbers(spark, 50, 300))
    version = table.version
    code, (seen,), _ = typed("inspect", table.name)
    assert code == ExitCode.DONE
    assert (seen["index_columns"], seen["newest_revision"], seen["version"]) == (["x", "y"], 1, version)
    assert (seen["rows"], seen["unindexed_rows"], seen["unindexed_files"]) == (350, 50, 1)
    assert (seen["last_optimization"]["state"], seen["automatic"]) == ("committed", {"type": None, "state": "off"})
    shown = CliRunner().invoke(cli, ["inspect", table.name]).stdout
    assert "350: 300 indexed, 50 not" in shown
    code, rows, said = typed("inspect", table.name, "cubes", "--limit=1")
    assert (code, len(rows), rows[0]["revision_id"]) == (ExitCode.DONE, 1, 1)
    assert ["first 1 rows" in line for line in said] == [True]
    code, rows, _ = typed("inspect", str(table.path), "optimizations")
    assert [row["state"] for row in rows] == ["committed"]
    code, rows, _ = typed("check", "--table", table.name)
    assert (code, rows[-1]["severity"]) == (ExitCode.DONE, "ok")
    assert typed("inspect", "no.such")[0] == ExitCode.FAILED
    assert typed("inspect", f"{table.path}/none", "cubes")[2][0].startswith("use-spark: USE_TABLE_NOT_FOUND: ")
    assert table.version == version


@pytest.mark.slow
def test_acting_on_a_table(spark, new_table):
    table = new_table(NUMBERS).append(numbers(spark, 30))
    code, rows, _ = typed("index", "--table", table.name, "--columns=x,y")
    assert (code, rows[0]["properties"]) == (ExitCode.DONE, {"use.index.columns": "x,y"})
    assert typed("suspend", "--table", table.name)[1][0]["state"] == "suspended"
    assert typed("inspect", table.name)[1][0]["automatic"]["state"] == "suspended"
    assert typed("resume", "--table", table.name)[0] == ExitCode.DONE
    table.index()
    forced = ("vacuum", "--table", table.name, "--retention-hours=0", "--force")
    code, rows, _ = typed(*forced)
    assert (code, rows[0]["reason"], rows[0]["files"]) == (ExitCode.DONE, "EXPIRED", 1)
    assert typed(*forced)[0] == ExitCode.NOTHING_TO_DO
    assert typed("vacuum", "--table", table.name, "--retention-hours=0")[0] == ExitCode.FAILED
    assert typed("cancel", "--id=none")[2][0].startswith("use-spark: USE_UNKNOWN_RUN: ")


def test_sql(spark, new_table):
    table = new_table(NUMBERS, index="x,y").append(numbers(spark, 30))
    before = dict(spark.conf.getAll)
    code, rows, said = typed(
        "sql",
        f"SELECT count(*) AS n, count(*) AS n FROM {table.name}; CALL use.optimize('{table.name}')",
        f"SELECT state, map('k', double('nan')) AS m, X'00' AS b FROM {table.name}.optimizations",
    )
    assert code == ExitCode.DONE, said
    assert rows[0] == {"n": 30, "n_2": 30}
    assert rows[1]["state"] == "committed"
    assert rows[-1] == {"state": "committed", "m": {"k": "NaN"}, "b": "AA=="}
    code, rows, (line, which) = typed("sql", f"SELECT 1 AS one; SELECT no_such FROM {table.name}; SELECT 2")
    assert (code, rows) == (ExitCode.FAILED, [{"one": 1}])
    assert line.startswith("use-spark: SPARK: [UNRESOLVED_COLUMN")
    assert which == "use-spark: this was statement 2 of 3; the ones before it have taken effect"
    assert "SQLSTATE: 42703" in line
    code, rows, (line,) = typed("sql", "CALL use.optimize('no.such')")
    assert (code, "SQLSTATE: 42P01" in line) == (ExitCode.FAILED, True)
    code, rows, (line,) = typed("sql", f"SELECT * FROM {table.name}x")
    assert (code, line.endswith(f". Did you mean {table.name}?")) == (ExitCode.FAILED, True), line
    code, rows, (line,) = typed("sql", f"SELECT * FROM {table.name}.revision")
    assert (code, "no virtual table 'revision'. Did you mean revisions?" in line) == (ExitCode.FAILED, True), line
    assert "Did you mean" not in typed("sql", "SELECT * FROM no_such_thing_at_all")[2][0]
    code, rows, (line,) = typed("inspect", f"{table.name}x")
    assert (code, line.endswith(f"was not found. Did you mean {table.name}?")) == (ExitCode.FAILED, True), line
    code, rows, said = typed("sql", "SELECT * FROM range(5)", "--limit=2")
    assert ([row["id"] for row in rows], len(said)) == ([0, 1], 1)
    assert typed("sql", "SELECT 1", "--warehouse=/w")[2][0].startswith("use-spark: USE_INVALID_ARGUMENT: warehouse")
    assert dict(spark.conf.getAll) == before


def test_the_service_runs_until_a_signal(spark, monkeypatch):
    seen = []

    class Service:
        def __init__(self, session, tables, metrics, on_run):
            assert metrics is None
            seen.append((tables, session.conf.get(SERVICE_ENABLED_KEY), session.conf.get(OPTIMIZATION_INTERVAL.name)))

        def start(self):
            seen.append("started")
            os.kill(os.getpid(), signal.SIGTERM)

        def stop(self):
            seen.append("stopped")

    monkeypatch.setitem(sys.modules, "procedures.service.service", SimpleNamespace(Service=Service))
    before, handler = dict(spark.conf.getAll), signal.getsignal(signal.SIGTERM)
    done = CliRunner().invoke(cli, ["service", "--table=a.b", "--interval=1 minute"])
    assert done.exit_code == ExitCode.DONE, done.output
    assert seen == [(["a.b"], "true", "1 minute"), "started", "stopped"]
    assert "serving a.b" in done.stderr
    assert dict(spark.conf.getAll) == before
    assert signal.getsignal(signal.SIGTERM) == handler


@pytest.mark.parametrize("command", [["dashboard", "--port=0"], ["service", "--table=a.b"]])
def test_servers_end_with_spark(spark, monkeypatch, command):
    service = SimpleNamespace(start=lambda: None, stop=lambda: None)
    monkeypatch.setitem(
        sys.modules, "procedures.service.service", SimpleNamespace(Service=lambda *_args, **_named: service)
    )
    monkeypatch.setattr(spark_fleet, "SparkTables", lambda *_: FakeTables())
    monkeypatch.setattr(driver_process, "is_stopped", lambda _: True)
    done = CliRunner().invoke(cli, command)
    assert (done.exit_code, "USE_SPARK_FAILED: Spark failed: it has stopped" in done.stderr) == (ExitCode.FAILED, True)


def _title(url):
    """The title of the page behind an address with a token."""
    opener = build_opener(HTTPCookieProcessor())
    return re.search("<title>(.*)</title>", opener.open(url, timeout=60).read().decode())[1]


@pytest.mark.parametrize("command", [["dashboard", "--port=0"], ["service", "--table=a.b", "--dashboard-port=0"]])
def test_the_dashboard_is_served_until_a_signal(spark, monkeypatch, command):
    seen = []

    class Service:
        def __init__(self, session, tables, metrics, on_run):
            seen.append(len(metrics.samples((), 0)) > 0)

        def start(self):
            pass

        def stop(self):
            seen.append("stopped")

    def announce(port):
        seen.append(_title(port.url))
        seen.append(port.url)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setitem(sys.modules, "procedures.service.service", SimpleNamespace(Service=Service))
    monkeypatch.setattr(runner, "_announce", announce)
    monkeypatch.setattr(spark_fleet, "SparkTables", lambda *_: FakeTables())
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == ExitCode.DONE, done.output
    *first, title, url = [entry for entry in seen if entry != "stopped"]
    assert title == "Fleet – USE for Spark"
    assert first == ([True] if "--dashboard-port=0" in command else [])
    assert "token=" in url
    with pytest.raises(URLError):
        _title(url)
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("use-dashboard")]


@pytest.fixture
def table(spark, tmp_path):
    """Twelve unindexed files of 50 rows, by path."""
    made = create(spark, f"delta.`{tmp_path}/t`", NUMBERS, index="x,y", cube_size=100)
    for part in range(12):
        numbers(spark, 50, 50 * part, 1).write.format("delta").mode("append").save(f"{tmp_path}/t")
    return made


def start(folder, *arguments, program=(sys.executable, "-m", "sql_ext"), **environment):
    return subprocess.Popen(
        [*program, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def finish(process):
    """Exit code, rows and lines for people; every line on standard output is a row."""
    out, err = process.communicate(timeout=600)
    rows = [json.loads(line) for line in out.splitlines()]
    return process.returncode, rows, [line for line in err.splitlines() if line.startswith("use-spark: ")]


def optimize(table, *more):
    return "optimize", f"--table-location={table.path}", "--json", *SMALL, *more


@pytest.mark.slow
def test_a_process_of_its_own(table, tmp_path):
    before = table.checksum()
    code, rows, said = finish(start(tmp_path, *optimize(table, "--strategy=UnindexedFiles", "--progress")))
    assert (code, [r["state"] for r in rows], said) == (ExitCode.DONE, ["committed"], [])
    code, rows, said = finish(start(tmp_path, *optimize(table, "--strategy=UnindexedFiles")))
    assert (code, [r["reason"] for r in rows]) == (ExitCode.NOTHING_TO_DO, ["NOTHING_TO_DO"])
    assert len(said) == 1
    code, rows, said = finish(start(tmp_path, "optimize", f"--table-location={tmp_path}/none", *SMALL))
    assert (code, rows) == (ExitCode.FAILED, [])
    assert len(said) == 1
    refused = start(tmp_path, *optimize(table, "--bytes-per-iter=0"))
    out, err = refused.communicate(timeout=600)
    assert (refused.returncode, out) == (ExitCode.USAGE, "")
    assert "bytes_per_iter = 0 is not accepted: a whole number of at least 1." in err
    assert table.checksum() == before
    assert check_placement(table) == 600


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_at_the_boundary(table, tmp_path, number):
    before, version = table.checksum(), table.version
    process = start(tmp_path, *optimize(table, *ONE_BY_ONE))
    deadline = time.monotonic() + 300
    # The first commit is that of the revision.
    while table.version < version + 3:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(number)
    code, rows, said = finish(process)
    assert code == ExitCode.STOPPED
    assert [r["state"] for r in rows] == ["committed"] * (len(rows) - 1) + ["skipped"]
    assert rows[-1]["reason"] == "INTERRUPTED"
    assert 2 <= len(rows) - 1 < 12
    assert len(table.unindexed) == 12 - (len(rows) - 1)
    assert ["stopping" in said[0], "more may remain" in said[1]] == [True, True]
    assert table.checksum() == before


@pytest.mark.slow
def test_a_signal_ends_sql_at_the_boundary(table, tmp_path):
    before, version = table.checksum(), table.version
    call = f"CALL use.optimize('{table.path}', strategy => 'UnindexedFiles', options => map('batch_bytes', '1'))"
    process = start(tmp_path, "sql", "--json", *SMALL, call, "SELECT 'never' AS reason")
    deadline = time.monotonic() + 300
    # The first commit is that of the revision.
    while table.version < version + 3:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    code, rows, said = finish(process)
    assert (code, rows[-1]["reason"]) == (ExitCode.STOPPED, "INTERRUPTED")
    assert 2 <= len(rows) - 1 < 12
    assert "stopping" in said[0]
    assert table.checksum() == before


@pytest.mark.slow
def test_a_signal_ends_a_query_at_once(tmp_path):
    process = start(tmp_path, "sql", "SELECT 1", "SELECT count(a.id + b.id) FROM range(100000000) a, range(10000000) b")
    while "1" not in process.stdout.readline():
        assert process.poll() is None, process.communicate()
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == ExitCode.FAILED
    assert "use-spark: INTERRUPTED: stopped at once; uncommitted groups have no effect" in err.splitlines()
    assert "Traceback" not in err


@pytest.mark.slow
def test_tables_of_a_warehouse_outlive_the_process(tmp_path):
    """By name, across processes; nothing is written where the command was called from; one process at a time."""
    (tmp_path / "here").mkdir()
    place = (f"--warehouse={tmp_path}/my wh", *SMALL)
    make = "CREATE TABLE t (id BIGINT) USING delta TBLPROPERTIES ('use.index.columns' = 'id')"
    code, _, said = finish(
        start(tmp_path / "here", "sql", "--json", *place, make, "INSERT INTO t SELECT id FROM range(9)")
    )
    assert (code, said) == (ExitCode.DONE, [])
    first = start(tmp_path / "here", "service", *place)
    assert "serving" in next(line for line in first.stderr if "use-spark:" in line)
    code, rows, (line,) = finish(start(tmp_path / "here", "optimize", "--table=t", "--json", *place))
    assert (code, rows) == (ExitCode.FAILED, [])
    assert "USE_WAREHOUSE_IN_USE" in line
    first.send_signal(signal.SIGTERM)
    assert finish(first)[0] == ExitCode.DONE
    arguments = ("optimize", "--table=t", "--strategy=UnindexedFiles", "--json", *place)
    code, rows, _ = finish(start(tmp_path / "here", *arguments))
    assert (code, [row["rows"] for row in rows]) == (ExitCode.DONE, [9])
    code, rows, _ = finish(start(tmp_path / "here", "doctor", "--table=t", "--json", *place))
    assert (code, [row["check"] for row in rows][-2:]) == (ExitCode.DONE, ["session", "table"])
    assert not list((tmp_path / "here").iterdir())


SCRIPT = """
use() { "$PYTHON" -m sql_ext "$@" --warehouse w $SMALL; }
use sql "CREATE TABLE t (id BIGINT, x DOUBLE) USING delta TBLPROPERTIES ('use.index.columns' = 'id,x')" \
    "INSERT INTO t SELECT id, id / 7 FROM range(5000)"; echo "made $?"
use sql --json "SELECT id FROM t ORDER BY id" | head -n 1
use sql "SELECT no_such FROM t"; echo "refused $?"
use optimize --table t --bytes-per-iter=500000000 --json; echo "optimized $?"
use optimize --table t; echo "again $?"
"""


@pytest.mark.slow
def test_commands_in_a_row_on_one_warehouse(tmp_path):
    """As in a shell script: each finds the folder free, whatever became of the one before it, and says one line."""
    (tmp_path / "out").touch()
    # Into files: a pipe would be open as long as a JVM holds its end.
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
        subprocess.run(
            ["sh", "-c", SCRIPT],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHON": sys.executable, "SMALL": " ".join(SMALL)},
            stdout=out,
            stderr=err,
            check=True,
            timeout=1200,
        )
    out, err = ((tmp_path / name).read_text().splitlines() for name in ("out", "err"))
    made, row, refused, optimized, code, *nothing = out
    assert (made, row, refused, code, nothing[-1]) == ("made 0", '{"id": 0}', "refused 1", "optimized 0", "again 3")
    assert (json.loads(optimized)["strategy"], json.loads(optimized)["state"]) == ("UnindexedFiles", "committed")
    assert ["UNRESOLVED_COLUMN" in err[0], "NOTHING_TO_DO" in err[1], len(err)] == [True, True, 2]


@pytest.mark.slow
def test_cube_defragmentation_by_its_main_class(table, tmp_path):
    """As jobs start it that were written for another optimizer."""
    jar = configuration.jar()
    submit = (
        str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
        *("--master", "local[2]", "--conf", "spark.ui.enabled=false"),
        *("--class", "io.qbeast.use.managed.cli.CubeDefragmentationCLI", str(jar)),
    )
    environment = {"PYSPARK_PYTHON": sys.executable}
    table.optimize(strategy="UnindexedFiles", options={"batch_bytes": "1"})
    before = table.checksum()
    flags = [f"--table-location={table.path}", "--revision-id=1", "--bytes-per-iter=5000000", "--revision-rewrite=true"]
    process = start(tmp_path, *flags, "--json", program=submit, **environment)
    code, rows, _ = finish(process)
    assert code == ExitCode.DONE
    assert {r["strategy"] for r in rows if r["state"] == "committed"} == {"RevisionRewrite", "CubeDefragmentation"}
    assert table.checksum() == before
    refused = start(tmp_path, "--table-location=x", "--bytes-per-itr=1", program=submit, **environment)
    assert "--bytes-per-iter" in refused.communicate(timeout=120)[1]
    assert refused.returncode == ExitCode.USAGE
    without = start(tmp_path, *flags, program=submit, PYSPARK_PYTHON="/usr/bin/python3", PYTHONPATH="")
    assert "has no package use-spark" in without.communicate(timeout=120)[1]


@pytest.mark.slow
def test_started_by_spark_submit(table, tmp_path):
    """As in the documentation: settings from ``use-spark conf``, the master and everything else from spark-submit."""
    conf = start(tmp_path, "conf")
    (tmp_path / "use.conf").write_text(conf.communicate(timeout=60)[0] + "spark.ui.enabled=false\n")
    submit = (
        str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
        *("--master", "local[2]", "--properties-file", "use.conf", str(ROOT / "sql_ext" / "__main__.py")),
    )
    environment = {"PYTHONPATH": "", "PYSPARK_PYTHON": sys.executable}
    arguments = ["optimize", f"--table-location={table.path}", "--json", *ONE_BY_ONE, "--max-iterations=2"]
    code, rows, _ = finish(start(tmp_path, *arguments, program=submit, **environment))
    assert code == ExitCode.DONE
    assert [r["state"] for r in rows] == ["committed", "committed", "skipped"]
    arguments = ["optimize", f"--table-location={tmp_path}/none", "--json", *ONE_BY_ONE]
    failed = start(tmp_path, *arguments, program=submit, **environment)
    out = failed.communicate(timeout=600)[0]
    assert failed.returncode == ExitCode.FAILED
    assert "USE_TABLE_NOT_FOUND" in out
