"""Spark settings that add Delta and the shim to a session."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.errors import UseError
from sql_ext.delta_jars import downloaded_jars
from sql_ext.installed_versions import installed_versions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JARS = Path(__file__).parent / "jars"

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
    """Returns the path of the shim's jar for the Spark and the Delta of a session.

    Raises:
        NotSupportedError: USE does not run on these versions.
        UseError: the jar is missing, for example in a checkout where it was not built.
    """
    path = JARS / installed_versions(os.environ).shim
    if not path.is_file():
        raise UseError(f"{path} is missing: run make shim in the checkout, or reinstall use-spark.")
    return path


def spark_conf() -> dict[str, str]:
    """Returns all settings that USE needs, for ``spark-submit --conf`` or ``spark-defaults.conf``.

    Delta's packages are among them, unless Delta's jar is among Spark's jars.

    Raises:
        NotSupportedError: USE does not run on these versions of Spark and Delta.
        UseError: the shim's jar is missing.
    """
    versions = installed_versions(os.environ)
    delta = {} if versions.has_delta else {_PACKAGES: versions.delta_coordinates, _EXCLUDES: _PROVIDED}
    return {
        "spark.jars": str(jar()),
        **delta,
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

    Raises:
        NotSupportedError: USE does not run on the installed Spark and Delta.
    """
    present: dict[str, str] = dict(builder._options)
    settings = spark_conf()
    if _SCHEDULER_MODE in present or _SCHEDULER_POOLS in present:
        # Do not mix with a scheduler of the caller.
        del settings[_SCHEDULER_MODE], settings[_SCHEDULER_POOLS]
    if _PACKAGES not in settings:
        pass  # Delta is among Spark's jars
    elif _delta_jar(settings[_PACKAGES]) in present.get("spark.jars", ""):
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
