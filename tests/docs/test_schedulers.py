"""The snippets for dbt, Airflow and Dagster: dbt's SQL runs, and the commands have options that exist."""

import re
import subprocess
import sys
import types

import click
import pytest
import yaml
from jinja2 import Environment
from pages import blocks

from sql_ext.commands.command_line import cli

PAGE = "docs/howto/schedulers.md"


def _code(language, contains):
    (code,) = [block.code for block in blocks(PAGE) if block.language == language and contains in block.code]
    return code


def _rendered(model, this):
    """The configuration and the query of a model, rendered as dbt does it: hooks are templates too."""
    config = {}
    environment = Environment()
    query = environment.from_string(model).render(config=lambda **given: config.update(given) or "", this=this)
    hooks = config["post_hook"]
    hooks = [hooks] if isinstance(hooks, str) else hooks
    return config, query.strip(), [environment.from_string(hook).render(this=this) for hook in hooks]


def _create(config, query, this):
    """The statement of dbt-spark for the first run of an incremental model."""
    properties = ", ".join(f"'{name}' = '{value}'" for name, value in config["tblproperties"].items())
    return f"CREATE OR REPLACE TABLE {this} USING {config['file_format']} TBLPROPERTIES ({properties}) AS {query}"


def test_dbt_model_is_indexed_by_its_hook(spark):
    this = "default.dbt_flights"
    config, query, hooks = _rendered(_code("jinja", "post_hook"), this)
    assert (config["materialized"], config["incremental_strategy"]) == ("incremental", "append")
    try:
        spark.sql(_create(config, query, this))
        for hook in hooks:
            assert [row.state for row in spark.sql(hook).collect()] == ["committed"]
        revisions = {row.revision_id: row.rows for row in spark.table(f"{this}.revisions").collect()}
        assert revisions == {0: 0, 1: spark.sql(query).count()}
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {this}")


def test_dbt_profile_names_the_token():
    (output,) = yaml.safe_load(_code("yaml", "method: thrift"))["flights"]["outputs"].values()
    assert (output["type"], output["method"], output["auth"]) == ("spark", "thrift", "CUSTOM")
    variable = re.search(r"env_var\('(\w+)'\)", output["password"])[1]
    assert f"export {variable}=" in _code("sh", "dbt run")


def _module(monkeypatch, name, **members):
    module = types.ModuleType(name)
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, name, module)


def _checked(words):
    """The command of a call; the real command checks its options in the same way before it starts Spark."""
    assert words[0] == "use-spark"
    command = cli.get_command(click.Context(cli), words[1])
    assert command is not None
    command.make_context(words[1], words[2:])
    return words[1]


class _Task:
    """A stand-in for a task of Airflow, which records what runs after what."""

    def __init__(self, function, order, skip_on_exit_code):
        self.function, self.order, self.skipped = function, order, skip_on_exit_code

    def __call__(self):
        return self

    def __rshift__(self, after):
        self.order += [self, after]
        return after


def test_airflow_vacuums_after_it_has_optimized(monkeypatch):
    order = []

    def bash(*, retries, skip_on_exit_code, trigger_rule="all_success"):  # the names of Airflow
        return lambda function: _Task(function, order, skip_on_exit_code)

    decorators = {"dag": lambda **_: lambda function: function, "task": types.SimpleNamespace(bash=bash)}
    _module(monkeypatch, "airflow")
    _module(monkeypatch, "airflow.decorators", **decorators)
    _module(monkeypatch, "pendulum", datetime=lambda *_: None)
    exec(compile(_code("python", "airflow"), PAGE, "exec"), {})
    assert [_checked(task.function().split()) for task in order] == ["optimize", "vacuum"]
    assert {task.skipped for task in order} == {3}


@pytest.mark.parametrize(("code", "retried"), [(0, None), (1, True), (2, False), (3, None), (4, None)])
def test_dagster_retries_what_a_retry_can_mend(monkeypatch, code, retried):
    class Failure(Exception):  # noqa: N818  # the name of Dagster
        def __init__(self, _, allow_retries):
            self.allow_retries = allow_retries

    commands = []

    def run(command):
        commands.append(command)
        return subprocess.CompletedProcess(command, code)

    members = {"Failure": Failure, "RetryPolicy": lambda max_retries: max_retries}
    _module(monkeypatch, "dagster", asset=lambda **_: lambda function: function, **members)
    monkeypatch.setattr(subprocess, "run", run)
    names = {}
    exec(compile(_code("python", "dagster"), PAGE, "exec"), names)
    if retried is None:
        names["optimized_flights"]()
    else:
        with pytest.raises(Failure) as raised:
            names["optimized_flights"]()
        assert raised.value.allow_retries is retried
    assert [_checked(command) for command in commands] == ["optimize"]
