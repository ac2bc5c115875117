"""The command group and the entry point, which import a command only to run it."""

from __future__ import annotations

import difflib
import importlib
import logging
import os
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import suppress
from typing import NoReturn

import click
from click.shell_completion import CompletionItem

from sql_ext.commands.command_names import FILES, FIRST_STEPS, PROGRAM, SECTIONS


class CommandImports(MutableMapping[str, click.Command]):
    """The commands by name, each imported when it is looked up."""

    def __init__(self) -> None:
        self._imported: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        """Imports a command."""
        if name not in self._imported:
            self._imported[name] = _imported(name)
        return self._imported[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        """Adds a command that is no part of the product."""
        self._imported[name] = command

    def __delitem__(self, name: str) -> None:
        """Removes a command that was added."""
        del self._imported[name]

    def __iter__(self) -> Iterator[str]:
        """Iterates over the names."""
        return iter(sorted({name for names in SECTIONS.values() for name in names} | set(self._imported)))

    def __len__(self) -> int:
        """Counts the names."""
        return len(list(iter(self)))


def _imported(name: str) -> click.Command:
    if name in FILES:
        command: click.Command = importlib.import_module(FILES[name]).COMMAND
        return command
    if not any(name in names for names in SECTIONS.values()):
        raise KeyError(name)
    from sql_ext.commands.other_procedures import other_command

    generated = other_command(name)
    if generated is None:
        raise KeyError(name)
    return generated


class Commands(click.Group):
    """A group whose help and completion come from the names alone."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses the arguments; without any, says what to type first."""
        if not args and not ctx.resilient_parsing:
            click.echo(FIRST_STEPS)
            ctx.exit()
        return super().parse_args(ctx, args)

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
    cls=Commands,
    commands=CommandImports(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name="use-spark")
def cli() -> None:
    """Optimizes the storage of Delta tables on Apache Spark."""


# Py4J logs a stack when its connection ends or is interrupted, and the command says so in one line.
_SAID_BY_COMMANDS = ("Exception while sending command.", "KeyboardInterrupt while sending command.")


def main() -> None:
    """Runs the command line.

    Standard output is reserved for rows: output of Spark's processes goes to standard error. The JVM ends with the
    command.
    """
    logging.getLogger().addFilter(lambda record: record.msg not in _SAID_BY_COMMANDS)
    if sys.stdout is None:
        _end_without_output("standard output: it is closed")
    try:
        _run()
    except OSError as error:
        _end_without_output(str(error) if error.filename else f"standard output: {error.strerror or error}")


def _end_without_output(problem: str) -> NoReturn:
    click.echo(f"{PROGRAM}: {problem}", err=True)
    sys.exit(1)


def _run() -> None:
    # Names of files need not be valid Unicode. In JSON, the replacement is an escape of the same character.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", errors="backslashreplace")
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
    from sql_ext import class_archive
    from sql_ext.driver_process import (
        SECONDS_TO_END,
        SECONDS_TO_STOP,
        end_driver,
        release_no_more_objects,
        started_driver,
    )
    from sql_ext.startup_output import wait_for_output

    driver = started_driver()
    if driver is not None:
        release_no_more_objects()
    if end_driver(driver, SECONDS_TO_STOP if class_archive.is_requested() else SECONDS_TO_END):
        wait_for_output()
