"""The command line apart from Spark: what is typed, what is asked for, what is printed, how it ends."""

import base64
import io
import json
import os
import shlex
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import click
import py4j.java_gateway
import pytest
from click.testing import CliRunner
from pyspark.errors import AnalysisException
from pyspark.sql import Row

from catalog.errors import TableError, UnknownNameError
from catalog.virtual_tables import VIRTUAL_TABLES
from procedures.calls.optimize import OPTIMIZE
from procedures.calls.registry import procedures
from procedures.calls.vacuum import VACUUM
from procedures.declare.signature import DETAILS, Parameter
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.loop.progress import Progress
from sql_ext.commands import runner as runners
from sql_ext.commands.command_line import cli
from sql_ext.commands.command_names import SECTIONS
from sql_ext.commands.completion import SHELLS
from sql_ext.commands.exits import ExitCode
from sql_ext.commands.gains import gain_text
from sql_ext.commands.optimize import outcome_of
from sql_ext.commands.options import option_of
from sql_ext.commands.output import plain, table_text
from sql_ext.commands.query_result import QueryResult
from sql_ext.commands.rows_command import command_name, done, rows_command
from sql_ext.commands.runner import Runner
from sql_ext.commands.session_settings import SessionSettings
from sql_ext.commands.sessions import interrupted_afterwards
from sql_ext.dashboard.address import DashboardAddress
from sql_ext.installed_versions import installed_versions
from sql_ext.server.metrics_address import MetricsAddress

COMMANDS = cli.commands
KERNEL = SimpleNamespace(kernel=object())
DEFAULTS = {p.name: None if p.required else p.default for p in OPTIMIZE.parameters if p.name != DETAILS}


def row(state, reason="REASON", **more):
    return {"iteration": 1, "strategy": None, "reason": reason, "state": state, "message": "text", **more}


class FakeRunner:
    """Answers with rows, or raises, and remembers what it was asked for."""

    def __init__(self, *result):
        self.result = result
        self.asked = []
        self.told = None

    def optimize(self, arguments, session_settings, tell=None):
        self.told = tell
        self.asked.append((arguments, session_settings))
        if self.result and isinstance(self.result[0], BaseException):
            raise self.result[0]
        return list(self.result)

    def serve(
        self,
        tables,
        session_settings,
        metrics_address=None,
        dashboard_address=None,
        *,
        metrics_tables=0,
        is_quiet=False,
    ):
        self.asked.append((tables, session_settings, metrics_address, dashboard_address, is_quiet, metrics_tables))

    def dashboard(self, address, session_settings):
        self.asked.append((address, session_settings))

    def call(self, procedure, arguments, session_settings):
        self.asked.append((procedure.name, arguments))
        return self.optimize(arguments, session_settings)

    def statements(self, texts, limit, session_settings, show):
        self.asked.append((texts, limit))
        for result in self.optimize(texts, session_settings):
            if isinstance(result, BaseException):
                raise result
            show(result)
        return True

    def overview(self, name, session_settings):
        self.asked.append(name)
        return OVERVIEW

    def virtual_table(self, name, view, limit, session_settings, show):
        self.asked.append((name, view, limit))
        show(QueryResult(("a",), [{"a": 1}], limit))


OVERVIEW = {
    "name": "c.d.t",
    "location": "file:/t",
    "version": 3,
    "index_columns": ["a", "b"],
    "newest_revision": 1,
    "revisions": 1,
    "files": 5,
    "indexed_files": 3,
    "unindexed_files": 2,
    "small_files": 4,
    "rows": 1200,
    "indexed_rows": 1000,
    "unindexed_rows": 200,
    "rows_known": True,
    "files_with_deleted_rows": 1,
    "deleted_rows": 30,
    "bytes": 1_500_000,
    "unindexed_bytes": 900,
    "properties": {"use.index.columns": "a,b"},
    "last_optimization": None,
    "automatic": {"type": None, "state": "off"},
}


def run(runner, *arguments):
    return CliRunner().invoke(cli, arguments, obj=runner)


def asked_by(*arguments):
    runner = FakeRunner(row("committed"))
    result = run(runner, "optimize", "--table-location=/t", *arguments)
    assert result.exit_code == ExitCode.DONE, result.output
    return runner.asked[0][0]


def test_output_that_cannot_be_written():
    def end(redirection):
        command = f"{sys.executable} -m sql_ext --help {redirection}"
        done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stderr

    assert end(">&-") == (1, "use-spark: standard output: it is closed\n")
    assert end("> /dev/full") == (1, "use-spark: standard output: No space left on device\n")


@pytest.mark.parametrize("message", ["Exception while sending command.", "KeyboardInterrupt while sending command."])
def test_a_connection_that_ends_or_is_interrupted_leaves_no_stack(message):
    """Py4J logs to the root logger."""
    assert f'"{message}"' in Path(py4j.java_gateway.__file__).read_text(encoding="utf-8")
    logged = f"logging.exception('{message}'), logging.error('another')"
    command = f"import logging; from sql_ext.commands import command_line as c; c._run = lambda: ({logged}); c.main()"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "ERROR:root:another\n")


def test_a_relative_path_in_a_folder_that_is_gone(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    done = CliRunner().invoke(cli, ["inspect", "./t"])
    assert (done.exit_code, "is relative to a folder that is gone" in done.stderr) == (2, True)


def test_relative_paths_are_those_of_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "data" / "a b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "data")
    for name, expected in {
        "./a b": f"file:{tmp_path}/data/a b",
        "../data": f"file:{tmp_path}/data",
        "a b/": f"file:{tmp_path}/data/a b",
        "/a/b": "/a/b",
        "/a/o`b": "/a/o`b",
        "s3a://a/b": "s3a://a/b",
        "delta.`/a/b`": "delta.`/a/b`",
        "db.`a/b`": "db.`a/b`",
        "db.t": "db.t",
    }.items():
        runner = FakeRunner(row("committed"))
        assert run(runner, "optimize", f"--table={name}").exit_code == ExitCode.DONE
        assert runner.asked[0][0]["table"] == expected


def test_the_command_of_the_reference():
    given = asked_by("--revision-id=1", "--bytes-per-iter=5000000", "--revision-rewrite=true")
    expected = {"table": "/t", "revision_id": 1, "bytes_per_iter": 5_000_000, "revision_rewrite": True}
    assert given == {**DEFAULTS, **expected}


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ((), {}),
        (("--revision-rewrite=false",), {"revision_rewrite": False}),
        (("--dry-run",), {"dry_run": True}),
        (("--dry-run=false",), {"dry_run": False}),
        (("--strategy=UnindexedFiles,LeveledCompaction",), {"strategy": "UnindexedFiles,LeveledCompaction"}),
        (("--revision-id=0",), {"revision_id": 0}),
        (("--where", "a > 1 AND b = 'x=y'"), {"where": "a > 1 AND b = 'x=y'"}),
        (("--files=a.parquet", "--files=b.parquet"), {"files": ["a.parquet", "b.parquet"]}),
        (("--plan=0123456789ab", "--group=3", "--group=1"), {"plan": "0123456789ab", "groups": [3, 1]}),
        (("--option", "batch_bytes=5", "--option", "x=a=b"), {"options": {"batch_bytes": "5", "x": "a=b"}}),
        (("--parallelism=3", "--max-iterations=2"), {"parallelism": 3, "max_iterations": 2}),
        (("--max-bytes=9", "--max-duration", "10 minutes"), {"max_bytes": 9, "max_duration": "10 minutes"}),
    ],
    ids=str,
)
def test_options_are_the_parameters(typed, expected):
    given = asked_by(*typed)
    assert given == {**DEFAULTS, "table": "/t", **expected}


def test_a_name_in_place_of_a_location():
    runner = FakeRunner(row("committed"))
    assert run(runner, "optimize", "--table", "db.t").exit_code == ExitCode.DONE
    assert runner.asked[0][0]["table"] == "db.t"


@pytest.mark.parametrize("declared", list(procedures().values()), ids=lambda p: p.name)
def test_any_procedure_can_be_a_command(declared):
    """Adding one is adding a line: its options come from its declaration, each with its sentence."""
    text = CliRunner().invoke(rows_command(declared), ["--help"]).output
    assert declared.name == "help" or command_name(declared) in COMMANDS
    for parameter in (p for p in declared.parameters if p.name != DETAILS):  # tables hide what does not fit
        option = option_of(parameter)
        assert option.name == parameter.name
        assert parameter.doc.split(",")[0].split()[0] in text


@pytest.mark.parametrize(
    "typed",
    [
        (),
        ("--table-location=/t", "--bytes-per-iter=many"),
        ("--table-location=/t", "--revision-rewrite=perhaps"),
        ("--table-location=/t", "--option", "novalue"),
        ("--table-location=/t", "--option", "=1"),
        ("--table-location=/t", "--conf", "spark.master"),
        ("--table-location=/t", "--revision-id=99999999999999999999"),
        ("--table-location=/t", "--unknown"),
        ("--table-location=/t", "--log-level=loud"),
    ],
    ids=str,
)
def test_wrong_options_are_refused_before_anything(typed):
    runner = FakeRunner()
    result = run(runner, "optimize", *typed)
    assert result.exit_code == ExitCode.USAGE
    assert not runner.asked
    assert not result.stdout
    assert "Error" in result.stderr


def test_what_the_procedure_refuses_is_named():
    class Checking(FakeRunner):
        def optimize(self, arguments, session_settings, tell=None):
            OptimizeSettings.of(arguments)

    result = run(Checking(), "optimize", "--table=t", "--strategy=LeveledCompaktion")
    assert result.exit_code == ExitCode.USAGE
    assert len(result.stderr.splitlines()) == 1
    assert "USE_UNKNOWN_STRATEGY" in result.stderr
    assert "LeveledCompaction" in result.stderr


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (TableError.missing("t", "no such\nfolder"), ExitCode.FAILED, "USE_TABLE_NOT_FOUND"),
        (UnknownNameError.of("revision", "7", ["1"]), ExitCode.USAGE, "USE_UNKNOWN_REVISION"),
        (KeyboardInterrupt(), ExitCode.FAILED, "INTERRUPTED"),
        (ConnectionRefusedError(111, "Connection refused"), ExitCode.FAILED, "SPARK"),
    ],
    ids=["failed", "usage", "interrupted", "without a JVM"],
)
def test_an_error_is_one_line(error, code, text):
    result = run(FakeRunner(error), "optimize", "--table=t")
    assert result.exit_code == code
    assert not result.stdout
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"use-spark: {text}: ")


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([row("committed"), row("committed")], ExitCode.DONE),
        ([row("planned")], ExitCode.DONE),
        ([row("failed"), row("committed")], ExitCode.DONE),
        ([row("committed"), row("skipped", "LIMIT_REACHED")], ExitCode.DONE),
        ([row("committed"), row("failed"), row("failed")], ExitCode.FAILED),
        ([row("failed"), row("skipped", "TOO_FEW_ROWS")], ExitCode.FAILED),
        ([row("skipped", "NOTHING_TO_DO")], ExitCode.NOTHING_TO_DO),
        ([row("skipped", "LEASE_HELD")], ExitCode.NOTHING_TO_DO),
        ([row("committed"), row("skipped", "INTERRUPTED")], ExitCode.STOPPED),
        ([row("committed"), row("skipped", "CANCELLED")], ExitCode.STOPPED),
        ([], ExitCode.NOTHING_TO_DO),
    ],
    ids=lambda v: (
        "-".join(r["reason"] if r["state"] == "skipped" else r["state"] for r in v) if type(v) is list else ""
    ),
)
def test_exit_codes(rows, code):
    assert outcome_of(rows) == code
    result = run(FakeRunner(*rows), "optimize", "--table=t", "--json")
    assert result.exit_code == code
    if rows and code not in (ExitCode.DONE, ExitCode.NOTHING_TO_DO):
        assert rows[-1]["reason"] in result.stderr


def test_the_last_line_says_what_was_gained():
    sizes = {
        "input_files": 12,
        "input_bytes": 34_100_000,
        "output_files": 1,
        "output_bytes": 31e6,
        "duration_ms": 14_700,
    }
    rows = [row("committed", **sizes), row("skipped", **dict.fromkeys(sizes, 0))]
    text = "rewrote 12 files (34.1 MB) as 1 file (31.0 MB) in 14.7 s"
    assert gain_text(rows) == text
    assert gain_text(rows, 1.0, 0.123) == f"{text}; a 10 % sample reads 12 % of the bytes, and read 100 % before"
    assert gain_text(rows[1:]) is None

    class Telling(FakeRunner):
        def optimize(self, arguments, session_settings, tell=None):
            tell(text)
            return super().optimize(arguments, session_settings, tell)

    runner = FakeRunner(*rows)
    result = run(Telling(*rows), "optimize", "--table=t")
    assert result.stderr == f"use-spark: {text}\n"
    assert result.output.endswith(result.stderr)
    for for_programs in ("--json", "--csv"):
        run(runner, "optimize", "--table=t", for_programs)
        assert runner.told is None


def test_exit_codes_are_a_contract():
    assert {c.name: c.value for c in ExitCode} == {
        "DONE": 0,
        "FAILED": 1,
        "USAGE": 2,
        "NOTHING_TO_DO": 3,
        "STOPPED": 4,
    }


def test_json_lines():
    rows = [row("failed", rows=None), row("committed", rows=7, message='two\nlines, "ü"')]
    result = run(FakeRunner(*rows), "optimize", "--table=t", "--json")
    assert [json.loads(line) for line in result.stdout.splitlines()] == rows
    assert not result.stderr


def test_a_table_for_people():
    assert table_text(["name", "rows"], [["a", 5], ["long", None], [None, 1234]]).splitlines() == [
        "name  rows",
        "----  ----",
        "a        5",
        "long",
        "      1234",
    ]
    result = run(FakeRunner(row("committed")), "optimize", "--table=t")
    assert len(result.stdout.splitlines()) == 3


def test_wishes_for_the_session():
    runner = FakeRunner(row("committed"))
    options = ("--conf", "spark.master=local[3]", "--conf", "a=b=c", "--no-progress", "--log-level=warn")
    assert run(runner, "optimize", "--table=t", *options).exit_code == ExitCode.DONE
    assert runner.asked[0][1] == SessionSettings({"spark.master": "local[3]", "a": "b=c"}, False, "WARN")


def test_the_service_gets_its_tables_and_intervals():
    runner = FakeRunner()
    options = ("--table=a.b", "--table=/x", "--interval=1 minute", "--listener-interval=5000", "--max-tables=4")
    assert run(runner, "service", *options).exit_code == ExitCode.DONE
    (tables, session_settings, *addresses, is_quiet, _) = runner.asked[0]
    assert tables == ("a.b", "/x")
    assert addresses == [None, None]
    assert not is_quiet
    assert session_settings.conf == {
        "spark.qbeast.use.optimization-interval": "1 minute",
        "spark.qbeast.use.listener-interval": "5000",
        "spark.qbeast.use.service.max-tables": "4",
    }
    assert run(FakeRunner(), "service", "--max-tables=0").exit_code == ExitCode.USAGE


def test_a_quiet_service():
    runner = FakeRunner()
    assert run(runner, "service", "--quiet").exit_code == ExitCode.DONE
    assert runner.asked[0][4]


def test_the_service_gets_the_address_of_its_metrics():
    runner = FakeRunner()
    assert run(runner, "service", "--metrics-port=9464", "--metrics-host=::1").exit_code == ExitCode.DONE
    assert run(runner, "service", "--metrics-port=0").exit_code == ExitCode.DONE
    assert [asked[2] for asked in runner.asked] == [MetricsAddress(9464, "::1"), MetricsAddress(0, "127.0.0.1")]
    assert run(runner, "service", "--metrics-port=65536").exit_code == ExitCode.USAGE


def test_the_service_gets_the_number_of_tables_with_metrics():
    runner = FakeRunner()
    assert run(runner, "service", "--metrics-port=0", "--metrics-tables=7").exit_code == ExitCode.DONE
    assert runner.asked[0][5] == 7
    refused = run(runner, "service", "--metrics-tables=7")
    assert refused.exit_code == ExitCode.USAGE
    assert "--metrics-tables = 7 needs --metrics-port" in refused.stderr
    assert run(runner, "service", "--metrics-port=0", "--metrics-tables=1001").exit_code == ExitCode.USAGE


def test_the_dashboard_gets_its_address():
    runner = FakeRunner()
    options = ("--dashboard-port=0", "--dashboard-host=::1", "--dashboard-auth=none")
    assert run(runner, "service", *options).exit_code == ExitCode.DONE
    assert run(runner, "service", "--dashboard-auth=none").exit_code == ExitCode.DONE
    assert run(runner, "dashboard", "--token-file=/t", "--conf=a=b").exit_code == ExitCode.DONE
    assert [asked[3] for asked in runner.asked[:2]] == [DashboardAddress(0, "::1", "none", prefix="dashboard-"), None]
    assert runner.asked[2][0] == DashboardAddress(8765, "127.0.0.1", "token", Path("/t"))
    assert runner.asked[2][1].conf == {"a": "b"}
    assert run(runner, "dashboard", "--auth=password").exit_code == ExitCode.USAGE


def test_conf_prints_properties():
    lines = dict(line.split("=", 1) for line in run(FakeRunner(), "conf").stdout.splitlines())
    assert lines["spark.sql.extensions"] == "io.usespark.UseSessionExtension"
    assert lines["spark.jars"].endswith(installed_versions({}).shim)


def test_every_declared_type_has_an_option():
    for declared, typed in [("INT", "1"), ("DOUBLE", "1.5"), ("STRING", "x"), ("BIGINT", "2"), ("BOOLEAN", "true")]:
        assert option_of(Parameter("p", declared, "Doc.", None)).type is not None, typed


def test_a_procedure_is_called_with_its_arguments():
    runner = FakeRunner({"table": "t", "message": "fine"})
    result = run(runner, "index", "--table", "t", "--columns", "a,b:hashing", "--cube-size=7")
    assert result.exit_code == ExitCode.DONE, result.output
    name, given = runner.asked[0]
    assert name == "index"
    assert (given["columns"], given["cube_size"], given["convert"]) == ("a,b:hashing", 7, False)
    assert "fine" in result.stdout


def test_no_rows_are_said():
    result = run(FakeRunner(), "status")
    assert (result.exit_code, result.stdout, result.stderr) == (ExitCode.DONE, "", "use-spark: no rows\n")
    assert not run(FakeRunner(), "status", "--json").output


@pytest.mark.parametrize(
    "typed",
    [
        ("vacuum", "--table=t", "--mode=fast"),
        ("vacuum", "--table=t", "--retention-hours=-1"),
        ("vacuum", "--table=t", "--retention-hours=nan"),
        ("vacuum", "--table=t", "--parallelism=0"),
        ("vacuum", "--table=t", "--inventory=x", "--mode=lite"),
        ("vacuum", "--table=t", "--max-files-per-second=0"),
        ("optimize", "--table=t", "--strategy=Unindexed"),
        ("optimize", "--table=t", "--option=batch_byte=1"),
        ("optimize", "--table= "),
        ("optimize", "--table=db.`t"),
        ("optimize", "--table=t", "--conf=spark.qbeast.use.progress=maybe"),
        ("optimize", "--table=t", "--conf=spark.qbeast.use.progres=true"),
        ("service", "--conf=spark.qbeast.use.fleet.maxBytes=much"),
        ("service", "--conf=spark.qbeast.use.retention.hours=200"),
        ("compact", "--table=t", "--min-deleted-ratio=2"),
        ("compact", "--table=t", "--primary-key=id", "--primary-key=id", "--order-by=t"),
        ("compact", "--table=t", "--primary-key=", "--order-by=t"),
        ("compact", "--table=t", "--primary-key=id", "--order-by= "),
        ("optimize", "--table=t", "--files="),
        ("index", "--table=t", "--columns=a,b,a"),
        ("clustering-information", "--table=t", "--columns=a,a"),
        ("vacuum", "--table=t", "--inventory= "),
        ("report", "--table=t", "--columns=", "--columns=a"),
        ("recommend", "--table=t", "--queries="),
        ("consolidate-log", "--schema="),
        ("cancel", "--id="),
        ("approximate", ""),
        ("explain-skipping", " "),
        ("purge", "--table=t", "--older-than=soon"),
        ("plan", "--table=t", "--max-file-bytes=0"),
        ("consolidate-log", "--table=t", "--modes=commit"),
        ("protect", "--table=t", "--version=1", "--name=../a"),
        ("service", "--interval=soon"),
        ("service", "--listener-interval=-1"),
        ("service", "--table="),
        ("thrift", "--host="),
        ("inspect", " "),
        ("index", "--table=t", "--columns=a:lineal"),
        ("index", "--table=t", "--columns=a,,b"),
        ("index", "--table=t", "--columns=a", "--column-stats={"),
        ("index", "--table=t", "--columns=a", '--column-stats={"a": 1}'),
        ("index", "--table=t", "--columns= "),
        ("index", "--table=t", "--columns=a", "--cube-size=0"),
        ("quantiles", "--table=t", "--column=a", "--n=1"),
        ("quantiles", "--table=t", "--column= "),
        ("clustering-information", "--table=t", "--columns= "),
        ("clustering-information", "--table=t", "--columns=a,,b"),
        ("inspect", "no/such/folder"),
        ("optimize", "--table=../no_such_folder"),
        ("quantiles", "--table=t", "--column=a", "--relative-error=2"),
        ("optimize", "--table=t", "--parallelism=0"),
        ("sql",),
        ("sql", " ; -- nothing"),
        ("sql", "SELECT 1", "--limit=0"),
        ("inspect",),
        ("inspect", "t", "no_such_view"),
        ("inspect", "t", "cubes", "--view=blocks"),
        ("completion", "tcsh"),
        ("cancel",),
    ],
    ids=" ".join,
)
def test_wrong_usage_costs_no_session(typed, monkeypatch):
    """With the real runner, which must not get as far as a session."""
    monkeypatch.setattr(runners, "session", None)
    result = run(Runner(), *typed)
    assert result.exit_code == ExitCode.USAGE, result.output
    assert not result.stdout


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        (("optimise",), "Did you mean optimize?"),
        (("optimize", "--table=t", "--strategy=Unindexed"), "Did you mean UnindexedFiles?"),
        (("optimize", "--table=t", "--option=batch_byte=1"), "Did you mean batch_bytes?"),
        (("optimize", "--table=t", "--conf=spark.qbeast.use.progres=true"), "Did you mean spark.qbeast.use.progress?"),
        (("service", "--conf=spark.qbeast.use.fleet.maxByte=1"), "Did you mean spark.qbeast.use.fleet.maxBytes?"),
        (("index", "--table=t", "--columns=a:lineal"), "Did you mean linear?"),
        (("inspect", "t", "revision"), "revisions"),
    ],
)
def test_wrong_names_get_a_hint(typed, hint):
    result = run(Runner(), *typed)
    assert (result.exit_code, hint in result.stderr) == (ExitCode.USAGE, True), result.output


@pytest.mark.parametrize(
    "conf",
    [
        "spark.qbeast.use.fleet.maxBytes=200GB",
        "spark.qbeast.use.fleet.hours=01:00-05:00",
        "spark.qbeast.use.index.targetFileBytes=64MB",
        "spark.qbeast.use.compaction.deletedRatio=0.1",
        "spark.qbeast.use.optimization.batch-bytes=1000000",
    ],
)
def test_defaults_of_properties_are_settings(conf):
    (option,) = (param for param in COMMANDS["service"].params if param.name == "conf")
    entries = option.process_value(click.Context(COMMANDS["service"]), (conf,))
    assert entries == (tuple(conf.split("=", 1)),)


def test_wrong_usage_starts_no_jvm_and_is_quick(tmp_path):
    """The whole process, with a Java that would leave a trace."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    java.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "sql_ext", "optimize", "--table=t", "--strategy=Unindexed"],
        env={
            "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
            "PATH": f"{java.parent}:/usr/bin:/bin",
            "JAVA_HOME": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
    assert "Did you mean UnindexedFiles?" in done.stderr
    assert not (tmp_path / "started").exists()
    assert done.stderr.count("import time:") < 350, "modules: about 290"
    assert "pyspark" not in done.stderr


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([{"path": None, "reason": "KEPT", "files": 2, "bytes": 9, "state": "kept"}], ExitCode.NOTHING_TO_DO),
        ([{"path": None, "reason": "UNREFERENCED", "files": 4, "bytes": 9, "state": "deleted"}], ExitCode.DONE),
        ([{"path": "/t/a", "reason": "UNREFERENCED", "files": 1, "bytes": 9, "state": "planned"}], ExitCode.DONE),
        ([], ExitCode.NOTHING_TO_DO),
    ],
    ids=["none", "some", "planned", "nothing planned"],
)
def test_a_vacuum_that_deletes_nothing(rows, code):
    result = run(FakeRunner(*rows), "vacuum", "--table=t", "--json")
    assert result.exit_code == code, result.output
    assert len(result.stdout.splitlines()) == len(rows)


@pytest.mark.parametrize(("severity", "code"), [("ok", 0), ("warning", 0), ("error", 1)])
def test_a_check_that_finds_errors_fails(severity, code):
    rows = [{"check": check, "severity": severity, "message": "m"} for check in ("ROW_COUNT", "SUMMARY")]
    assert run(FakeRunner(*rows), "check", "--table=t").exit_code == code


def test_sql_prints_every_answer():
    runner = FakeRunner(
        QueryResult(("a", "b"), [{"a": 1, "b": None}]), QueryResult((), []), QueryResult(("n",), [{"n": 2}], 1)
    )
    result = run(runner, "sql", "SELECT 1 a, NULL b; SET x = 1", "SELECT 2 n", "--limit=1")
    assert result.exit_code == ExitCode.DONE, result.output
    assert runner.asked[0] == (["SELECT 1 a, NULL b", "SET x = 1", "SELECT 2 n"], 1)
    assert result.stdout.split("\n") == ["a  b", "-  -", "1", "n", "-", "2", ""]
    assert result.stderr == "use-spark: these are the first 1 rows; --limit shows more\n"
    runner = FakeRunner(QueryResult(("a", "b"), [{"a": 1, "b": None}]), QueryResult((), []))
    assert run(runner, "sql", "--json", "SELECT 1").stdout == '{"a": 1, "b": null}\n'
    assert runner.asked[0][1] is None
    run(runner := FakeRunner(), "sql", "SELECT 1")
    assert runner.asked[0][1] == 1000


def test_formats_for_programs():
    runner = FakeRunner(QueryResult(("a", "b"), [{"a": 1, "b": None}]), QueryResult((), []))
    assert run(runner, "sql", "--csv", "SELECT 1").stdout == "a,b\n1,\n"
    assert runner.asked[0][1] is None
    result = run(FakeRunner(row("committed")), "optimize", "--table=t", "--csv")
    assert result.stdout.splitlines() == ["iteration,strategy,reason,state,message", "1,,REASON,committed,text"]
    both = run(FakeRunner(), "optimize", "--table=t", "--csv", "--json")
    assert (both.exit_code, "two formats" in both.stderr) == (ExitCode.USAGE, True)


def test_sql_from_stdin():
    runner = FakeRunner()
    result = CliRunner().invoke(cli, ["sql", "-", "SELECT 3"], input="SELECT 1;\nSELECT 'ü'", obj=runner)
    assert result.exit_code == ExitCode.DONE, result.output
    assert runner.asked[0][0] == ["SELECT 1", "SELECT 'ü'", "SELECT 3"]


def test_an_error_of_sql_is_one_line_with_its_state():
    error = AnalysisException("[PARSE] Syntax error at 'x'. SQLSTATE: 42601 (line 1, pos 0)\n\n== SQL ==\nx\n^^^")
    result = run(FakeRunner(error), "sql", "x")
    assert result.exit_code == ExitCode.FAILED
    assert result.stderr == "use-spark: SPARK: [PARSE] Syntax error at 'x'. SQLSTATE: 42601 (line 1, pos 0)\n"
    error = AnalysisException("[USE_TABLE_NOT_FOUND] table = 't' was not found. SQLSTATE: 42P01")
    result = run(FakeRunner(error), "sql", "CALL use.optimize('t')")
    assert result.stderr == "use-spark: [USE_TABLE_NOT_FOUND] table = 't' was not found. SQLSTATE: 42P01\n"


def test_the_failed_one_of_many_statements_is_named():
    runner = FakeRunner(QueryResult((), []), AnalysisException("[PARSE] no"))
    result = run(runner, "sql", "SET a = 1; SELEC; SET b = 2")
    assert result.exit_code == ExitCode.FAILED
    assert result.stderr.splitlines() == [
        "use-spark: SPARK: [PARSE] no",
        "use-spark: this was statement 2 of 3; the ones before it have taken effect",
    ]


def test_an_overview():
    result = run(FakeRunner(), "inspect", "t")
    lines = dict(line.split("  ", 1) for line in result.stdout.splitlines())
    assert lines["rows"].strip() == "1,200: 1,000 indexed, 200 not"
    assert lines["size"].strip() == "1.5 MB: 900 bytes not indexed"
    assert lines["index columns"].strip() == "a, b"
    assert json.loads(run(FakeRunner(), "inspect", "t", "--json").stdout) == OVERVIEW


@pytest.mark.parametrize("typed", [("t", "cubes"), ("t", "--view=cubes"), ("--view", "cubes", "t", "cubes")])
def test_a_view(typed):
    runner = FakeRunner()
    result = run(runner, "inspect", *typed, "--limit=3")
    assert result.exit_code == ExitCode.DONE, result.output
    assert runner.asked == [("t", "cubes", 3)]


def test_every_virtual_table_is_a_view():
    for name in VIRTUAL_TABLES:
        assert run(FakeRunner(), "inspect", "t", name).exit_code == ExitCode.DONE


def test_a_view_that_is_a_procedure():
    runner = FakeRunner({"check": "A"}, {"check": "B"})
    result = run(runner, "inspect", "t", "check", "--limit=1")
    assert runner.asked[0] == ("check", {"table": "t"})
    assert result.stdout.splitlines() == ["check", "-----", "A"]
    assert "first 1 rows" in result.stderr


def test_values_as_json_can_hold_them():
    nested = Row(x=1.5, y=[bytearray(b"\x00"), float("inf")], z={1: float("nan")})
    assert plain(nested) == {"x": 1.5, "y": [base64.b64encode(b"\x00").decode(), "Infinity"], "z": {"1": "NaN"}}
    assert plain(float("-inf")) == "-Infinity"


def test_cells_are_one_line():
    assert table_text(["a", "b"], [["x\ny", True], [["é"], None]]).splitlines()[2:] == ["x\\ny   true", '["é"]']


def test_cells_and_names_of_columns_control_no_terminal():
    hostile = "\x1b]0;title\x07\x9b2J\u2028\udcff"
    text = table_text([hostile, "b"], [[hostile, [hostile]]])
    assert text.replace("\n", "").isprintable()
    assert len(text.splitlines()) == 3


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_examples_of_the_help_are_accepted(name):
    """Each is parsed as typed; nothing behind it runs."""
    text = COMMANDS[name].epilog or ""
    examples = [line.strip() for line in text.splitlines() if line.strip().startswith("use-spark")]
    assert examples
    for example in examples:
        typed = shlex.split(example)
        typed = typed[1 : next((i for i, word in enumerate(typed) if word in "<>|"), None)]
        if name in ("diagnose", "doctor", "thrift"):
            COMMANDS[name].make_context(name, typed[1:])
            continue
        result = CliRunner().invoke(cli, typed, obj=FakeRunner(), input="SELECT 1")
        assert result.exit_code in (ExitCode.DONE, ExitCode.NOTHING_TO_DO), (example, result.output)


def test_the_help_lists_every_command():
    """From names alone. Every procedure but help is a command."""
    listed = [name for names in SECTIONS.values() for name in names]
    assert len(listed) == len(set(listed))
    own = {"completion", "conf", "dashboard", "diagnose", "doctor", "inspect", "service", "sql", "thrift"}
    assert set(listed) == own | {command_name(p) for p in procedures().values() if p.name != "help"}
    assert set(COMMANDS) == set(listed)
    text = run(FakeRunner(), "--help").output
    assert all(f"  {name} " in text for name in listed)
    unknown = run(FakeRunner(), "optimise")
    assert (unknown.exit_code, "Did you mean optimize?" in unknown.output) == (ExitCode.USAGE, True)


def test_the_help_imports_no_command():
    """The first thing that a newcomer types needs the names alone."""
    code = "import sys; from sql_ext.commands.command_line import cli; cli(['--help'], standalone_mode=False)"
    check = "print(*sorted(name for name in sys.modules if name.startswith(('sql_ext.commands.', 'pyspark', 'numpy'))))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; {check}"],
        env={"PYTHONPATH": str(Path(__file__).resolve().parents[2]), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "sql_ext.commands.command_line sql_ext.commands.command_names"


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_scripts(shell):
    result = run(FakeRunner(), "completion", shell)
    assert result.exit_code == ExitCode.DONE, result.output
    assert "_USE_SPARK_COMPLETE" in result.stdout
    assert "use-spark" in result.stdout


def test_completion_answers_as_bash_asks():
    """The entry point, called as the printed script calls it."""
    environment = {"_USE_SPARK_COMPLETE": "bash_complete", "COMP_WORDS": "use-spark vacuum --re", "COMP_CWORD": "2"}
    asked = subprocess.run(
        [sys.executable, "-m", "sql_ext"],
        env={**environment, "PYTHONPATH": str(Path(__file__).resolve().parents[2]), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.stdout == "plain,--retention-hours\n", asked.stderr


def test_vacuum_has_every_option_of_its_declaration():
    names = {option.name for option in COMMANDS["vacuum"].params}
    assert {p.name for p in VACUUM.parameters} <= names


@pytest.mark.parametrize(("shell", "shown"), [(None, False), (SimpleNamespace(), False), (KERNEL, True)])
def test_a_bar_is_drawn_where_someone_looks(shell, shown, monkeypatch):
    """Packages of notebooks that are merely imported, as by pyspark, are no notebook."""
    monkeypatch.setitem(sys.modules, "ipykernel", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    session = SimpleNamespace(conf=SimpleNamespace(get=lambda key, default: default))
    with Progress(session, "title") as progress:
        assert (progress._bar is not None) == shown


@pytest.fixture
def interrupts():
    """Ctrl-C has its usual effect, although a shell lets programs in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_waits_until_spark_has_started(interrupts):
    """A JVM that is being started would stay behind; the second one has its usual effect."""
    begun = []

    def start(count):
        with interrupted_afterwards():
            for number in range(count):
                begun.append(number)
                os.kill(os.getpid(), signal.SIGINT)
            begun.append("started")

    for count, seen in ((0, ["started"]), (1, [0, "started"]), (2, [0, 1])):
        begun.clear()
        if count:
            with pytest.raises(KeyboardInterrupt):
                start(count)
        else:
            start(count)
        assert begun == seen
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_that_is_ignored_stays_so(interrupts):
    """As of a program that a shell has started in the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interrupted_afterwards():
        os.kill(os.getpid(), signal.SIGINT)


def test_every_command_that_is_stopped_has_the_code_of_it():
    assert done([]) == done([{"state": "committed"}]) == ExitCode.DONE
    assert done([{"reason": None}, {"reason": "INTERRUPTED"}]) == done([{"reason": "CANCELLED"}]) == ExitCode.STOPPED


def test_sigterm_lets_the_groups_of_every_command_commit(monkeypatch):
    """A run, here one of ``compact``, is asked to stop, and the process lives on."""
    asked = []
    run = SimpleNamespace(request_stop=lambda *what: asked.append(what))
    runs = SimpleNamespace(announcing_stops=lambda _: nullcontext(), live=lambda: [run])

    class Compact:
        name, short = "compact", False

        def checked(self, arguments):
            return arguments

        def call(self, *_):
            os.kill(os.getpid(), signal.SIGTERM)
            return SimpleNamespace(collect=lambda: [Row(reason="INTERRUPTED")])

    monkeypatch.setattr(runners, "application", lambda: SimpleNamespace(runs=runs))
    monkeypatch.setattr(runners.registry, "procedure", lambda _: Compact())
    monkeypatch.setattr(runners, "session", lambda _: nullcontext())
    monkeypatch.setattr(runners, "as_one_line", lambda _: nullcontext())
    before = signal.getsignal(signal.SIGTERM)
    assert Runner().call(SimpleNamespace(name="compact"), {}, None) == [{"reason": "INTERRUPTED"}]
    assert asked == [("INTERRUPTED", "interrupted")]
    assert signal.getsignal(signal.SIGTERM) == before
