"""``use-spark conf``."""

from __future__ import annotations

import click

from sql_ext.commands.exits import guarded
from sql_ext.commands.options import examples


def _conf() -> None:
    from sql_ext.configuration import spark_conf

    for key, value in guarded(spark_conf).items():
        click.echo(f"{key}={value}")


COMMAND = click.Command(
    "conf",
    callback=_conf,
    help="Prints the settings that spark-submit --properties-file needs.",
    epilog=examples("use-spark conf > use.conf"),
)
