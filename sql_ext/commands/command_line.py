"""The commands together, and the entry point."""

from __future__ import annotations

import os
import sys

import click

from sql_ext.commands import conf, optimize, service, thrift


@click.group(name="use-spark", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="use-spark")
def cli() -> None:
    """Keeps Delta tables on Spark fast: a storage optimizer."""


for _command in (optimize.COMMAND, service.COMMAND, thrift.COMMAND, conf.COMMAND):
    cli.add_command(_command)


def main() -> None:
    """Entry point: keeps standard output for rows, whatever Spark's processes print."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as out:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        sys.stdout = out
        cli(prog_name="use-spark")
