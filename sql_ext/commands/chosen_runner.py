"""The runner of a command: the one of the caller, or one with Spark, which is imported only then."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from sql_ext.commands.exits import guarded
from sql_ext.installed_versions import require_spark

if TYPE_CHECKING:
    from sql_ext.commands.runner import Runner


def runner_of(ctx: click.Context) -> Runner:
    """Returns the runner that the caller of the command line passed as its object, else one with Spark.

    Without pyspark, the command ends with a line that says how to install it.

    Args:
        ctx: of the command.
    """
    return guarded(_with_spark) if ctx.obj is None else cast("Runner", ctx.obj)


def _with_spark() -> Runner:
    require_spark()
    from sql_ext.commands.runner import Runner

    return Runner()
