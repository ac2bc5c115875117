"""``use-spark optimize``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from catalog.errors import UnknownNameError
from sql_ext.commands.chosen_runner import runner_of
from sql_ext.commands.declarations import declarations, declared
from sql_ext.commands.exits import ExitCode, is_stopped
from sql_ext.commands.options import progress_option
from sql_ext.commands.output import OutputFormat, Row, say
from sql_ext.commands.rows_command import rows_command
from sql_ext.commands.session_settings import SessionSettings


def outcome_of(rows: Sequence[Row]) -> ExitCode:
    """Returns the exit code of an optimization.

    Args:
        rows: the report in order, with ``state`` and ``reason``.
    """
    states = [row["state"] for row in rows]
    if is_stopped(rows):
        return ExitCode.STOPPED
    # A conflict is planned again: only a conflict in the last row means that work remains.
    not_skipped = [state for state in states if state != "skipped"]
    if not_skipped and not_skipped[-1] == "failed":
        return ExitCode.FAILED
    return ExitCode.DONE if not_skipped else ExitCode.NOTHING_TO_DO


def _run(
    ctx: click.Context, arguments: dict[str, Any], session_settings: SessionSettings, output_format: OutputFormat
) -> list[Row]:
    def tell(text: str) -> None:
        # The line comes after the table.
        ctx.call_on_close(lambda: say(text))

    if arguments["strategy"] is not None:
        _check_strategies(arguments["strategy"])
    return runner_of(ctx).optimize(arguments, session_settings, None if output_format.is_for_programs else tell)


def _check_strategies(text: str) -> None:
    """Refuses a name that no strategy has; in a process with Spark, users may have registered more."""
    if "pyspark" in sys.modules:
        return
    known = declarations().strategies
    names = {alias.lower() for name, aliases in known.items() for alias in (name, *aliases)}
    for name in text.split(","):
        if name.strip().lower() not in names:
            raise UnknownNameError.of("strategy", name.strip(), known)


COMMAND = rows_command(
    declared("optimize"),
    _run,
    outcome_of,
    shown=(
        "use-spark optimize --table-location=/data/flights",
        "use-spark optimize --table db.flights --max-duration '1 hour'",
        "use-spark optimize --table db.flights --dry-run --json",
        "use-spark optimize --table db.flights --plan 3f2a91c04b7d --group 17",
    ),
    hidden_first=("iteration", "version", "reason", "output_bytes", "duration_ms", "output_files"),
    more_options=[progress_option()],
)
