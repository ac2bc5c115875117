"""``use-spark thrift``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sql_ext.commands.exits import exit_codes_text, guarded
from sql_ext.commands.options import examples, session_options
from sql_ext.commands.runner import runner_of
from sql_ext.commands.sessions import wishes_of
from sql_ext.server.settings import AUTHENTICATIONS, DEFAULT_PORT, ServerSettings
from sql_ext.server.token import DEFAULT_TOKEN_FILE

_LAST_PORT = 65535


def _thrift(ctx: click.Context, /, **given: Any) -> None:
    names = ("host", "port", "connect_port", "auth", "token_file")
    settings = ServerSettings(**{name: given.pop(name) for name in names})
    wishes = wishes_of(given)
    runner = runner_of(ctx)
    guarded(lambda: runner.thrift(settings, wishes))


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
            help="Port for JDBC and ODBC; 0 takes a free one.",
        ),
        click.Option(
            ["--connect-port"],
            type=click.IntRange(0, _LAST_PORT),
            help="Serve Spark Connect too, on this port; 0 takes a free one. Spark's usual one is 15002.",
        ),
        click.Option(
            ["--auth"],
            type=click.Choice(AUTHENTICATIONS),
            default="token",
            show_default=True,
            help="token: clients give the token as their password, with any user name. none: anyone is let in.",
        ),
        click.Option(
            ["--token-file"],
            type=click.Path(dir_okay=False, path_type=Path),
            default=DEFAULT_TOKEN_FILE,
            show_default=True,
            help="File with the token, which only you may read; made with a new token when missing.",
        ),
        *session_options(),
    ],
    help="Serves SQL to JDBC and ODBC clients, and to Spark Connect clients, from one attached driver with the "
    "automatic service, until SIGINT or SIGTERM; then it ends at a boundary between groups. Without --warehouse, "
    "tables live in ./spark-warehouse, unless --conf says where.",
    epilog=examples(
        "use-spark thrift --warehouse /data/warehouse",
        "use-spark thrift --port 10001 --connect-port 15002 --conf spark.master=local[4]",
    )
    + f"\n\n{exit_codes_text()}",
)
