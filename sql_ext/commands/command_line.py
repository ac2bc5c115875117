"""The command group and the entry point."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import click

from sql_ext.commands import check, completion, conf, doctor, inspect, optimize, service, sql, thrift, vacuum
from sql_ext.commands.completion import PROGRAM
from sql_ext.commands.driver import end_driver, started_driver
from sql_ext.commands.other_procedures import other_commands
from sql_ext.startup_output import wait_for_output

_OWN = (optimize, vacuum, service, thrift, inspect, sql, check, doctor, conf, completion)


@click.group(name=PROGRAM, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="use-spark")
def cli() -> None:
    """Optimizes the storage of Delta tables on Apache Spark."""


for _file in _OWN:
    cli.add_command(_file.COMMAND)
for _command in other_commands(cli.commands):
    cli.add_command(_command)


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
        if end_driver(started_driver()):
            wait_for_output()
        # Click ends a command whose reader has exited, such as `head`, but its last output is still in the buffer.
        with suppress(BrokenPipeError):
            out.close()
