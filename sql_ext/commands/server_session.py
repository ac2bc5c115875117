"""Settings of the session of a server."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from catalog.settings.session_settings import PROGRESS
from sql_ext.commands.session_settings import SessionSettings
from sql_ext.lifetime import SUBMITTED, Lifetime
from sql_ext.server.connect import STACKS_KEY

DEFAULT_WAREHOUSE = Path("spark-warehouse")
# Each of these settings determines where tables or their names are.
_PLACES = (
    "spark.sql.warehouse.dir",
    "spark.sql.catalogImplementation",
    "spark.hadoop.hive.metastore.uris",
    "spark.hadoop.javax.jdo.option.ConnectionURL",
)

_DEFAULTS = {
    STACKS_KEY: "false",
    # Nobody watches the progress bars of a server.
    PROGRESS.name: "false",
    # Spark's web pages show every statement and have no authentication.
    "spark.ui.enabled": "false",
    # BI tools read columns from the metastore, which Delta updates only with this setting.
    "spark.databricks.delta.catalog.update.enabled": "true",
}


def with_server_defaults(session_settings: SessionSettings) -> SessionSettings:
    """Adds the defaults of a server: tables that survive a restart, and no web pages.

    Args:
        session_settings: settings given to the command, which take precedence.
    """
    if (
        session_settings.warehouse is None
        and SUBMITTED not in os.environ
        and not any(key in session_settings.conf for key in _PLACES)
    ):
        session_settings = replace(session_settings, warehouse=DEFAULT_WAREHOUSE)
    return replace(session_settings, conf={**_DEFAULTS, **session_settings.conf}, lifetime=Lifetime.SERVER)
