"""The recipes for schedulers run without these: stand-ins call their functions, and one answers for ``use-spark``."""

import os
import stat
import subprocess
import sys
import types

import pytest
from pages import blocks

from procedures.calls import plan as plan_procedure
from procedures.calls import registry
from sql_ext.commands.command_line import cli

PAGE = "docs/howto/huge-tables.md"
PLAN_ID = "0123456789ab"
# What `use-spark plan --json` prints: a JSON object per row, in the order of the declared columns.
COMMAND = f"""#!/bin/sh
echo "$@" >> "$USE_CALLS"
[ "$1" = plan ] || exit ${{USE_EXIT:-0}}
for group in 1 2; do echo '{{"plan_id": "{PLAN_ID}", "group_id": '$group', "message": "a \\"b\\""}}'; done
"""
TIMES = 20


@pytest.fixture
def use_spark(tmp_path, monkeypatch):
    """Puts the stand-in on the path; returns the calls that it got."""
    command, calls = tmp_path / "use-spark", tmp_path / "calls"
    command.write_text(COMMAND)
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("USE_CALLS", str(calls))
    return lambda: calls.read_text().splitlines()


def _code(start):
    (code,) = [block.code for block in blocks(PAGE) if block.code.lstrip().startswith(start)]
    return code


def _checked(call):
    """The command of a call; its options are checked as the real command does before it starts Spark."""
    name, *arguments = call.split()
    cli.commands[name].make_context(name, arguments)
    return name


def _module(monkeypatch, name, **members):
    module = types.ModuleType(name)
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, name, module)


def test_the_first_column_of_a_plan_is_its_id():
    assert plan_procedure.PLAN is registry.procedures()["plan"]
    assert plan_procedure.PLAN.result.startswith("plan_id string")


@pytest.mark.parametrize(("ends_with", "accepted"), [(0, True), (3, True), (1, False)])
def test_job_array(use_spark, monkeypatch, ends_with, accepted):
    monkeypatch.setenv("USE_EXIT", str(ends_with))
    monkeypatch.setenv("PLAN", PLAN_ID)
    # The comment of Slurm is the only part that Slurm reads.
    done = subprocess.run(["sh", "-c", _code("#!/bin/sh").replace("'2 hours'", "2h")], check=False)
    assert (done.returncode == 0) is accepted
    (call,) = use_spark()
    assert (_checked(call), f"--plan {PLAN_ID}" in call) == ("optimize", True)


def test_processes_of_one_machine(use_spark):
    subprocess.run(["sh", "-c", _code("PLAN=$(use-spark")], check=True)
    plan, *optimizations = use_spark()
    assert _checked(plan) == "plan"
    assert [(_checked(call), f"--plan {PLAN_ID}" in call) for call in optimizations] == [("optimize", True)] * 4


class _Task:
    """A stand-in for a task of Airflow: runs what its function returns by bash, and returns the last line."""

    def __init__(self, function, skip_on_exit_code=None):
        self.function, self.skipped, self.fixed = function, skip_on_exit_code, {}

    def __call__(self, **arguments):
        done = subprocess.run(["bash", "-c", self.function(**arguments)], capture_output=True, text=True, check=False)
        assert done.returncode in (0, self.skipped)
        return (done.stdout.splitlines() or [None])[-1]

    def partial(self, **arguments):
        self.fixed = arguments
        return self

    def expand(self, worker):
        return [self(**self.fixed, worker=number) for number in worker]


def test_airflow(use_spark, monkeypatch):
    def bash(function=None, *, retries=0, skip_on_exit_code=None):
        return _Task(function) if function else lambda decorated: _Task(decorated, skip_on_exit_code)

    decorators = {"dag": lambda **_: lambda function: function, "task": types.SimpleNamespace(bash=bash)}
    _module(monkeypatch, "airflow")
    _module(monkeypatch, "airflow.decorators", **decorators)
    _module(monkeypatch, "pendulum", datetime=lambda *_: None)
    monkeypatch.setenv("USE_EXIT", "3")
    exec(compile(_code("from airflow"), PAGE, "exec"), {})
    plan, *optimizations = use_spark()
    assert _checked(plan) == "plan"
    assert [(_checked(call), f"--plan {PLAN_ID}" in call) for call in optimizations] == [("optimize", True)] * TIMES


def test_dagster(use_spark, monkeypatch):
    def op(**_):
        return lambda function: function

    members = {"DynamicOut": lambda _: None, "RetryPolicy": lambda max_retries: None, "job": lambda function: function}
    _module(monkeypatch, "dagster", op=op, DynamicOutput=lambda value, mapping_key: (mapping_key, value), **members)
    names = {}
    exec(compile(_code("import json, subprocess"), PAGE, "exec"), names)
    outputs = list(names["plan"]())
    assert [key for key, _ in outputs] == [f"worker_{number}" for number in range(TIMES)]
    assert {value for _, value in outputs} == {PLAN_ID}
    monkeypatch.setenv("USE_EXIT", "3")
    names["execute"](outputs[0][1])
    monkeypatch.setenv("USE_EXIT", "1")
    with pytest.raises(RuntimeError, match="optimize ended with 1"):
        names["execute"](outputs[0][1])
    assert [_checked(call) for call in use_spark()] == ["plan", "optimize", "optimize"]
