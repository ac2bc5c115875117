"""What a server's session has that others do not need."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from catalog.properties.session_settings import PROGRESS
from sql_ext.commands.sessions import SUBMITTED, SessionWishes
from sql_ext.server.connect import STACKS_KEY

DEFAULT_WAREHOUSE = Path("spark-warehouse")
# Who sets one of these has a place for tables and names.
_PLACES = (
    "spark.sql.warehouse.dir",
    "spark.sql.catalogImplementation",
    "spark.hadoop.hive.metastore.uris",
    "spark.hadoop.javax.jdo.option.ConnectionURL",
)

_DEFAULTS = {
    STACKS_KEY: "false",
    # Bars of runs at once, for nobody to see.
    PROGRESS.name: "false",
    # Spark's web pages show every statement, and ask for no token.
    "spark.ui.enabled": "false",
    # BI tools ask the metastore for columns, and Delta tells them to it only then.
    "spark.databricks.delta.catalog.update.enabled": "true",
}


def for_a_server(wishes: SessionWishes) -> SessionWishes:
    """Adds what a server needs: tables that survive a restart, and no web pages.

    Args:
        wishes: what the command was told; what it says stays.
    """
    if wishes.warehouse is None and SUBMITTED not in os.environ and not any(key in wishes.conf for key in _PLACES):
        wishes = replace(wishes, warehouse=DEFAULT_WAREHOUSE)
    return replace(wishes, conf={**_DEFAULTS, **wishes.conf})
