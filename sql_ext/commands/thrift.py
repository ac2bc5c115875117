"""``use-spark thrift``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sql_ext.commands.chosen_runner import runner_of
from sql_ext.commands.exits import exit_codes_text, guarded
from sql_ext.commands.options import examples, session_options
from sql_ext.commands.session_settings import session_settings_of
from sql_ext.server.settings import AUTHENTICATIONS, DEFAULT_PORT, ServerSettings
from sql_ext.server.token import DEFAULT_TOKEN_FILE

_LAST_PORT = 65535


def _thrift(ctx: click.Context, /, **options: Any) -> None:
    names = ("host", "port", "connect_port", "auth", "token_file")
    settings = ServerSettings(**{name: options.pop(name) for name in names})
    session_settings = session_settings_of(options)
    runner = runner_of(ctx)
    guarded(lambda: runner.thrift(settings, session_settings))


COMMAND = click.Command(
    "thrift",
    callback=click.pass_context(_thrift),
    params=[
        click.Option(["--host"], default="127.0.0.1", show_default=True, help="Name or address to listen on."),
        click.Option(
            ["--port"],
            type=click.IntRange(0, _LAST_PORT),
            default=DEFAULT_PORT,
            show_default=True,
            help="Port for JDBC and ODBC; 0 chooses a free one.",
        ),
        click.Option(
            ["--connect-port"],
            type=click.IntRange(0, _LAST_PORT),
            help="Also serves Spark Connect, on this port; 0 chooses a free one. Spark's default is 15002.",
        ),
        click.Option(
            ["--auth"],
            type=click.Choice(AUTHENTICATIONS),
            default="token",
            show_default=True,
            help="token: clients send the token as their password, with any user name. none: no authentication.",
        ),
        click.Option(
            ["--token-file"],
            type=click.Path(dir_okay=False, path_type=Path),
            default=DEFAULT_TOKEN_FILE,
            show_default=True,
            help="File with the token, readable only by you. Created with a new token if it is missing.",
        ),
        *session_options(),
    ],
    help="Starts a Spark driver that serves SQL to JDBC, ODBC and Spark Connect, and runs the automatic service. "
    "SIGINT or SIGTERM stops it at a boundary between groups. Without --warehouse, tables are in ./spark-warehouse, "
    "unless --conf sets another location.",
    epilog=examples(
        "use-spark thrift --warehouse /data/warehouse",
        "use-spark thrift --port 10001 --connect-port 15002 --conf spark.master=local[4]",
    )
    + f"\n\n{exit_codes_text()}",
)
