"""Commands that are generated from the declarations of procedures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from procedures.declare.signature import DETAILS, Parameter, Signature
from sql_ext.commands.chosen_runner import runner_of
from sql_ext.commands.exits import ExitCode, exit_codes_text, guarded
from sql_ext.commands.options import examples, format_options, option_of, output_format_of, session_options
from sql_ext.commands.output import OutputFormat, Row, print_rows, say
from sql_ext.commands.session_settings import SessionSettings, session_settings_of

if TYPE_CHECKING:
    from sql_ext.commands.runner import Runner

# A query is what its command is about, and needs no name.
_ARGUMENT = "query"
TABLE_NAMES = {"table": ("--table-location", "--table")}


def done(_: Sequence[Row]) -> ExitCode:
    """Returns the exit code of a command that succeeds unless it raises an error."""
    return ExitCode.DONE


def rows_command(
    procedure: Signature,
    run: Callable[[Runner, dict[str, Any], SessionSettings, OutputFormat], list[Row]] | None = None,
    outcome: Callable[[Sequence[Row]], ExitCode] = done,
    *,
    shown: Sequence[str] = (),
    hidden_first: Sequence[str] = (),
    more_options: Sequence[click.Option] = (),
) -> click.Command:
    """Builds a command from a procedure: the parameters become options, the rows become output.

    Args:
        procedure: provides name, help and parameters.
        run: runs the command; calls the procedure by default.
        outcome: returns the exit code for the rows.
        shown: examples for the help; generated from the required parameters by default.
        hidden_first: columns that a narrow terminal may hide, in this order.
        more_options: options in addition to those of the parameters, the output and the session.
    """

    def command(ctx: click.Context, /, **options: Any) -> None:
        session_settings = session_settings_of(options)
        output_format = output_format_of(options)
        runner = runner_of(ctx)

        def rows_of() -> list[Row]:
            if run is not None:
                return run(runner, options, session_settings, output_format)
            return runner.call(procedure, options, session_settings)

        rows = guarded(rows_of)
        print_rows(rows, output_format, hidden_first=hidden_first)
        code = outcome(rows)
        if rows and code != ExitCode.DONE and rows[-1].get("message"):
            say(": ".join(text for text in (rows[-1].get("reason"), rows[-1]["message"]) if text))
        elif not rows and not output_format.is_for_programs:
            say("no rows")
        ctx.exit(code)

    parameters = [
        click.Argument([p.name]) if p.name == _ARGUMENT else option_of(p, TABLE_NAMES)
        for p in procedure.parameters
        if p.name != DETAILS  # the table hides what does not fit, and --json shows all columns
    ]
    return click.Command(
        command_name(procedure),
        callback=click.pass_context(command),
        params=[*parameters, *format_options(), *more_options, *session_options()],
        help="\n\n".join([procedure.doc, *(f"QUERY: {p.doc}" for p in procedure.parameters if p.name == _ARGUMENT)]),
        epilog=examples(*(shown or [_example(procedure)])) + f"\n\n{exit_codes_text()}",
    )


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
