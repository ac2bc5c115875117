"""Checks of the Spark that would start, of its environment and of its class path."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

from catalog.jvm.spark_lines import SCALA, UnsupportedVersionError, line_of, minor_of, shim_name
from sql_ext.commands.doctor_checks.finding import FAIL, OK, WARN, Finding
from sql_ext.delta_jars import ivy_folder
from sql_ext.installed_versions import version_of
from sql_ext.spark_defaults import defaults_of

_SCALA_JAR = re.compile(r"scala-library-([\d.]+)\.jar")
_EXTENSION_CLASS = "io/usespark/UseSessionExtension.class"
_OTHER_JAR = re.compile(r"(delta-(?:spark|core|storage)[^/:,]*|use-shim[^/:,]*)\.jar")
_CLASS_PATHS = ("spark.driver.extraClassPath", "spark.executor.extraClassPath")


def pinned_threads(environment: Mapping[str, str]) -> Finding:
    """Checks that each Python thread has its own JVM thread, which calls from SQL need.

    Args:
        environment: variables.
    """
    value = environment.get("PYSPARK_PIN_THREAD")
    if value is None or value.lower() == "true":
        return Finding("threads", OK, "PYSPARK_PIN_THREAD is on")
    return Finding("threads", FAIL, f"PYSPARK_PIN_THREAD={value}", "unset it: calls from SQL would deadlock")


def submit_arguments(environment: Mapping[str, str]) -> Finding:
    """Checks that the variable for arguments of the launcher starts a shell of Python.

    Args:
        environment: variables.
    """
    text = environment.get("PYSPARK_SUBMIT_ARGS")
    if text is None or text.split()[-1:] == ["pyspark-shell"]:
        return Finding("arguments", OK, "PYSPARK_SUBMIT_ARGS starts a session")
    advice = "unset it, or let it end with pyspark-shell"
    return Finding("arguments", FAIL, f"PYSPARK_SUBMIT_ARGS = '{text}'", advice)


def spark_home(environment: Mapping[str, str], package: Path, python: str) -> Finding:
    """Checks that USE runs on the Spark that would start.

    Args:
        environment: variables.
        package: folder of the imported pyspark, which contains a complete Spark unless it is that of ``SPARK_HOME``.
        python: version of the imported pyspark.
    """
    configured = environment.get("SPARK_HOME")
    home = Path(configured) if configured else package
    where = f"SPARK_HOME={configured}" if configured else str(home)
    version = version_of(home)
    if version is None:
        return Finding(
            "spark", FAIL, f"{where} contains no Spark", "unset SPARK_HOME: the installed pyspark is sufficient"
        )
    try:
        line_of(version)
    except UnsupportedVersionError as error:
        return Finding("spark", FAIL, f"{where} is Spark {version}", str(error))
    if minor_of(python) != minor_of(version):
        advice = f"unset SPARK_HOME, or take its pyspark: pip install pyspark=={version}"
        return Finding("spark", FAIL, f"{where} is Spark {version}, the imported pyspark is {python}", advice)
    if configured and home.resolve() not in (package.resolve(), *package.resolve().parents):
        return Finding("spark", WARN, f"{where} is used in place of {package}", "its jars and its conf folder apply")
    return Finding("spark", OK, f"{where} is Spark {version}")


def versions(spark: str, scala: str | None, delta: str) -> Finding:
    """Checks the pair of Spark and Delta, and Spark's Scala.

    Args:
        spark: version of Spark.
        scala: version of Spark's Scala library; None if it was not found.
        delta: version of Delta.
    """
    try:
        shim_name(spark, delta)
    except UnsupportedVersionError as error:
        return Finding("versions", FAIL, f"Spark {spark}, Delta {delta}", str(error))
    if scala is not None and minor_of(scala) != SCALA:
        return Finding("versions", FAIL, f"Spark {spark} with Scala {scala}", f"use a Spark that has Scala {SCALA}")
    return Finding("versions", OK, f"Spark {spark}, Delta {delta}, Scala {scala or SCALA}")


def scala_version(home: Path) -> str | None:
    """Returns the version of the Scala library in a Spark; None if there is none."""
    matches = (_SCALA_JAR.fullmatch(jar.name) for jar in (home / "jars").glob("scala-library-*.jar"))
    return next((match[1] for match in matches if match), None)


def shim(jar: Path, version: str) -> Finding:
    """Checks that the shim's jar exists, is complete and belongs to this release.

    Args:
        jar: its path.
        version: version of the installed use-spark.
    """
    advice = "reinstall use-spark, or run make shim in the checkout"
    if not jar.is_file():
        return Finding("shim", FAIL, f"{jar} is missing", advice)
    try:
        with zipfile.ZipFile(jar) as content:
            classes = set(content.namelist())
            manifest = content.read("META-INF/MANIFEST.MF").decode("utf-8")
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        return Finding("shim", FAIL, f"{jar} cannot be read: {error}", advice)
    if _EXTENSION_CLASS not in classes:
        return Finding("shim", FAIL, f"{jar} lacks {_EXTENSION_CLASS}", advice)
    built = re.search(r"^Implementation-Version: (\S+)", manifest, re.MULTILINE)
    if built is None or built[1] != version:
        release = built[1] if built else "an unknown release"
        return Finding("shim", FAIL, f"{jar} belongs to {release}, use-spark is {version}", advice)
    return Finding("shim", OK, str(jar))


def class_path(environment: Mapping[str, str], home: Path, has_delta: bool) -> list[Finding]:
    """Checks whether another Delta or another shim is on the class path.

    Args:
        environment: variables.
        home: folder of the Spark that would start.
        has_delta: whether the session's Delta is the one among the jars of this Spark.
    """
    conf = Path(environment.get("SPARK_CONF_DIR") or home / "conf") / "spark-defaults.conf"
    places = {name: environment.get(name, "") for name in ("SPARK_DIST_CLASSPATH", "CLASSPATH")}
    defaults = defaults_of(conf)
    places |= {f"{key} of {conf}": defaults.get(key, "") for key in _CLASS_PATHS}
    jars = [jar.name for jar in (home / "jars").glob("*.jar")]
    places[str(home / "jars")] = ":".join(f"/{jar}" for jar in jars if not (has_delta and jar.startswith("delta-")))
    findings = [
        Finding(
            "class path",
            WARN,
            f"{place} contains {match[0]}",
            "remove it, or use the same jars everywhere: the first one on the class path wins",
        )
        for place, text in places.items()
        for match in [_OTHER_JAR.search(text)]
        if match
    ]
    return findings or [Finding("class path", OK, "no other Delta and no other shim")]


def delta_jars(environment: Mapping[str, str], home: Path, coordinates: str, settings: Mapping[str, str]) -> Finding:
    """Checks whether Delta's jars are on this machine or have to be downloaded when a session starts.

    Args:
        environment: variables.
        home: folder of the Spark that would start.
        coordinates: coordinates of the package, ``group:name:version``.
        settings: settings of Spark for the session.
    """
    group, name, version = coordinates.split(":")
    file = f"{name}-{version}.jar"
    ivy = ivy_folder(settings, environment)
    jars = [jar.strip() for jar in settings.get("spark.jars", "").split(",")]
    if any(jar.endswith(file) for jar in jars):
        return Finding("delta jars", OK, f"{file} is in spark.jars")
    if (home / "jars" / file).is_file():
        return Finding("delta jars", OK, f"{file} is among Spark's jars")
    for place in (ivy / "jars" / f"{group}_{file}", ivy / "cache" / group / name / "jars" / file):
        if place.is_file():
            return Finding("delta jars", OK, f"already downloaded: {place}")
    return Finding(
        "delta jars",
        WARN,
        f"{file} is not in {ivy} yet",
        "the first session downloads it; without a network, list the jars in spark.jars (see docs/deploy.md)",
    )
