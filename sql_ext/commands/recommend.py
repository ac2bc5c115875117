"""``use-spark recommend``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from sql_ext.commands.chosen_runner import runner_of
from sql_ext.commands.declarations import declared
from sql_ext.commands.log_source import needs_session
from sql_ext.commands.rows_command import rows_command
from sql_ext.from_log.local_tables import local_folder

if TYPE_CHECKING:
    from sql_ext.commands.output import OutputFormat, Row
    from sql_ext.commands.session_settings import SessionSettings

_RECOMMEND = declared("recommend")


def _run(
    ctx: click.Context, arguments: dict[str, Any], session_settings: SessionSettings, _: OutputFormat
) -> list[Row]:
    if not arguments["queries"] and not needs_session(ctx, session_settings):
        _check_records(arguments["table"])
    return runner_of(ctx).call(_RECOMMEND, arguments, session_settings)


def _check_records(name: str) -> None:
    """Refuses a call without queries for a folder whose reads were not recorded, before a session starts."""
    folder = local_folder(name, os.environ)
    if folder is None:
        return
    from catalog.insights.record_files import has_records
    from procedures.insight.recommendation.accepted_queries import no_queries
    from sql_ext.from_log.local_state import LocalState

    table = LocalState(folder)
    if not has_records(table):
        raise no_queries(table.name)


COMMAND = rows_command(
    _RECOMMEND,
    _run,
    shown=(
        "use-spark recommend --table db.flights",
        "use-spark recommend --table /data/flights --queries 'SELECT * FROM t WHERE distance < 100'",
    ),
)
