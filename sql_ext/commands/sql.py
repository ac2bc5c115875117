"""``use-spark sql``."""

from __future__ import annotations

import sys
from typing import Any

import click

from sql_ext.commands.chosen_runner import runner_of
from sql_ext.commands.exits import ExitCode, exit_codes_text, fail, guarded
from sql_ext.commands.options import (
    ROWS_SHOWN,
    examples,
    format_options,
    limit_option,
    output_format_of,
    progress_option,
    session_options,
)
from sql_ext.commands.output import OutputFormat, print_rows, say, table_text
from sql_ext.commands.query_result import QueryResult
from sql_ext.commands.session_settings import session_settings_of
from sql_ext.commands.statements import statements

_STDIN = "-"


def show_result(result: QueryResult, output_format: OutputFormat) -> None:
    """Prints the rows of one query; prints nothing if it has no columns, as most SQL commands.

    Values in a table have no units, because the columns are those of the user.
    """
    if not result.columns:
        return
    if output_format.is_for_programs:
        print_rows(result.rows, output_format, result.columns)
    else:
        click.echo(table_text(result.columns, [list(row.values()) for row in result.rows]))
    print_limit(result)


def print_limit(result: QueryResult) -> None:
    """Says that there are more rows, if there are."""
    if result.cut_at is not None:
        say(f"these are the first {result.cut_at:,} rows; --limit shows more")


def rows_wanted(limit: int | None, output_format: OutputFormat) -> int | None:
    """Returns the maximum number of rows: a printed table is limited by default."""
    return ROWS_SHOWN if limit is None and not output_format.is_for_programs else limit


def _sql(ctx: click.Context, /, texts: tuple[str, ...], limit: int | None, **options: Any) -> None:
    output_format = output_format_of(options)
    session_settings = session_settings_of(options)
    typed = (sys.stdin.read() if text == _STDIN else text for text in texts)
    parsed = [statement for text in typed for statement in statements(text)]
    if not parsed:
        fail("USE_INVALID_ARGUMENT: STATEMENT is empty: give at least one SQL statement.", ExitCode.USAGE)
    most, runner = rows_wanted(limit, output_format), runner_of(ctx)

    finished: list[None] = []

    def show(result: QueryResult) -> None:
        show_result(result, output_format)
        finished.append(None)

    try:
        is_complete = guarded(lambda: runner.statements(parsed, most, session_settings, show))
    except click.exceptions.Exit:
        if 0 < len(finished) < len(parsed):
            say(f"this was statement {len(finished) + 1} of {len(parsed)}; the ones before it have taken effect")
        raise
    if not is_complete:
        ctx.exit(ExitCode.STOPPED)


COMMAND = click.Command(
    "sql",
    callback=click.pass_context(_sql),
    params=[
        click.Argument(["texts"], nargs=-1, required=True, metavar="STATEMENT..."),
        *format_options(),
        limit_option(),
        progress_option(),
        *session_options(),
    ],
    help="Runs SQL statements, including CALL use.…: one per argument, or several separated by semicolons. "
    "- reads them from stdin. The command stops at the first error.",
    epilog=examples(
        "use-spark sql --warehouse wh 'SELECT * FROM flights TABLESAMPLE (1 PERCENT)' --limit 20",
        "use-spark sql --warehouse wh \"CALL use.optimize('t'); SELECT * FROM t.revisions\"",
        "use-spark sql --warehouse /data/wh --json - < report.sql",
    )
    + f"\n\n{exit_codes_text()}",
)
