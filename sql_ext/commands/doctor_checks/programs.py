"""Python, Java and the packages."""

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


def python_version(found: tuple[int, ...]) -> Finding:
    """Whether this Python is one that USE runs on.

    Args:
        found: its version.
    """
    text, wanted = ".".join(map(str, found[:3])), ".".join(map(str, PYTHON))
    if tuple(found[:2]) < PYTHON:
        return Finding("python", FAIL, text, f"Python {wanted} or later is needed")
    return Finding("python", OK, text)


def packages(installed: Mapping[str, str | None], wanted: Mapping[str, str]) -> list[Finding]:
    """Whether the packages that the shim was built against are there, in these very versions.

    Args:
        installed: versions by package; None = it is missing.
        wanted: versions by package.
    """
    found = []
    for name, version in wanted.items():
        present = installed.get(name)
        if present == version:
            found.append(Finding(name, OK, version))
            continue
        text = "not installed" if present is None else f"{present}, where the shim was built against {version}"
        found.append(Finding(name, FAIL, text, f"pip install {name}=={version}"))
    return found


def package_names(others: Mapping[str, Sequence[str]]) -> Finding:
    """Whether another distribution has installed packages of the same names into the same folder.

    Args:
        others: the other distributions, by package name.
    """
    if not others:
        return Finding("packages", OK, "no other distribution installs packages of these names")
    text = "; ".join(f"{name} also comes from {', '.join(distributions)}" for name, distributions in others.items())
    return Finding("packages", WARN, text, "install use-spark into an environment of its own")


def java(environment: Mapping[str, str]) -> Finding:
    """Whether the Java that Spark would start is there and of the right version.

    Args:
        environment: variables.
    """
    home = environment.get("JAVA_HOME")
    where = f"in JAVA_HOME={home}" if home else "on PATH"
    path = str(Path(home, "bin")) if home else environment.get("PATH", "")
    program = shutil.which("java", path=path)
    if program is None:
        return Finding("java", FAIL, f"no java {where}", _JAVA_ADVICE)
    try:
        run = subprocess.run(
            [program, "-version"], capture_output=True, text=True, errors="replace", check=False, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("java", FAIL, f"{program} does not run: {error}", _JAVA_ADVICE)
    return java_version(run.stderr + run.stdout, program)


def java_version(text: str, program: str) -> Finding:
    """Whether a Java is of the right version.

    Args:
        text: what ``java -version`` printed.
        program: its path.
    """
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if found is None:
        return Finding("java", FAIL, f"{program} does not tell its version", _JAVA_ADVICE)
    # Java 8 called itself 1.8.
    major = int(found[2]) if found[1] == "1" and found[2] else int(found[1])
    if major not in JAVA:
        return Finding("java", FAIL, f"{program} is Java {major}", _JAVA_ADVICE)
    return Finding("java", OK, f"{program} is Java {major}")
