#!/usr/bin/env python3
"""Builds the shim, the jar through which Spark's JVM and the Python code meet.

Needs the standard library, Java and an installed pyspark only: sbt's launcher and Delta's jars come by coordinates
through the Ivy inside pyspark, and Spark's classes are pyspark's own jars. Where nothing changed since the last build,
nothing is started. The Makefile runs this file, the build hook of the wheel imports it.

Environment:
    JAVA_HOME: the Java to use; without it, the one on PATH.
    USE_BUILD_CACHE: where downloads are kept (default: ``build/shim`` of the checkout).
    USE_IVY_SETTINGS: an Ivy settings file, for networks with a mirror. sbt reads ``~/.sbt/repositories`` as always.
    SBT_OPTS: more JVM options for sbt.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

try:
    import fcntl
except ImportError:  # no such locks on this system: two builds at once are then the user's to avoid
    fcntl = None  # type: ignore[assignment]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
JAR = ROOT / "sql_ext" / "jars" / "use-shim.jar"
STAMP = JAR.with_suffix(".sha256")
TEST_JAR = HERE / "target" / "use-shim-test.jar"
TEST_STAMP = TEST_JAR.with_suffix(".sha256")

SCALA = "2.13"
JAVA_VERSIONS = (17, 21)
SCALAFMT_CHECK = ("scalafmtCheckAll", "scalafmtSbtCheck")
SCALAFMT_WRITE = ("scalafmtAll", "scalafmtSbt")


class ShimError(Exception):
    """The shim cannot be built; the message is one line that says what to do."""


# -------------------------------------------------------------------------------------------- versions


def pinned(distribution: str) -> str:
    """Returns the version that ``pyproject.toml``, the one place that states it, pins for a distribution.

    Raises:
        ShimError: ``pyproject.toml`` has no such pin.
    """
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    match = re.search(rf'"{re.escape(distribution)}==([^"\s;]+)', text)
    if match is None:
        raise ShimError(f"pyproject.toml pins no version of {distribution}")
    return match[1]


def project_version() -> str:
    """Returns the version of this project."""
    match = re.search(r'^version = "([^"]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise ShimError("pyproject.toml states no version")
    return match[1]


def sbt_version() -> str:
    """Returns the version of sbt that ``project/build.properties`` states."""
    text = (HERE / "project" / "build.properties").read_text(encoding="utf-8")
    return text.split("sbt.version=")[1].split()[0]


# ------------------------------------------------------------------------------------------- freshness


def source_hash(*trees: str) -> str:
    """Returns a hash over what decides the bytes of a jar: sources, build files and pinned versions.

    Args:
        trees: The source folders below ``jars-build``.
    """
    files = [HERE / "build.sbt", HERE / "project" / "build.properties", HERE / "project" / "plugins.sbt"]
    for tree in trees:
        files += (f for f in (HERE / tree).rglob("*") if f.is_file() and not f.name.startswith("."))
    digest = hashlib.sha256()
    digest.update(f"{pinned('pyspark')} {pinned('delta-spark')} {project_version()}\n".encode())
    for file in sorted(files, key=lambda f: f.relative_to(HERE).as_posix()):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(HERE).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def main_hash() -> str:
    """Returns the hash of the shim's sources."""
    return source_hash("src/main")


def test_hash() -> str:
    """Returns the hash of the test jar's sources, which are compiled against the shim's."""
    return source_hash("src/main", "src/test")


def is_fresh(jar: Path = JAR, stamp: Path = STAMP, wanted: Callable[[], str] = main_hash) -> bool:
    """Tells whether a jar was built from the sources as they are now."""
    if not (jar.is_file() and stamp.is_file()):
        return False
    return stamp.read_text(encoding="utf-8").strip() == wanted()


# ------------------------------------------------------------------------------------------------ Java


def find_java() -> str:
    """Returns the path of a Java that Spark runs on.

    Raises:
        ShimError: There is none, or its version is another.
    """
    wanted = " or ".join(map(str, JAVA_VERSIONS))
    advice = f"install a JDK {JAVA_VERSIONS[0]} (OpenJDK, Temurin, Zulu, ...) and put it on PATH or set JAVA_HOME to it"
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home, "bin")) if home else None)
    where = "in JAVA_HOME" if home else "on PATH"
    if java is None:
        raise ShimError(f"Java {wanted} is needed, but there is no java {where}: {advice}")
    run = subprocess.run([java, "-version"], capture_output=True, text=True, errors="replace", check=False)
    match = re.search(r'version "(\d+)', run.stderr + run.stdout)
    if match is None:
        raise ShimError(f"Java {wanted} is needed, but {java} does not run: {advice}")
    if int(match[1]) not in JAVA_VERSIONS:
        raise ShimError(f"Java {wanted} is needed, but {java} is Java {match[1]}: {advice}")
    return java


def _require_compiler(java: str) -> None:
    if not shutil.which("javac", path=str(Path(java).resolve().parent)):
        raise ShimError(f"building the shim needs a JDK, but {java} has no javac beside it: install a JDK, not a JRE")


# ------------------------------------------------------------------------------------------- downloads


def spark_jars() -> Path:
    """Returns the folder with Spark's jars.

    Raises:
        ShimError: pyspark is not installed here, or in another version than the pinned one.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ShimError(f"pyspark is not installed for {sys.executable}: pip install pyspark=={pinned('pyspark')}")
    jars = Path(spec.origin).parent / "jars"
    if not list(jars.glob(f"spark-sql_{SCALA}-{pinned('pyspark')}.jar")):
        raise ShimError(f"the shim is built against pyspark=={pinned('pyspark')}, which {jars.parent} is not")
    return jars


@functools.cache
def cache_dir() -> Path:
    """Returns the folder for downloads, which is in the checkout, or a temporary one where that is read-only."""
    cache = Path(os.environ.get("USE_BUILD_CACHE") or ROOT / "build" / "shim").resolve()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache):
            return cache
    except OSError:
        return Path(tempfile.mkdtemp(prefix="use-shim-"))


def _run(command: list[str], what: str, cwd: Path, *, quiet: str) -> None:
    """Runs a command; its output is shown where it fails, and else only the lines that do not match ``quiet``."""
    env = {**os.environ, "LC_ALL": "C.UTF-8", "COURSIER_CACHE": str(cache_dir() / "sbt" / "coursier")}
    run = subprocess.run(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    for line in run.stdout.splitlines():
        if not re.match(quiet, line):
            print(line, file=sys.stderr)
    if run.returncode:
        log = cache_dir() / "failed.log"
        log.write_text(run.stdout, encoding="utf-8")
        raise ShimError(f"{what} failed (exit code {run.returncode}); all of its output is in {log}")


def _ivy(java: str, cache: Path, target: Path, what: str, *arguments: str) -> None:
    """Retrieves artifacts into a folder, which exists only when all of them are there."""
    if target.is_dir():
        return
    ivy = next(spark_jars().glob("ivy-*.jar"))
    settings = os.environ.get("USE_IVY_SETTINGS")
    with tempfile.TemporaryDirectory(dir=cache) as work:
        _run(
            [
                *(java, "-jar", str(ivy), "-warn"),
                *(("-settings", settings) if settings else ()),
                *("-cache", str(cache / "ivy"), *arguments),
                *("-confs", "default", "-types", "jar", "-retrieve", f"{work}/jars/[artifact]-[revision].[ext]"),
            ],
            f"downloading {what}",
            Path(work),
            quiet=r"\.*( \(\d+kB\))?$",
        )
        shutil.move(f"{work}/jars", target)


def sbt_launcher(java: str, cache: Path) -> Path:
    """Returns sbt's launcher, downloaded once."""
    version = sbt_version()
    target = cache / f"sbt-{version}"
    _ivy(java, cache, target, "sbt", "-dependency", "org.scala-sbt", "sbt-launch", version)
    return target / f"sbt-launch-{version}.jar"


def delta_jars(java: str, cache: Path) -> Path:
    """Returns a folder with the jars of Delta, downloaded once; what they need besides is in Spark's."""
    spark, delta = pinned("pyspark"), pinned("delta-spark")
    name = f"delta-spark_{spark.rpartition('.')[0]}_{SCALA}"
    target = cache / f"{name}-{delta}"
    if not target.is_dir():
        request = cache / "delta.xml"
        request.write_text(
            f"""<ivy-module version="2.0">
  <info organisation="use" module="shim"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="io.delta" name="{name}" rev="{delta}" conf="default"/>
    <exclude org="(?!io\\.delta$).*" matcher="regexp"/>
  </dependencies>
</ivy-module>
""",
            encoding="utf-8",
        )
        _ivy(java, cache, target, "Delta", "-ivy", str(request))
    return target


# ------------------------------------------------------------------------------------------------- sbt


def sbt(*tasks: str) -> None:
    """Runs tasks of sbt, which is started with everything it writes in the cache folder."""
    java = find_java()
    _require_compiler(java)
    spark = spark_jars()
    cache = cache_dir()
    options = {
        "use.version": project_version(),
        "use.spark.jars": spark,
        "use.delta.jars": delta_jars(java, cache),
        "sbt.global.base": cache / "sbt",
        "sbt.boot.directory": cache / "sbt" / "boot",
        "sbt.ivy.home": cache / "sbt" / "ivy",
        "sbt.repository.config": Path.home() / ".sbt" / "repositories",
        "sbt.server.autostart": "false",
        "sbt.supershell": "false",
        "sbt.log.noformat": "true",
        "file.encoding": "UTF-8",
    }
    _run(
        [
            *(java, "-Xmx1g", "-Xss8m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            *(f"-D{key}={value}" for key, value in options.items()),
            *shlex.split(os.environ.get("SBT_OPTS", "")),
            *("-jar", str(sbt_launcher(java, cache)), *tasks),
        ],
        "sbt",
        HERE,
        quiet=r"\[(info|success)\]|\[error\] Total time|\s*$",
    )


def _install(built: Path, jar: Path, stamp: Path, digest: str) -> None:
    """Puts a built jar and then its stamp in place, so that a reader sees the old or the new one and never a part."""
    jar.parent.mkdir(parents=True, exist_ok=True)
    if built != jar:
        partial = jar.with_name(f".{jar.name}.{os.getpid()}")
        shutil.copyfile(built, partial)
        partial.replace(jar)
    partial = stamp.with_name(f".{stamp.name}.{os.getpid()}")
    partial.write_text(digest + "\n", encoding="utf-8")
    partial.replace(stamp)


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    if fcntl is None:
        yield
        return
    with (cache_dir() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def ensure(*, force: bool = False, test_jar: bool = False) -> None:
    """Builds the shim, and the test jar where asked for, unless they are fresh.

    Args:
        force: Build even what is fresh.
        test_jar: Build the jar of the test sources too.

    Raises:
        ShimError: Something that the build needs is missing, or the sources do not compile.
    """

    def stale() -> tuple[bool, bool]:
        return (
            force or not is_fresh(),
            test_jar and (force or not is_fresh(TEST_JAR, TEST_STAMP, test_hash)),
        )

    if not any(stale()):
        return
    find_java()
    with _one_at_a_time():
        main, test = stale()  # another process may have built it meanwhile
        if not (main or test):
            return
        print("building the shim (the first time, this downloads sbt and Delta)", file=sys.stderr)
        digests = main_hash(), test_hash()  # before the build: a file changed during it makes the jar stale
        sbt(*(["Compile/packageBin"] if main else []), *(["Test/packageBin"] if test else []))
        if main:
            _install(HERE / "target" / "use-shim.jar", JAR, STAMP, digests[0])
        if test:
            _install(TEST_JAR, TEST_JAR, TEST_STAMP, digests[1])


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    parser = argparse.ArgumentParser(description="Builds the shim jar if its sources changed.", allow_abbrev=False)
    parser.add_argument("--force", action="store_true", help="build even if nothing changed")
    parser.add_argument("--test-jar", action="store_true", help="build the jar of the test sources too")
    parser.add_argument("--scalafmt", choices=["check", "write"], help="check or write the Scala format, build nothing")
    parser.add_argument("--check-java", action="store_true", help="only check that a usable Java is here")
    options = parser.parse_args(arguments)
    try:
        if options.check_java:
            find_java()
        elif options.scalafmt:
            with _one_at_a_time():
                sbt(*(SCALAFMT_CHECK if options.scalafmt == "check" else SCALAFMT_WRITE))
        else:
            ensure(force=options.force, test_jar=options.test_jar)
    except ShimError as error:
        print(f"build_shim: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
