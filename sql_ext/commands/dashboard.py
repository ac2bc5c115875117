"""``use-spark dashboard``."""

from __future__ import annotations

from typing import Any

import click

from sql_ext.commands.chosen_runner import runner_of
from sql_ext.commands.dashboard_options import dashboard_address, dashboard_options
from sql_ext.commands.exits import exit_codes_text, guarded
from sql_ext.commands.options import examples, session_options
from sql_ext.commands.session_settings import session_settings_of


def _dashboard(ctx: click.Context, /, **options: Any) -> None:
    address = dashboard_address(options)
    assert address is not None  # the port has a default
    session_settings = session_settings_of(options)
    runner = runner_of(ctx)
    guarded(lambda: runner.dashboard(address, session_settings))


COMMAND = click.Command(
    "dashboard",
    callback=click.pass_context(_dashboard),
    params=[*dashboard_options(), *session_options()],
    help="Serves a page about the tables under automatic optimization, and optimizes nothing. It prints the address of "
    "the page. SIGINT or SIGTERM stops it. Needs use-spark[dashboard]. To see what a service does, use its option "
    "--dashboard-port.",
    epilog=examples(
        "use-spark dashboard --warehouse /data/wh",
        "use-spark dashboard --port 0 --token-file ~/.use-spark/token",
    )
    + f"\n\n{exit_codes_text()}",
)
