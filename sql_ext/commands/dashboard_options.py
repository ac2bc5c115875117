"""The options of the dashboard, alone and as a part of ``use-spark service``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sql_ext.dashboard.address import DEFAULT_HOST, DEFAULT_PORT, DashboardAddress
from sql_ext.server.settings import AUTHENTICATIONS, TOKEN

_LAST_PORT = 65535


def dashboard_options(prefix: str = "") -> list[click.Option]:
    """Returns the options.

    Args:
        prefix: what their names begin with; with one, there is no default port.
    """
    port = f"Port of the dashboard; 0 is a free one.{' Needs use-spark[dashboard].' if prefix else ''}"
    return [
        click.Option(
            [f"--{prefix}port"],
            type=click.IntRange(0, _LAST_PORT),
            default=None if prefix else DEFAULT_PORT,
            show_default=not prefix,
            help=port,
        ),
        click.Option(
            [f"--{prefix}host"],
            default=DEFAULT_HOST,
            show_default=True,
            help="Name or address on which the dashboard listens.",
        ),
        click.Option(
            [f"--{prefix}auth"],
            type=click.Choice(AUTHENTICATIONS),
            default=TOKEN,
            show_default=True,
            help="token: only browsers with the token see the dashboard. none: no authentication.",
        ),
        click.Option(
            [f"--{prefix}token-file"],
            type=click.Path(dir_okay=False, path_type=Path),
            help="File with the token, readable only by you. Created with a new token if it is missing. By default, "
            "each start makes a token and prints it.",
        ),
    ]


def dashboard_address(options: dict[str, Any], prefix: str = "") -> DashboardAddress | None:
    """Removes the values of ``dashboard_options`` from the parsed options; returns None without a port.

    Args:
        options: values by parameter.
        prefix: as for ``dashboard_options``.
    """
    values = {name: options.pop(f"{prefix}{name}".replace("-", "_")) for name in ("port", "host", "auth", "token_file")}
    return None if values["port"] is None else DashboardAddress(**values, prefix=prefix)
