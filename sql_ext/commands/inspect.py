"""``use-spark inspect``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sql_ext.commands.chosen_runner import runner_of
from sql_ext.commands.declarations import declarations, declared
from sql_ext.commands.exits import exit_codes_text, guarded
from sql_ext.commands.hanging_lines import terminal_width
from sql_ext.commands.log_source import check_paths, from_log, spark_option
from sql_ext.commands.options import (
    checked_name,
    examples,
    format_options,
    limit_option,
    output_format_of,
    session_options,
)
from sql_ext.commands.output import OutputFormat, Row, print_rows
from sql_ext.commands.overview_text import overview_text
from sql_ext.commands.query_result import QueryResult
from sql_ext.commands.session_settings import session_settings_of
from sql_ext.commands.sql import print_limit, rows_wanted

if TYPE_CHECKING:
    from sql_ext.from_log.log_table import LogTable

# Read-only procedures that need no parameter except the table.
_LOOKING = ("check", "clustering_information", "status")


def print_result(result: QueryResult, output_format: OutputFormat) -> None:
    """Prints the rows of a view, with units in a table."""
    print_rows(result.rows, output_format, result.columns)
    print_limit(result)


_VIRTUAL_TABLES = declarations().views
VIEWS = (*_VIRTUAL_TABLES, *_LOOKING)


def _overview_of_log(table: LogTable) -> Row:
    from sql_ext.commands.overview import overview_of_log

    return overview_of_log(table)


def _inspect(
    ctx: click.Context,
    /,
    table: str,
    view: str | None,
    view_option: str | None,
    limit: int | None,
    **options: Any,
) -> None:
    if view and view_option and view != view_option:
        raise click.UsageError(f"{view} and {view_option} are two views: give only one.", ctx)
    output_format = output_format_of(options)
    with_spark = options.pop("with_spark")
    session_settings, chosen = session_settings_of(options), view or view_option
    if chosen is None:
        overview = None if with_spark else from_log(ctx, table, session_settings, _overview_of_log)
        if overview is None:
            overview = guarded(lambda: runner_of(ctx).overview(table, session_settings))
        if output_format.is_for_programs:
            print_rows([overview], output_format)
        else:
            click.echo(overview_text(overview, terminal_width()))
        return
    guarded(lambda: check_paths(ctx, [table], session_settings))
    most, runner = rows_wanted(limit, output_format), runner_of(ctx)
    if chosen in _VIRTUAL_TABLES:
        guarded(
            lambda: runner.virtual_table(
                table, chosen, most, session_settings, lambda result: print_result(result, output_format)
            )
        )
        return
    rows = guarded(lambda: runner.call(declared(chosen), {"table": table}, session_settings))
    cut = most if most is not None and len(rows) > most else None
    columns = tuple(rows[0]) if rows else ()
    print_result(QueryResult(columns, rows[:most], cut), output_format)


COMMAND = click.Command(
    "inspect",
    callback=click.pass_context(_inspect),
    params=[
        click.Argument(["table"], metavar="TABLE", callback=checked_name),
        click.Argument(["view"], required=False, type=click.Choice(VIEWS), metavar="[VIEW]"),
        click.Option(["--view", "view_option"], type=click.Choice(VIEWS), help="Same as the second argument."),
        *format_options(),
        limit_option(),
        spark_option(),
        *session_options(),
    ],
    help="Shows an overview of a table, or the rows of a view. The table is given by name or path and not changed.\n\n"
    f"Views: {', '.join(VIEWS)}.",
    epilog=examples(
        "use-spark inspect /data/flights",
        "use-spark inspect --warehouse /data/wh flights optimizations --limit 5",
        "use-spark inspect /data/flights --view cubes --json",
    )
    + f"\n\n{exit_codes_text()}",
)
