"""The choice between the log of a table and a session, for commands that can do with either."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from catalog.errors import MissingPackageError, NotSupportedError
from sql_ext.commands.exits import guarded
from sql_ext.commands.output import say
from sql_ext.commands.session_settings import SessionSettings
from sql_ext.from_log.local_tables import check_table, local_folder, session_properties
from sql_ext.lifetime import SUBMITTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from typing import TypeVar

    from sql_ext.from_log.log_table import LogTable

    Result = TypeVar("Result")


def spark_option() -> click.Option:
    """Returns the option of commands that read the log of a path."""
    return click.Option(
        ["--spark", "with_spark"],
        is_flag=True,
        help="Starts a Spark session for a path, too, whose log is otherwise read without one.",
    )


def from_log(
    ctx: click.Context, name: str, session_settings: SessionSettings, read: Callable[[LogTable], Result]
) -> Result | None:
    """Reads a table from its log; None where a session has to.

    A session has to read a table that is named, or that is on another file system, a table with features that the
    library deltalake does not read, and any table if the caller gives ``--spark`` or settings of a session.

    Args:
        ctx: of the command.
        name: name or path of the table.
        session_settings: settings of the session.
        read: what to read.
    """
    folder = None if needs_session(ctx, session_settings) else local_folder(name, os.environ)
    return None if folder is None else guarded(lambda: _read(name, folder, read))


def check_paths(ctx: click.Context, names: Iterable[str], session_settings: SessionSettings) -> None:
    """Refuses paths of this machine that are no tables, before a session starts.

    Args:
        ctx: of the command.
        names: names or paths of tables.
        session_settings: settings of the session.

    Raises:
        TableError: a path is not the root of a Delta table.
    """
    if needs_session(ctx, session_settings):
        return
    for name in names:
        folder = local_folder(name, os.environ)
        if folder is not None:
            check_table(name, folder)


def needs_session(ctx: click.Context, session_settings: SessionSettings) -> bool:
    """Returns whether a session decides what a path is: one that exists, or one that the caller has settings for.

    Args:
        ctx: of the command.
        session_settings: settings of the session.
    """
    if ctx.obj is not None or SUBMITTED in os.environ or session_settings.conf:
        return True
    spark = sys.modules.get("pyspark.sql")
    return spark is not None and spark.SparkSession.getActiveSession() is not None


def _read(name: str, folder: Path, read: Callable[[LogTable], Result]) -> Result | None:
    check_table(name, folder)
    from sql_ext.from_log.log_table import LogTable

    try:
        return read(LogTable.of(folder, session_properties(os.environ)))
    except (NotSupportedError, MissingPackageError) as error:
        say(f"{error.message} A Spark session reads the table.")
        return None
