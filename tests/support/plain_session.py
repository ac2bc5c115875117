"""A session of Delta without USE: no jar, no extension and no setting of ours."""

import os
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from sql_ext.configuration import spark_conf
from sql_ext.delta_jars import downloaded_jars

_DELTA = ("spark.jars.packages", "spark.jars.excludes")


# As quick with small statements as the session of the tests.
SMALL = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


def start_plain_session(folder: Path, sized: Mapping[str, str] = SMALL, master: str = "local[1]") -> SparkSession:
    """Starts a session of Delta that keeps its own files below ``folder``.

    To be called in a process that has no session.

    Args:
        folder: for its files.
        sized: settings that depend on the size of the work.
        master: of Spark.
    """
    packages = {key: value for key, value in spark_conf().items() if key in _DELTA}
    jars = downloaded_jars(packages["spark.jars.packages"], {}, os.environ) if packages else None
    settings = {
        **({"spark.jars": ",".join(map(str, jars))} if jars else packages),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.local.dir": f"{folder}/local",
        "spark.driver.extraJavaOptions": f"-Dderby.stream.error.file={folder}/derby.log -XX:+UseSerialGC",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        **sized,
    }
    builder = SparkSession.builder.master(master).appName("plain Delta")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
