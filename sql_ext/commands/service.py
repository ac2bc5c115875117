"""``use-spark service``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from procedures.service.service_settings import LISTENER_INTERVAL, MAX_TABLES, OPTIMIZATION_INTERVAL
from sql_ext.commands.chosen_runner import runner_of
from sql_ext.commands.dashboard_options import dashboard_address, dashboard_options
from sql_ext.commands.exits import exit_codes_text, guarded
from sql_ext.commands.log_source import check_paths
from sql_ext.commands.options import checked_name, checked_setting, examples, session_options
from sql_ext.commands.session_settings import session_settings_of
from sql_ext.server.metrics_address import DEFAULT_HOST, MetricsAddress

_DASHBOARD = "dashboard-"


def _service(ctx: click.Context, /, tables: tuple[str, ...], quiet: bool, **options: Any) -> None:
    service_conf = {
        OPTIMIZATION_INTERVAL.name: options.pop("interval"),
        LISTENER_INTERVAL.name: options.pop("listener_interval"),
        MAX_TABLES.name: options.pop("max_tables"),
    }
    port, host, most = options.pop("metrics_port"), options.pop("metrics_host"), options.pop("metrics_tables")
    if most and port is None:
        raise click.UsageError(f"--metrics-tables = {most} needs --metrics-port.")
    metrics = None if port is None else MetricsAddress(port, host)
    dashboard = dashboard_address(options, _DASHBOARD)
    session_settings = session_settings_of(options)
    conf = {**session_settings.conf, **{key: str(value) for key, value in service_conf.items() if value is not None}}
    guarded(lambda: check_paths(ctx, tables, session_settings))
    runner = runner_of(ctx)
    conf_of_service = replace(session_settings, conf=conf)
    guarded(lambda: runner.serve(tables, conf_of_service, metrics, dashboard, metrics_tables=most, is_quiet=quiet))


COMMAND = click.Command(
    "service",
    callback=click.pass_context(_service),
    params=[
        click.Option(
            ["--table", "tables"],
            multiple=True,
            callback=checked_name,
            metavar="TABLE",
            help="A name or a path. Can be repeated. The whole catalog by default.",
        ),
        click.Option(
            ["--interval"],
            callback=checked_setting(OPTIMIZATION_INTERVAL),
            help=f"Time between two runs, for example '10 minutes' ({OPTIMIZATION_INTERVAL.name}).",
        ),
        click.Option(
            ["--listener-interval"],
            callback=checked_setting(LISTENER_INTERVAL),
            help=f"Time between two checks of the tables, in milliseconds or with a unit ({LISTENER_INTERVAL.name}).",
        ),
        click.Option(
            ["--max-tables"],
            type=click.IntRange(min=1),
            help=f"Maximum number of tables optimized at once ({MAX_TABLES.name}).",
        ),
        click.Option(["--quiet"], is_flag=True, help="Prints no line for each run. Errors are still logged."),
        click.Option(
            ["--metrics-port"],
            type=click.IntRange(0, 65535),
            help="Serves metrics for Prometheus and /healthz on this port; 0 is a free one. Needs use-spark[metrics].",
        ),
        click.Option(
            ["--metrics-tables"],
            type=click.IntRange(0, 1000),
            default=0,
            show_default=True,
            help="Number of tables with metrics of their own. The others are one series, 'other'.",
        ),
        click.Option(
            ["--metrics-host"],
            default=DEFAULT_HOST,
            show_default=True,
            help="Address for --metrics-port. The endpoint has no authentication.",
        ),
        *dashboard_options(_DASHBOARD),
        *session_options(),
    ],
    help="Optimizes the tables whose properties turn on automatic optimization. SIGINT or SIGTERM stops it at a "
    "boundary between groups.",
    epilog=examples(
        "use-spark service --warehouse /data/wh",
        "use-spark service --table db.flights --table /data/t --interval '10 minutes'",
        "use-spark service --warehouse /data/wh --dashboard-port 8765",
    )
    + f"\n\n{exit_codes_text()}",
)
