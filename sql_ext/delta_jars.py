"""The jars of Delta that Ivy has already downloaded to this machine."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_ROARING = ("org.roaringbitmap:RoaringBitmap:0.9.25", "org.roaringbitmap:shims:0.9.25")
_JSR305 = "com.google.code.findbugs:jsr305:3.0.2"
_UNITY = "io.unitycatalog:unitycatalog"
_OTHERS = {
    "4.0.0": ("org.antlr:antlr4-runtime:4.13.1",),
    "4.0.1": ("org.antlr:antlr4-runtime:4.13.1",),
    "4.1.0": (f"{_UNITY}-client:0.4.0", _JSR305),
    "4.2.0": (f"{_UNITY}-client:0.4.1", *_ROARING, _JSR305),
    "4.3.1": (f"{_UNITY}-client:0.5.0", f"{_UNITY}-hadoop:0.5.0", *_ROARING, _JSR305),
    "4.4.0": (f"{_UNITY}-client:0.6.0", f"{_UNITY}-hadoop:0.6.0", *_ROARING, _JSR305),
}
# Dependencies of Delta's own since this release.
_KERNEL_SINCE = "4.2.0"


def resolved(coordinates: str) -> tuple[str, ...] | None:
    """Returns the coordinates that Ivy resolves for a package with the exclusions of ``spark_conf``.

    Args:
        coordinates: coordinates of Delta.

    Returns:
        The package first; None if it is not known.
    """
    group, name, version = coordinates.split(":")
    if group != "io.delta" or not name.startswith("delta-spark_") or version not in _OTHERS:
        return None
    kernel = ("kernel-api", "kernel-defaults", "kernel-unitycatalog") if version >= _KERNEL_SINCE else ()
    of_delta = (f"io.delta:delta-{part}:{version}" for part in ("storage", *kernel))
    return coordinates, *of_delta, *_OTHERS[version]


# Ivy's default folder in this release of Spark.
_IVY = ".ivy2.5.2"
# A JVM takes HOME instead of a shorter home, such as "/".
_SHORTEST_HOME = 3
# Settings that change what or where Ivy resolves.
_IVY_SETTINGS = ("spark.jars.packages", "spark.jars.excludes", "spark.jars.ivySettings", "spark.jars.repositories")


def downloaded_jars(coordinates: str, settings: Mapping[str, str], environment: Mapping[str, str]) -> list[Path] | None:
    """Returns the jars of a package and its dependencies if all of them are on this machine.

    Spark starts Ivy in a JVM of its own for each session, even if every jar is in Ivy's cache. A session that names
    the files does not need it. Ivy moves a complete download to its place in the cache, so a file with this name is
    complete. It must also be a readable archive.

    Args:
        coordinates: the package, ``group:name:version``.
        settings: settings of the session.
        environment: variables.

    Returns:
        The files, the package first; None if Ivy has to resolve the package.
    """
    parts = resolved(coordinates)
    if parts is None or any(settings.get(key) for key in _IVY_SETTINGS):
        return None
    ivy = ivy_folder(settings, environment)
    jars = [_cached(ivy, each) for each in parts]
    return jars if all(_is_archive(jar) for jar in jars) else None


def ivy_folder(settings: Mapping[str, str], environment: Mapping[str, str]) -> Path:
    """Returns Ivy's folder.

    Args:
        settings: settings of the session.
        environment: variables.
    """
    return Path(settings.get("spark.jars.ivy") or Path(_account_home() or environment.get("HOME", "/")) / _IVY)


def _account_home() -> str | None:
    """Returns the home that a JVM uses: the one of the account, whatever HOME is; None if the account has none."""
    with suppress(ImportError, KeyError):
        import pwd

        home = pwd.getpwuid(os.getuid()).pw_dir
        if len(home) >= _SHORTEST_HOME:
            return home
    return None


def _cached(ivy: Path, coordinates: str) -> Path:
    """Returns the place of a jar in Ivy's cache."""
    group, name, version = coordinates.split(":")
    return ivy / "cache" / group / name / "jars" / f"{name}-{version}.jar"


def _is_archive(jar: Path) -> bool:
    return jar.is_file() and zipfile.is_zipfile(jar)
