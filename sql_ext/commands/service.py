"""``use-spark service``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from procedures.service.service_settings import LISTENER_INTERVAL, MAX_TABLES, OPTIMIZATION_INTERVAL
from sql_ext.commands.exits import exit_codes_text, guarded
from sql_ext.commands.options import examples, session_options
from sql_ext.commands.runner import runner_of
from sql_ext.commands.sessions import wishes_of


def _service(ctx: click.Context, /, tables: tuple[str, ...], **given: Any) -> None:
    asked = {
        OPTIMIZATION_INTERVAL.name: given.pop("interval"),
        LISTENER_INTERVAL.name: given.pop("listener_interval"),
        MAX_TABLES.name: given.pop("max_tables"),
    }
    wishes = wishes_of(given)
    conf = {**wishes.conf, **{key: str(value) for key, value in asked.items() if value is not None}}
    runner = runner_of(ctx)
    guarded(lambda: runner.serve(tables, replace(wishes, conf=conf)))


COMMAND = click.Command(
    "service",
    callback=click.pass_context(_service),
    params=[
        click.Option(
            ["--table", "tables"],
            multiple=True,
            metavar="TABLE",
            help="A name or a path; may be repeated. The whole catalog when left out.",
        ),
        click.Option(["--interval"], help=f"Time between two runs, e.g. '10 minutes' ({OPTIMIZATION_INTERVAL.name})."),
        click.Option(
            ["--listener-interval"],
            help=f"Time between two looks at properties, in milliseconds or as a time ({LISTENER_INTERVAL.name}).",
        ),
        click.Option(
            ["--max-tables"],
            type=click.IntRange(min=1),
            help=f"Tables optimized at the same time ({MAX_TABLES.name}).",
        ),
        *session_options(),
    ],
    help="Optimizes tables that ask for it by their properties, until SIGINT or SIGTERM; then it ends at a "
    "boundary between groups.",
    epilog=examples(
        "use-spark service --warehouse /data/wh",
        "use-spark service --table db.flights --table /data/t --interval '10 minutes'",
    )
    + f"\n\n{exit_codes_text()}",
)
