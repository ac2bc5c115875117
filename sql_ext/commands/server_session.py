"""What a server's session has that others do not need."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from procedures.progress import PROGRESS_KEY
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
    PROGRESS_KEY: "false",
    # BI tools ask the metastore for columns, and Delta tells them to it only then.
    "spark.databricks.delta.catalog.update.enabled": "true",
}


def for_a_server(wishes: SessionWishes, loopback: bool) -> SessionWishes:
    """Adds what is left out: tables that survive a restart, and Spark's own ports on loopback too.

    Args:
        wishes: what the command was told; what it says stays.
        loopback: whether the server listens on loopback only.
    """
    submitted = SUBMITTED in os.environ
    if wishes.warehouse is None and not submitted and not any(key in wishes.conf for key in _PLACES):
        wishes = replace(wishes, warehouse=DEFAULT_WAREHOUSE)
    master = wishes.conf.get("spark.master", "local")
    if loopback and not submitted and master.startswith("local"):
        # Spark's web pages, which show every statement, and its own ports.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return replace(wishes, conf={**_DEFAULTS, **wishes.conf})
