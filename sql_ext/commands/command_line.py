"""The command group and the entry point, which import a command only to run it."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from contextlib import suppress

import click
from click.shell_completion import CompletionItem

from sql_ext.commands.command_names import FILES, PROGRAM, SECTIONS


class LazyCommands(click.Group):
    """A group whose commands are imported when they are called; names and their help are known before."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # the signature is click's
        """Returns all names."""
        return sorted(name for names in SECTIONS.values() for name in names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports a command; returns None if there is none of this name."""
        if cmd_name in self.commands:
            return self.commands[cmd_name]
        if cmd_name in FILES:
            command: click.Command = importlib.import_module(FILES[cmd_name]).COMMAND
            return command
        if cmd_name not in self.list_commands(ctx):
            return None
        from sql_ext.commands.other_procedures import other_command

        return other_command(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command of the arguments; the error for an unknown name suggests the nearest one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not near:
                raise
            raise click.UsageError(f"{error.message} Did you mean {near[0]}?", ctx) from error

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002  # the signature is click's
        formatter: click.HelpFormatter,
    ) -> None:
        """Writes the names by section."""
        for section, names in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl(list(names.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completes the name of a command."""
        known = {name: text for names in SECTIONS.values() for name, text in names.items()}
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [CompletionItem(n, help=known[n]) for n in sorted(known) if n.startswith(incomplete)] + options


@click.group(
    name=PROGRAM,
    cls=LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name="use-spark")
def cli() -> None:
    """Optimizes the storage of Delta tables on Apache Spark."""


def all_commands() -> dict[str, click.Command]:
    """Imports and returns all commands by name."""
    ctx = click.Context(cli)
    commands = {name: cli.get_command(ctx, name) for name in cli.list_commands(ctx)}
    return {name: command for name, command in commands.items() if command is not None}


def main() -> None:
    """Runs the command line.

    Standard output is reserved for rows: output of Spark's processes goes to standard error. The JVM ends with the
    command.
    """
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout = out
    try:
        cli(prog_name=PROGRAM)
    finally:
        if "pyspark" in sys.modules:
            end_jvm()
        # Click ends a command whose reader has exited, such as `head`, but its last output is still in the buffer.
        with suppress(BrokenPipeError):
            out.close()


def end_jvm() -> None:
    """Ends the JVM that a command has started, and passes on its last output."""
    from sql_ext.driver_process import end_driver, started_driver
    from sql_ext.startup_output import wait_for_output

    if end_driver(started_driver()):
        wait_for_output()
