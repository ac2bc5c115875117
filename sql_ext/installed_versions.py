"""The versions of Spark and Delta that a session of this process would have."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from catalog.errors import MissingPackageError, NotSupportedError
from catalog.jvm.spark_lines import SparkLine, UnsupportedVersionError, delta_coordinates, line_of, shim_name

_CORE_JAR = re.compile(r"spark-core_[\d.]+-(.+)\.jar")
SPARK_EXTRA = "spark"
"""The extra of this project that installs Spark and Delta."""
_DELTA_JAR = re.compile(r"delta-spark_.+-([\d.]+)\.jar")


@dataclass(frozen=True)
class InstalledVersions:
    """Versions of Spark and Delta that a line supports.

    Attributes:
        spark: version of Spark.
        delta: version of Delta.
        has_delta: whether Delta's jar is among Spark's jars, as on managed platforms.
    """

    spark: str
    delta: str
    has_delta: bool

    @property
    def shim(self) -> str:
        """The file name of the shim's jar."""
        return shim_name(self.spark, self.delta)

    @property
    def delta_coordinates(self) -> str:
        """The Maven coordinates of Delta."""
        return delta_coordinates(line_of(self.spark), self.delta)


def require_spark() -> ModuleType:
    """Returns the package pyspark.

    Raises:
        MissingPackageError: it is not installed.
    """
    try:
        import pyspark
    except ImportError as error:
        raise MissingPackageError.of("pyspark", SPARK_EXTRA) from error
    return pyspark


def installed_versions(environment: Mapping[str, str]) -> InstalledVersions:
    """Returns the versions that a session would have.

    Spark is the one in ``SPARK_HOME``, or else the installed pyspark. Delta is the one among Spark's jars, or else the
    installed delta-spark, or else the newest that the line of Spark supports.

    Args:
        environment: variables.

    Raises:
        NotSupportedError: USE does not run on them; the message names the lines.
        MissingPackageError: there is no Spark.
    """
    home = spark_home(environment)
    spark = version_of(home) or str(require_spark().__version__)
    try:
        line = line_of(spark)
        present = _version_in(home, _DELTA_JAR)
        found = InstalledVersions(spark, present or _installed_delta(line), present is not None)
        found.shim  # noqa: B018 - refuses a Delta that the line does not have
    except UnsupportedVersionError as error:
        raise NotSupportedError(str(error)) from None
    return found


def spark_home(environment: Mapping[str, str]) -> Path:
    """Returns the folder of the Spark that a session would start.

    Args:
        environment: variables.

    Raises:
        MissingPackageError: there is none.
    """
    return Path(environment.get("SPARK_HOME") or Path(str(require_spark().__file__)).parent)


def version_of(home: Path) -> str | None:
    """Returns the version of the Spark in a folder, from the name of its core jar; None if there is none."""
    return _version_in(home, _CORE_JAR)


def _version_in(home: Path, jar: re.Pattern[str]) -> str | None:
    matches = (jar.fullmatch(file.name) for file in (home / "jars").glob("*.jar"))
    return next((match[1] for match in matches if match), None)


def _installed_delta(line: SparkLine) -> str:
    try:
        return importlib.metadata.version("delta-spark")
    except importlib.metadata.PackageNotFoundError:
        return line.deltas[-1]
