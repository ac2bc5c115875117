"""Commands made of a procedure's declaration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from procedures.declaration import Procedure
from sql_ext.commands.exits import ExitCode, exit_codes_text, guarded
from sql_ext.commands.options import option_of, output_options, session_options
from sql_ext.commands.output import Row, print_rows, say
from sql_ext.commands.runner import Runner, runner_of
from sql_ext.commands.sessions import SessionWishes, wishes_of

TABLE_NAMES = {"table": ("--table-location", "--table")}


def rows_command(
    procedure: Procedure,
    run: Callable[[Runner, dict[str, Any], SessionWishes], list[Row]],
    outcome: Callable[[Sequence[Row]], ExitCode],
    defaults: Mapping[str, Any] | None = None,
) -> click.Command:
    """A command made of a procedure's declaration: its parameters are the options, its rows the output.

    Args:
        procedure: gives name, help and parameters.
        run: does it.
        outcome: the exit code for the rows.
        defaults: sentences on defaults that differ from the procedure's, by parameter, for the help.
    """

    def command(ctx: click.Context, /, **given: Any) -> None:
        wishes = wishes_of(given)
        as_json = given.pop("as_json")
        rows = guarded(lambda: run(runner_of(ctx), given, wishes))
        print_rows(rows, as_json)
        code = outcome(rows)
        if rows and code != ExitCode.DONE:
            say(f"{rows[-1]['reason']}: {rows[-1]['message']}")
        ctx.exit(code)

    options = [option_of(p, TABLE_NAMES) for p in procedure.parameters]
    for option in options:
        note = (defaults or {}).get(option.name or "")
        option.help = f"{option.help} {note}" if note else option.help
    return click.Command(
        procedure.name.replace("_", "-"),
        callback=click.pass_context(command),
        params=[*options, *output_options(), *session_options()],
        help=procedure.doc,
        epilog=exit_codes_text(),
    )
