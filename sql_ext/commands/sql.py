"""``use-spark sql``."""

from __future__ import annotations

import sys
from typing import Any

import click

from sql_ext.commands.answers import Answer
from sql_ext.commands.exits import ExitCode, exit_codes_text, fail, guarded
from sql_ext.commands.options import (
    ROWS_SHOWN,
    examples,
    json_option,
    limit_option,
    progress_option,
    session_options,
)
from sql_ext.commands.output import print_rows, say, table_text
from sql_ext.commands.runner import runner_of
from sql_ext.commands.sessions import wishes_of
from sql_ext.commands.statements import statements

_STDIN = "-"


def show_answer(answer: Answer, as_json: bool) -> None:
    """Prints the rows of one query; nothing where it has no columns, as most commands of SQL."""
    if as_json:
        print_rows(answer.rows, True)
    elif answer.columns:
        click.echo(table_text(answer.columns, [list(row.values()) for row in answer.rows]))
    if answer.cut_at is not None:
        say(f"these are the first {answer.cut_at:,} rows; --limit shows more")


def rows_wanted(limit: int | None, as_json: bool) -> int | None:
    """How many rows to read: a table for people has an end."""
    return ROWS_SHOWN if limit is None and not as_json else limit


def _sql(ctx: click.Context, /, texts: tuple[str, ...], as_json: bool, limit: int | None, **given: Any) -> None:
    wishes = wishes_of(given)
    typed = (sys.stdin.read() if text == _STDIN else text for text in texts)
    found = [statement for text in typed for statement in statements(text)]
    if not found:
        fail("USE_INVALID_ARGUMENT: STATEMENT is empty: give at least one statement of SQL.", ExitCode.USAGE)
    most, runner = rows_wanted(limit, as_json), runner_of(ctx)

    def show(answer: Answer) -> None:
        show_answer(answer, as_json)

    if not guarded(lambda: runner.statements(found, most, wishes, show)):
        ctx.exit(ExitCode.STOPPED)


COMMAND = click.Command(
    "sql",
    callback=click.pass_context(_sql),
    params=[
        click.Argument(["texts"], nargs=-1, required=True, metavar="STATEMENT..."),
        json_option(),
        limit_option(),
        progress_option(),
        *session_options(),
    ],
    help="Runs statements of SQL, CALL use.… among them: one per argument, or several separated by semicolons; "
    "- reads them from stdin. The first error ends it.",
    epilog=examples(
        "use-spark sql --warehouse /data/wh 'SELECT * FROM flights TABLESAMPLE (1 PERCENT)' --limit 20",
        "use-spark sql --warehouse /data/wh \"CALL use.optimize('flights'); SELECT * FROM flights.revisions\"",
        "use-spark sql --warehouse /data/wh --json - < report.sql",
    )
    + f"\n\n{exit_codes_text()}",
)
