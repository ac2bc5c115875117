"""Checks of Python, Java and the installed packages."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from sql_ext.commands.doctor_checks.finding import FAIL, OK, WARN, Finding

PYTHON = (3, 10)
JAVA = (17, 21)
_JAVA_ADVICE = "install a JDK or JRE 17 or 21 and put it on PATH, or set JAVA_HOME to it"
_SECONDS = 60


def python_version(version: tuple[int, ...]) -> Finding:
    """Checks the version of Python.

    Args:
        version: version of this Python.
    """
    text, oldest = ".".join(map(str, version[:3])), ".".join(map(str, PYTHON))
    if tuple(version[:2]) < PYTHON:
        return Finding("python", FAIL, text, f"install Python {oldest} or later")
    return Finding("python", OK, text)


def package_names(others: Mapping[str, Sequence[str]]) -> Finding:
    """Checks whether another distribution has installed packages of the same names into the same folder.

    Args:
        others: the other distributions, by package name.
    """
    if not others:
        return Finding("packages", OK, "no other distribution installs packages of these names")
    text = "; ".join(f"{name} also comes from {', '.join(distributions)}" for name, distributions in others.items())
    return Finding("packages", WARN, text, "install use-spark in a separate environment")


def java(environment: Mapping[str, str]) -> Finding:
    """Checks that the Java that Spark would start exists and has a supported version.

    Args:
        environment: variables.
    """
    home = environment.get("JAVA_HOME")
    where = f"in JAVA_HOME={home}" if home else "on PATH"
    path = str(Path(home, "bin")) if home else environment.get("PATH", "")
    program = shutil.which("java", path=path)
    if program is None:
        return Finding("java", FAIL, f"no java {where}", _JAVA_ADVICE)
    release = _release(Path(program))
    if release is not None:
        return java_version(f'version "{release}"', program)
    try:
        run = subprocess.run(
            [program, "-version"], capture_output=True, text=True, errors="replace", check=False, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("java", FAIL, f"{program} does not run: {error}", _JAVA_ADVICE)
    return java_version(run.stderr + run.stdout, program)


def _release(program: Path) -> str | None:
    """The version in the file ``release`` of a JDK, which is read sooner than Java starts; None without it."""
    try:
        text = (program.resolve().parent.parent / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
    return None if match is None else match[1]


def java_version(text: str, program: str) -> Finding:
    """Checks the version of a Java program.

    Args:
        text: output of ``java -version``.
        program: its path.
    """
    match = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if match is None:
        return Finding("java", FAIL, f"{program} does not print its version", _JAVA_ADVICE)
    # Java 8 has the version 1.8.
    major = int(match[2]) if match[1] == "1" and match[2] else int(match[1])
    if major not in JAVA:
        return Finding("java", FAIL, f"{program} is Java {major}", _JAVA_ADVICE)
    return Finding("java", OK, f"{program} is Java {major}")
