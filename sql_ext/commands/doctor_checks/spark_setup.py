"""Spark as it would be started: which one, with which environment, and what lies on its class path."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

from sql_ext.commands.doctor_checks.finding import FAIL, OK, WARN, Finding

_CORE_JAR = re.compile(r"spark-core_[\d.]+-(.+)\.jar")
_EXTENSION_CLASS = "io/usespark/UseSessionExtension.class"
_STRANGER = re.compile(r"(delta-(?:spark|core|storage)[^/:,]*|use-shim[^/:,]*)\.jar")
_CLASS_PATHS = ("spark.driver.extraClassPath", "spark.executor.extraClassPath")


def pinned_threads(environment: Mapping[str, str]) -> Finding:
    """Whether each Python thread has a JVM thread of its own, which calls from SQL need.

    Args:
        environment: variables.
    """
    given = environment.get("PYSPARK_PIN_THREAD")
    if given is None or given.lower() == "true":
        return Finding("threads", OK, "PYSPARK_PIN_THREAD is on")
    return Finding("threads", FAIL, f"PYSPARK_PIN_THREAD={given}", "unset it: calls from SQL would deadlock")


def spark_home(environment: Mapping[str, str], package: Path, wanted: str) -> Finding:
    """Whether the Spark that would start is the one that the shim was built against.

    Args:
        environment: variables.
        package: folder of the installed pyspark, which is a whole Spark.
        wanted: version of Spark.
    """
    given = environment.get("SPARK_HOME")
    home = Path(given) if given else package
    where = f"SPARK_HOME={given}" if given else str(home)
    version = version_of(home)
    if version is None:
        return Finding("spark", FAIL, f"{where} holds no Spark", "unset SPARK_HOME: the installed pyspark is enough")
    if version != wanted:
        advice = f"unset SPARK_HOME, or set it to a Spark {wanted}"
        return Finding("spark", FAIL, f"{where} is Spark {version}, the shim needs {wanted}", advice)
    if given and home.resolve() != package.resolve():
        return Finding("spark", WARN, f"{where} is used in place of {package}", "its jars and its conf folder count")
    return Finding("spark", OK, f"{where} is Spark {version}")


def version_of(home: Path) -> str | None:
    """The version of the Spark in a folder, by the name of its core jar; None where there is none."""
    names = (_CORE_JAR.fullmatch(jar.name) for jar in (home / "jars").glob("spark-core_*.jar"))
    return next((found[1] for found in names if found), None)


def shim(jar: Path, version: str) -> Finding:
    """Whether the shim's jar is there, whole, and of this release.

    Args:
        jar: its place.
        version: of the installed use-spark.
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
        found = built[1] if built else "an unknown release"
        return Finding("shim", FAIL, f"{jar} is of {found}, use-spark of {version}", advice)
    return Finding("shim", OK, str(jar))


def class_path(environment: Mapping[str, str], home: Path) -> list[Finding]:
    """Whether another Delta, or another shim, comes first.

    Args:
        environment: variables.
        home: of the Spark that would start.
    """
    conf = Path(environment.get("SPARK_CONF_DIR") or home / "conf") / "spark-defaults.conf"
    places = {name: environment.get(name, "") for name in ("SPARK_DIST_CLASSPATH", "CLASSPATH")}
    defaults = defaults_of(conf)
    places |= {f"{key} of {conf}": defaults.get(key, "") for key in _CLASS_PATHS}
    places[str(home / "jars")] = ":".join(f"/{jar.name}" for jar in (home / "jars").glob("*.jar"))
    found = [
        Finding(
            "class path",
            WARN,
            f"{place} holds {match[0]}",
            "take it away, or give the same jars everywhere: the first on the class path is used",
        )
        for place, text in places.items()
        for match in [_STRANGER.search(text)]
        if match
    ]
    return found or [Finding("class path", OK, "no other Delta and no other shim")]


def defaults_of(file: Path) -> dict[str, str]:
    """The settings of a ``spark-defaults.conf``; none when there is no such file."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    lines = (line.strip() for line in text.splitlines())
    pairs = (re.split(r"[\s=:]+", line, maxsplit=1) for line in lines if line and not line.startswith("#"))
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def delta_jars(environment: Mapping[str, str], home: Path, wanted: str, settings: Mapping[str, str]) -> Finding:
    """Whether Delta's jars are on this machine, or are fetched when a session starts.

    Args:
        environment: variables.
        home: of the Spark that would start.
        wanted: the package's coordinates, ``group:name:version``.
        settings: of Spark, as given for the session.
    """
    group, name, version = wanted.split(":")
    file = f"{name}-{version}.jar"
    ivy = Path(settings.get("spark.jars.ivy") or Path(environment.get("HOME", str(Path.home()))) / ".ivy2.5.2")
    given = [jar.strip() for jar in settings.get("spark.jars", "").split(",")]
    if any(jar.endswith(file) for jar in given):
        return Finding("delta jars", OK, f"{file} is given by spark.jars")
    if (home / "jars" / file).is_file():
        return Finding("delta jars", OK, f"{file} lies among Spark's jars")
    for place in (ivy / "jars" / f"{group}_{file}", ivy / "cache" / group / name / "jars" / file):
        if place.is_file():
            return Finding("delta jars", OK, f"fetched before: {place}")
    return Finding(
        "delta jars",
        WARN,
        f"{file} is not in {ivy} yet",
        "the first session fetches it; without a network, give the jars by spark.jars (see docs/deploy.md)",
    )
