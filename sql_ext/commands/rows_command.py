"""Commands that are generated from the declarations of procedures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from procedures.declare.signature import DETAILS, Parameter, Signature
from sql_ext.commands.chosen_runner import runner_of
from sql_ext.commands.exits import ExitCode, exit_codes_text, guarded, is_stopped
from sql_ext.commands.log_source import check_paths
from sql_ext.commands.options import (
    checked_name,
    examples,
    format_options,
    option_of,
    output_format_of,
    session_options,
)
from sql_ext.commands.output import OutputFormat, Row, print_rows, say
from sql_ext.commands.session_settings import SessionSettings, session_settings_of

# A query is what its command is about, and needs no name.
_ARGUMENT = "query"
_TABLE, _TABLE_ARGUMENT = "table", "table_argument"
TABLE_NAMES = {_TABLE: ("--table-location", "--table")}


def done(rows: Sequence[Row]) -> ExitCode:
    """Returns the exit code of a command that succeeds unless it raises an error or is stopped."""
    return ExitCode.STOPPED if is_stopped(rows) else ExitCode.DONE


def rows_command(
    procedure: Signature,
    run: Callable[[click.Context, dict[str, Any], SessionSettings, OutputFormat], list[Row]] | None = None,
    outcome: Callable[[Sequence[Row]], ExitCode] = done,
    *,
    shown: Sequence[str] = (),
    hidden_first: Sequence[str] = (),
    more_options: Sequence[click.Option] = (),
    table_argument: bool = False,
) -> click.Command:
    """Builds a command from a procedure: the parameters become options, the rows become output.

    Args:
        procedure: provides name, help and parameters.
        run: runs the command; calls the procedure by default.
        outcome: returns the exit code for the rows.
        shown: examples for the help; generated from the required parameters by default.
        hidden_first: columns that a narrow terminal may hide, in this order.
        more_options: options in addition to those of the parameters, the output and the session.
        table_argument: whether the table may be given as an argument, too.
    """

    def command(ctx: click.Context, /, **options: Any) -> None:
        session_settings = session_settings_of(options)
        output_format = output_format_of(options)
        if table_argument:
            options[_TABLE] = _one_table(ctx, options.pop(_TABLE_ARGUMENT), options[_TABLE])

        def rows_of() -> list[Row]:
            check_paths(ctx, _tables_of(options), session_settings)
            if run is not None:
                return run(ctx, options, session_settings, output_format)
            return runner_of(ctx).call(procedure, options, session_settings)

        rows = guarded(rows_of)
        print_rows(rows, output_format, hidden_first=hidden_first)
        code = outcome(rows)
        if rows and code != ExitCode.DONE and rows[-1].get("message"):
            say(": ".join(text for text in (rows[-1].get("reason"), rows[-1]["message"]) if text))
        elif not rows and not output_format.is_for_programs:
            say("no rows")
        ctx.exit(code)

    parameters = [
        click.Argument([p.name]) if p.name == _ARGUMENT else option_of(p, TABLE_NAMES, is_optional=table_argument)
        for p in procedure.parameters
        if p.name != DETAILS  # the table hides what does not fit, and --json shows all columns
    ]
    if table_argument:
        parameters.insert(
            0, click.Argument([_TABLE_ARGUMENT], required=False, metavar="[TABLE]", callback=checked_name)
        )
    return click.Command(
        command_name(procedure),
        callback=click.pass_context(command),
        params=[*parameters, *format_options(), *more_options, *session_options()],
        help="\n\n".join([procedure.doc, *(f"QUERY: {p.doc}" for p in procedure.parameters if p.name == _ARGUMENT)]),
        epilog=examples(*(shown or [_example(procedure)])) + f"\n\n{exit_codes_text()}",
    )


def _tables_of(options: Mapping[str, Any]) -> list[str]:
    """Returns the names or paths of tables among parsed options."""
    table = options.get(_TABLE)
    return [*([] if table is None else [table]), *(options.get("tables") or [])]


def _one_table(ctx: click.Context, argument: str | None, option: str | None) -> str:
    """Returns the table of a command that takes it as an argument or as an option."""
    if argument and option and argument != option:
        raise click.UsageError(f"{argument} and {option} are two tables: give only one.", ctx)
    table = argument or option
    if table is None:
        raise click.UsageError("Missing argument 'TABLE': give a table name or a path.", ctx)
    return table


def _typed(parameter: Parameter) -> str:
    if parameter.name == _ARGUMENT:
        return "'SELECT count(*) FROM db.flights'"
    return (
        "--table db.flights"
        if parameter.name == "table"
        else f"{option_of(parameter).opts[0]} {parameter.name.upper()}"
    )


def command_name(procedure: Signature) -> str:
    """Returns the command's name, with dashes in place of underscores."""
    return procedure.name.replace("_", "-")


def _example(procedure: Signature) -> str:
    """Returns an example with the required options and the table."""
    typed = [_typed(p) for p in procedure.parameters if p.required or p.name == "table"]
    return " ".join(["use-spark", command_name(procedure), *typed])
