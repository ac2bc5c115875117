"""Processes in which nobody can import Spark: help, completion, looks at a path, and errors that name the extra."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from reader_tables import stored_tables

from sql_ext.commands.command_names import SECTIONS
from sql_ext.commands.exits import ExitCode

ROOT = Path(__file__).resolve().parents[2]
# Imports of Spark fail as if it was not installed.
_BLOCKED = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "delta", "py4j"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""
_INSTALL = 'The Python package pyspark is not installed: pip install "use-spark[spark]".'


def process(code, **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK", "PYSPARK", "HADOOP"))}
    return subprocess.run(
        [sys.executable, "-c", f"{_BLOCKED}\n{code}"],
        env={**clean, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def command(*arguments, **environment):
    code = f"sys.argv = {['use-spark', *arguments]!r}\nfrom sql_ext.commands.command_line import main\nmain()"
    return process(code, **environment)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return {table.name: table.path for table in stored_tables(tmp_path_factory.mktemp("tables"))}


def test_help_and_mistakes_of_every_command():
    """In one process: each command is built from the stored declarations."""
    names = [name for names in SECTIONS.values() for name in names]
    code = f"""
from click.testing import CliRunner
from sql_ext.commands.command_line import cli
for name in {names!r}:
    shown = CliRunner().invoke(cli, [name, "--help"])
    wrong = CliRunner().invoke(cli, [name, "--nothing"])
    assert (shown.exit_code, wrong.exit_code) == (0, 2), (name, shown.output, wrong.output)
assert not {{"numpy", "pyarrow", "sqlglot"}} & set(sys.modules), "help needs none of them"
"""
    done = process(code)
    assert done.returncode == 0, done.stderr


def test_version_completion_and_first_steps():
    assert command("--version").stdout.startswith("use-spark, version ")
    asked = command(_USE_SPARK_COMPLETE="bash_complete", COMP_WORDS="use-spark vacuum --re", COMP_CWORD="2")
    assert asked.stdout == "plain,--retention-hours\n", asked.stderr
    steps = command()
    assert (steps.returncode, 3 <= len(steps.stdout.splitlines()) <= 5) == (0, True)
    assert steps.stdout.startswith("use-spark diagnose PATH")


@pytest.mark.parametrize("typed", [["conf"], ["optimize", "--table", "t"], ["sql", "SELECT 1"], ["inspect", "db.t"]])
def test_a_command_that_needs_spark_says_how_to_install_it(typed):
    done = command(*typed)
    assert (done.returncode, done.stdout) == (ExitCode.FAILED, "")
    assert done.stderr == f"use-spark: USE_MISSING_PACKAGE: {_INSTALL}\n"


def test_the_doctor_names_the_missing_package():
    done = command("doctor", "--json")
    assert done.returncode == ExitCode.FAILED, done.stderr
    findings = {row["check"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert findings["python"]["state"] == "ok"
    assert (findings["spark"]["state"], findings["spark"]["advice"]) == ("fail", 'pip install "use-spark[spark]".')


def test_the_api_names_the_extra():
    done = process("""
import sql_ext
from sql_ext.readers import scan
try:
    sql_ext.session()
except sql_ext.UseError as error:
    print(type(error).__name__, error.message)
""")
    assert done.stdout == f"MissingPackageError {_INSTALL}\n", done.stderr


def test_looks_at_a_path(tables):
    path = str(tables["changed"])
    health = command("health", path, "--json")
    assert health.returncode == ExitCode.DONE, health.stderr
    rows = [json.loads(line) for line in health.stdout.splitlines()]
    assert rows[0]["part"] == "total"
    assert {"sample_1_percent", "deleted_rows", "log_length"} <= {row["part"] for row in rows}
    overview = json.loads(command("inspect", path, "--json").stdout)
    assert (overview["files"], overview["indexed_files"], overview["deleted_rows"]) == (6, 5, 15)
    assert overview["index_columns"] == ["s", "long name", "dt"]


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        (["health", "/no/table"], "USE_TABLE_NOT_FOUND"),
        (["optimize", "--table", "/no/table"], "USE_TABLE_NOT_FOUND"),
        (["inspect", "{tables}"], "USE_NOT_A_DELTA_TABLE"),
        (["inspect", "/no/table", "cubes"], "USE_TABLE_NOT_FOUND"),
        (["service", "--table", "/no/table"], "USE_TABLE_NOT_FOUND"),
        (["inspect", "{tables}/plain/_use"], "USE_TABLE_NOT_FOUND"),
        (["health", "{tables}/plain@v1"], "USE_TIME_TRAVEL"),
        (["recommend", "--table", "{tables}/plain"], "USE_INVALID_ARGUMENT: queries is missing"),
    ],
    ids=" ".join,
)
def test_mistakes_are_found_without_a_session(tables, typed, code):
    folder = str(tables["plain"].parent)
    done = command(*(word.format(tables=folder) for word in typed))
    assert done.stderr.startswith(f"use-spark: {code}"), done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.returncode in (ExitCode.FAILED, ExitCode.USAGE)
