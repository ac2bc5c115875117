"""The Spark settings that bring Delta and the shim into a session."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

from pyspark.sql import SparkSession

from catalog.errors import UseError

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
# Users' queries go first: the pool `default` outweighs the one of automatic optimization.
_SCHEDULER_MODE = "spark.scheduler.mode"
_SCHEDULER_POOLS = "spark.scheduler.allocation.file"


def jar() -> Path:
    """Path of the shim's jar inside the installed package.

    Raises:
        UseError: the jar is missing, as in a checkout where it was never built.
    """
    if not JAR.is_file():
        raise UseError(f"{JAR} is missing: run make shim in the checkout, or reinstall use-spark.")
    return JAR


def spark_conf() -> dict[str, str]:
    """All settings of ours, as ``spark-submit --conf`` or ``spark-defaults.conf`` take them."""
    delta = importlib.metadata.version("delta-spark")
    spark = ".".join(importlib.metadata.version("pyspark").split(".")[:2])
    return {
        "spark.jars": str(jar()),
        _PACKAGES: f"io.delta:delta-spark_{spark}_2.13:{delta}",
        "spark.jars.excludes": _PROVIDED,
        "spark.sql.extensions": EXTENSION,
        **_CATALOGS,
        _SCHEDULER_MODE: "FAIR",
        _SCHEDULER_POOLS: (Path(__file__).parent / "pools.xml").as_uri(),
    }


def _delta_jar(coordinates: str) -> str:
    """The file name of a package."""
    _, name, version = coordinates.split(":")
    return f"{name}-{version}.jar"


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Adds the settings to a session builder, to what the caller has set already.

    Args:
        builder: ``SparkSession.builder``, before ``getOrCreate()``.

    Returns:
        The same builder.
    """
    present: dict[str, str] = dict(builder._options)
    wanted = spark_conf()
    if _SCHEDULER_MODE in present or _SCHEDULER_POOLS in present:
        # Who has a scheduler of his own keeps it whole.
        del wanted[_SCHEDULER_MODE], wanted[_SCHEDULER_POOLS]
    if _delta_jar(wanted[_PACKAGES]) in present.get("spark.jars", ""):
        # Given as a file, as where there is no network to fetch it from.
        del wanted[_PACKAGES], wanted["spark.jars.excludes"]
    for key, value in wanted.items():
        merged = value
        if key in ("spark.jars", _PACKAGES, "spark.jars.excludes", "spark.sql.extensions"):
            earlier = [part for part in present.get(key, "").split(",") if part and "DeltaSparkSession" not in part]
            merged = ",".join(dict.fromkeys([*earlier, *value.split(",")]))
        builder = builder.config(key, merged)
    return builder
