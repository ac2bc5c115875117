"""The session of a benchmark: two cores, as our users' smallest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

import sql_ext
from sql_ext.startup_output import held_back


def start_session(name: str, home: Path, heap: str, settings: Mapping[str, str]) -> SparkSession:
    """Starts an attached session that writes below a folder only.

    Args:
        name: of the application.
        home: the folder.
        heap: of the driver, such as ``2g``.
        settings: further settings of Spark.
    """
    builder = SparkSession.builder.master("local[2]").appName(name)
    own = {
        "spark.driver.memory": heap,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.local.dir": str(home / "local"),
    }
    for key, value in {**own, **settings}.items():
        builder = builder.config(key, value)
    with held_back():
        spark = sql_ext.configure(builder).getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
    sql_ext.attach(spark)
    return spark
