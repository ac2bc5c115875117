"""The command line apart from Spark: what is typed, what is asked for, what is printed, how it ends."""

import json

import pytest
from click.testing import CliRunner

from catalog.errors import TableError, UnknownNameError
from procedures.declaration import Parameter
from procedures.optimize import OPTIMIZE
from procedures.optimize_settings import OptimizeSettings
from procedures.registry import procedures
from sql_ext.commands.command_line import cli
from sql_ext.commands.exits import ExitCode
from sql_ext.commands.optimize import outcome_of
from sql_ext.commands.options import option_of
from sql_ext.commands.output import table_text
from sql_ext.commands.rows_command import rows_command
from sql_ext.commands.sessions import SessionWishes

DEFAULTS = {p.name: None if p.required else p.default for p in OPTIMIZE.parameters}


def row(state, reason="REASON", **more):
    return {"iteration": 1, "strategy": None, "reason": reason, "state": state, "message": "text", **more}


class FakeRunner:
    """Answers with rows, or raises, and remembers what it was asked for."""

    def __init__(self, *answer):
        self.answer = answer
        self.asked = []

    def optimize(self, arguments, wishes):
        self.asked.append((arguments, wishes))
        if self.answer and isinstance(self.answer[0], BaseException):
            raise self.answer[0]
        return list(self.answer)

    def serve(self, tables, wishes):
        self.asked.append((tables, wishes))


def run(runner, *arguments):
    return CliRunner().invoke(cli, arguments, obj=runner)


def asked_by(*arguments):
    runner = FakeRunner(row("committed"))
    result = run(runner, "optimize", "--table-location=/t", *arguments)
    assert result.exit_code == ExitCode.DONE, result.output
    return runner.asked[0][0]


def test_the_command_of_the_reference():
    given = asked_by("--revision-id=1", "--bytes-per-iter=5000000", "--revision-rewrite=true")
    expected = {"table": "/t", "revision_id": 1, "bytes_per_iter": 5_000_000, "revision_rewrite": True}
    assert given == {**DEFAULTS, **expected, "strategy": "CubeDefragmentation"}


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ((), {}),
        (("--revision-rewrite=false",), {"revision_rewrite": False}),
        (("--dry-run",), {"dry_run": True}),
        (("--dry-run=false",), {"dry_run": False}),
        (("--strategy=UnindexedFiles,LeveledCompaction",), {"strategy": "UnindexedFiles,LeveledCompaction"}),
        (("--revision-id=0",), {"revision_id": 0, "strategy": None}),
        (("--where", "a > 1 AND b = 'x=y'"), {"where": "a > 1 AND b = 'x=y'"}),
        (("--files=a.parquet", "--files=b.parquet"), {"files": ["a.parquet", "b.parquet"]}),
        (("--option", "batch_bytes=5", "--option", "x=a=b"), {"options": {"batch_bytes": "5", "x": "a=b"}}),
        (("--parallelism=3", "--max-iterations=2"), {"parallelism": 3, "max_iterations": 2}),
        (("--max-bytes=9", "--max-duration", "10 minutes"), {"max_bytes": 9, "max_duration": "10 minutes"}),
    ],
    ids=str,
)
def test_options_are_the_parameters(typed, expected):
    given = asked_by(*typed)
    assert given == {**DEFAULTS, "table": "/t", "strategy": "CubeDefragmentation", **expected}


def test_a_name_in_place_of_a_location():
    runner = FakeRunner(row("committed"))
    assert run(runner, "optimize", "--table", "db.t").exit_code == ExitCode.DONE
    assert runner.asked[0][0]["table"] == "db.t"


@pytest.mark.parametrize("declared", list(procedures().values()), ids=lambda p: p.name)
def test_any_procedure_can_be_a_command(declared):
    """Adding one is adding a line: its options come from its declaration, each with its sentence."""
    command = rows_command(declared, lambda runner, arguments, wishes: [], lambda rows: ExitCode.DONE)
    text = CliRunner().invoke(command, ["--help"]).output
    for parameter in declared.parameters:
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
        def optimize(self, arguments, wishes):
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
    ],
    ids=["failed", "usage", "interrupted"],
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
    assert runner.asked[0][1] == SessionWishes({"spark.master": "local[3]", "a": "b=c"}, False, "WARN")


def test_the_service_gets_its_tables_and_intervals():
    runner = FakeRunner()
    options = ("--table=a.b", "--table=/x", "--interval=1 minute", "--listener-interval=5000", "--max-tables=4")
    assert run(runner, "service", *options).exit_code == ExitCode.DONE
    (tables, wishes) = runner.asked[0]
    assert tables == ("a.b", "/x")
    assert wishes.conf == {
        "spark.qbeast.use.optimization-interval": "1 minute",
        "spark.qbeast.use.listener-interval": "5000",
        "spark.qbeast.use.service.max-tables": "4",
    }
    assert run(FakeRunner(), "service", "--max-tables=0").exit_code == ExitCode.USAGE


def test_conf_prints_properties():
    lines = dict(line.split("=", 1) for line in run(FakeRunner(), "conf").stdout.splitlines())
    assert lines["spark.sql.extensions"] == "io.usespark.UseSessionExtension"
    assert lines["spark.jars"].endswith("use-shim.jar")


def test_every_declared_type_has_an_option():
    for declared, typed in [("INT", "1"), ("DOUBLE", "1.5"), ("STRING", "x"), ("BIGINT", "2"), ("BOOLEAN", "true")]:
        assert option_of(Parameter("p", declared, "Doc.", None)).type is not None, typed
