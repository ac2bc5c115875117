"""``use-spark health``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from sql_ext.commands.chosen_runner import runner_of
from sql_ext.commands.declarations import declared
from sql_ext.commands.log_source import from_log, spark_option
from sql_ext.commands.rows_command import rows_command

if TYPE_CHECKING:
    from sql_ext.commands.output import OutputFormat, Row
    from sql_ext.commands.session_settings import SessionSettings
    from sql_ext.from_log.log_table import LogTable

_HEALTH = declared("health")


def _run(
    ctx: click.Context, arguments: dict[str, Any], session_settings: SessionSettings, _: OutputFormat
) -> list[Row]:
    if not arguments.pop("with_spark"):
        rows = from_log(ctx, arguments["table"], session_settings, _rows)
        if rows is not None:
            return rows
    return runner_of(ctx).call(_HEALTH, arguments, session_settings)


def _rows(table: LogTable) -> list[Row]:
    from procedures.insight.health.diagnosis import health_rows
    from sql_ext.from_log.health import diagnosis_of

    return [asdict(row) for row in health_rows(diagnosis_of(table))]


COMMAND = rows_command(
    _HEALTH,
    _run,
    shown=("use-spark health /data/flights", "use-spark health --warehouse /data/wh flights --json"),
    table_argument=True,
    more_options=[spark_option()],
)
