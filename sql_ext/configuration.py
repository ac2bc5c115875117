"""Spark settings that add Delta and the shim to a session."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path

from pyspark.sql import SparkSession

from catalog.errors import UseError
from sql_ext.delta_jars import downloaded_jars

JAR = Path(__file__).parent / "jars" / "use-shim.jar"

EXTENSION = "io.usespark.UseSessionExtension"
_CATALOGS = {
    "spark.sql.catalog.spark_catalog": "io.usespark.UseDeltaCatalog",
    "spark.sql.catalog.use": "io.usespark.UseProcedureCatalog",
    "spark.sql.catalog.use_catalog": "io.usespark.UseCatalog",
}
# Delta's dependencies that Spark's own class path already has.
_PROVIDED = (
    "org.apache.hadoop:hadoop-client-api,org.apache.hadoop:hadoop-client-runtime,org.apache.logging.log4j:*,"
    "org.slf4j:*,com.fasterxml.jackson.core:*,com.fasterxml.jackson.datatype:*,org.apache.parquet:*"
)
_PACKAGES = "spark.jars.packages"
_EXCLUDES = "spark.jars.excludes"
# Queries have priority: the pool `default` has a higher weight than the one of automatic optimization.
_SCHEDULER_MODE = "spark.scheduler.mode"
_SCHEDULER_POOLS = "spark.scheduler.allocation.file"


def jar() -> Path:
    """Returns the path of the shim's jar in the installed package.

    Raises:
        UseError: the jar is missing, for example in a checkout where it was not built.
    """
    if not JAR.is_file():
        raise UseError(f"{JAR} is missing: run make shim in the checkout, or reinstall use-spark.")
    return JAR


def spark_conf() -> dict[str, str]:
    """Returns all settings that USE needs, for ``spark-submit --conf`` or ``spark-defaults.conf``."""
    delta = importlib.metadata.version("delta-spark")
    spark = ".".join(importlib.metadata.version("pyspark").split(".")[:2])
    return {
        "spark.jars": str(jar()),
        _PACKAGES: f"io.delta:delta-spark_{spark}_2.13:{delta}",
        _EXCLUDES: _PROVIDED,
        "spark.sql.extensions": EXTENSION,
        **_CATALOGS,
        _SCHEDULER_MODE: "FAIR",
        _SCHEDULER_POOLS: (Path(__file__).parent / "pools.xml").as_uri(),
    }


def _delta_jar(coordinates: str) -> str:
    """Returns the file name of a package."""
    _, name, version = coordinates.split(":")
    return f"{name}-{version}.jar"


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Adds the settings that USE needs to those of a session builder.

    If Ivy has already downloaded Delta's jars, they are added as files. Otherwise Ivy downloads them when the session
    starts.

    Args:
        builder: ``SparkSession.builder``, before ``getOrCreate()``.

    Returns:
        The same builder.
    """
    present: dict[str, str] = dict(builder._options)
    settings = spark_conf()
    if _SCHEDULER_MODE in present or _SCHEDULER_POOLS in present:
        # Do not mix with a scheduler of the caller.
        del settings[_SCHEDULER_MODE], settings[_SCHEDULER_POOLS]
    if _delta_jar(settings[_PACKAGES]) in present.get("spark.jars", ""):
        # Delta is given as a file, for example on a machine without a network.
        del settings[_PACKAGES], settings[_EXCLUDES]
    elif jars := downloaded_jars(settings[_PACKAGES], present, os.environ):
        del settings[_PACKAGES], settings[_EXCLUDES]
        settings["spark.jars"] = ",".join([settings["spark.jars"], *map(str, jars)])
    for key, value in settings.items():
        merged = value
        if key in ("spark.jars", _PACKAGES, _EXCLUDES, "spark.sql.extensions"):
            earlier = [part for part in present.get(key, "").split(",") if part and "DeltaSparkSession" not in part]
            merged = ",".join(dict.fromkeys([*earlier, *value.split(",")]))
        builder = builder.config(key, merged)
    return builder
