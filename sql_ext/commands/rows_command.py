"""Commands made of a procedure's declaration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from procedures.declaration import Procedure
from sql_ext.commands.exits import ExitCode, exit_codes_text, guarded
from sql_ext.commands.options import examples, json_option, option_of, session_options
from sql_ext.commands.output import Row, print_rows, say
from sql_ext.commands.runner import Runner, runner_of
from sql_ext.commands.sessions import SessionWishes, wishes_of

TABLE_NAMES = {"table": ("--table-location", "--table")}


def done(_: Sequence[Row]) -> ExitCode:
    """The exit code of what is done when it ends without an error."""
    return ExitCode.DONE


def rows_command(
    procedure: Procedure,
    run: Callable[[Runner, dict[str, Any], SessionWishes], list[Row]] | None = None,
    outcome: Callable[[Sequence[Row]], ExitCode] = done,
    *,
    shown: Sequence[str] = (),
    more_options: Sequence[click.Option] = (),
) -> click.Command:
    """A command made of a procedure's declaration: its parameters are the options, its rows the output.

    Args:
        procedure: gives name, help and parameters.
        run: does it; calls the procedure when left out.
        outcome: the exit code for the rows.
        shown: examples for the help; made of the required parameters when left out.
        more_options: besides those of the parameters, the output and the session.
    """

    def command(ctx: click.Context, /, **given: Any) -> None:
        wishes = wishes_of(given)
        as_json = given.pop("as_json")
        runner = runner_of(ctx)
        rows = guarded(lambda: run(runner, given, wishes) if run else runner.call(procedure, given, wishes))
        print_rows(rows, as_json)
        code = outcome(rows)
        if rows and code != ExitCode.DONE and rows[-1].get("message"):
            say(": ".join(text for text in (rows[-1].get("reason"), rows[-1]["message"]) if text))
        elif not rows and not as_json:
            say("no rows")
        ctx.exit(code)

    options = [option_of(p, TABLE_NAMES) for p in procedure.parameters]
    return click.Command(
        command_name(procedure),
        callback=click.pass_context(command),
        params=[*options, json_option(), *more_options, *session_options()],
        help=procedure.doc,
        epilog=examples(*(shown or [_example(procedure)])) + f"\n\n{exit_codes_text()}",
    )


def command_name(procedure: Procedure) -> str:
    """The procedure's name as commands are spelled."""
    return procedure.name.replace("_", "-")


def _example(procedure: Procedure) -> str:
    """The command with what it needs, and the table where it takes one."""
    typed = [
        "--table db.flights" if p.name == "table" else f"{option_of(p).opts[0]} {p.name.upper()}"
        for p in procedure.parameters
        if p.required or p.name == "table"
    ]
    return " ".join(["use-spark", command_name(procedure), *typed])
