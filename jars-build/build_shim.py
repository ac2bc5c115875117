#!/usr/bin/env python3
"""Builds the shim, the jar through which Spark's JVM and the Python code meet.

There is a jar for each pair of a Spark line and a minor release of Delta, since the shim uses internal classes of both.
``src/main/scala`` is the same for all. A file of ``scala-spark-4.1`` takes the place of one of the same name in
``scala-spark-4.0``, from Spark 4.1 on; the folders ``scala-delta-*`` do the same by the release of Delta.

Needs the standard library, Java and an installed pyspark only: Spark's jars contain the compiler, and Delta's jars come
by coordinates through the Ivy inside pyspark. Where nothing changed since the last build, nothing is started. The
Makefile runs this file, the build hook of the wheel imports it. Only the formatter needs sbt.

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
import importlib.metadata
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

try:
    import fcntl
except ImportError:  # no such locks on this system: two builds at once are then the user's to avoid
    fcntl = None  # type: ignore[assignment]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SOURCES = HERE / "src" / "main"
TEST_JAR = HERE / "target" / "use-shim-test.jar"
TEST_STAMP = TEST_JAR.with_suffix(".sha256")
# Classes of the tests that extend those of the shim have a jar of their own: the test jar is on the class path of the
# JVM, which has no class of the shim.
TEST_CATALOGS = "io/usespark/testing/catalogs"
TEST_CATALOGS_JAR = TEST_JAR.with_name("use-shim-test-catalogs.jar")

JAVA_VERSIONS = (17, 21)
SCALAFMT_CHECK = ("scalafmtCheckAll", "scalafmtSbtCheck")
SCALAFMT_WRITE = ("scalafmtAll", "scalafmtSbt")


class ShimError(Exception):
    """The shim cannot be built; the message is one line that says what to do."""


# -------------------------------------------------------------------------------------------- versions


def _spark_lines() -> ModuleType:
    """Imports the module that knows the lines, without its package."""
    path = ROOT / "catalog" / "jvm" / "spark_lines.py"
    spec = importlib.util.spec_from_file_location("spark_lines", path)
    if spec is None or spec.loader is None:
        raise ImportError(str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


LINES = _spark_lines()


@dataclass(frozen=True)
class Pair:
    """A Spark line and a release of Delta.

    Attributes:
        spark: version of Spark that the shim is compiled against.
        delta: version of Delta.
    """

    spark: str
    delta: str

    @property
    def jar(self) -> Path:
        """The shim's jar."""
        name: str = LINES.shim_name(self.spark, self.delta)
        return ROOT / "sql_ext" / "jars" / name

    @property
    def stamp(self) -> Path:
        """The file with the hash of the sources that the jar was built from."""
        return self.jar.with_name(self.jar.name.removesuffix(".jar") + ".sha256")

    def sources(self) -> list[Path]:
        """Returns the files that the jar is compiled from."""
        chosen: dict[tuple[str, str], list[Path]] = {}
        for family, version in (("spark", self.spark), ("delta", self.delta)):
            for folder in sorted(SOURCES.glob(f"scala-{family}-*"), key=lambda f: _numbers(f.name.rpartition("-")[2])):
                if _numbers(folder.name.rpartition("-")[2]) > _numbers(version)[:2]:
                    continue
                newer: dict[tuple[str, str], list[Path]] = {}
                for file in _source_files(folder):
                    newer.setdefault((family, file.stem), []).append(file)
                chosen |= newer
        common = [*_source_files(SOURCES / "scala"), *_source_files(SOURCES / "java")]
        return sorted([*common, *(file for files in chosen.values() for file in files)])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _source_files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.suffix in (".scala", ".java")]


def all_pairs() -> list[Pair]:
    """Returns all supported pairs."""
    return [Pair(line.oldest, delta) for line in LINES.LINES for delta in line.deltas]


def installed_pair() -> Pair:
    """Returns the pair of the installed pyspark and delta-spark; without a delta-spark, the newest for this Spark.

    Raises:
        ShimError: pyspark is missing, or no line has these versions.
    """
    try:
        spark = importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        raise ShimError(f"pyspark is not installed for {sys.executable}") from None
    try:
        line = LINES.line_of(spark)
        try:
            delta = importlib.metadata.version("delta-spark")
        except importlib.metadata.PackageNotFoundError:
            delta = line.deltas[-1]
        pair = Pair(spark, delta)
        pair.jar  # noqa: B018 - refuses a Delta that the line does not have
    except ValueError as error:
        raise ShimError(str(error)) from None
    return pair


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


def source_hash(files: list[Path]) -> str:
    """Returns a hash over what decides the bytes of a jar: sources, this file and the version of the project.

    Args:
        files: The sources.
    """
    files = [HERE / "build_shim.py", *files]
    digest = hashlib.sha256()
    digest.update(f"{project_version()}\n".encode())
    for file in sorted(files, key=lambda f: f.relative_to(HERE).as_posix()):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(HERE).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _resources(tree: str) -> list[Path]:
    folder = HERE / "src" / tree / "resources"
    return [file for file in folder.rglob("*") if file.is_file() and not file.name.startswith(".")]


def main_hash(pair: Pair) -> str:
    """Returns the hash of the sources of a shim."""
    return source_hash([*pair.sources(), *_resources("main")])


def test_hash(pair: Pair) -> str:
    """Returns the hash of the test jar's sources, which are compiled against a shim."""
    return source_hash([*pair.sources(), *_resources("main"), *_source_files(HERE / "src" / "test")])


def is_fresh(jar: Path, stamp: Path, wanted: str) -> bool:
    """Tells whether a jar was built from the sources as they are now."""
    return jar.is_file() and stamp.is_file() and stamp.read_text(encoding="utf-8").strip() == wanted


def is_shim_fresh(pair: Pair) -> bool:
    """Tells whether the shim of a pair was built from the sources as they are now."""
    return is_fresh(pair.jar, pair.stamp, main_hash(pair))


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


def spark_jars(version: str, cache: Path) -> Path:
    """Returns a folder with the jars of a version of Spark: of the installed pyspark, or of one that pip downloads.

    Args:
        version: Version of Spark.
        cache: The folder for downloads.

    Raises:
        ShimError: pip cannot download it.
    """
    spec = importlib.util.find_spec("pyspark")
    installed = Path(spec.origin).parent / "jars" if spec and spec.origin else None
    if installed and list(installed.glob(f"spark-sql_*-{version}.jar")):
        return installed
    target = cache / f"pyspark-{version}"
    if not target.is_dir():
        print(f"downloading pyspark {version}", file=sys.stderr)
        with tempfile.TemporaryDirectory(dir=cache) as work:
            pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-deps")
            _run([*pip, "--target", f"{work}/package", f"pyspark=={version}"], "pip", Path(work), quiet=r"\s*$")
            shutil.move(f"{work}/package/pyspark/jars", target)
    return target


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


def _ivy(java: str, spark: Path, cache: Path, target: Path, what: str, *arguments: str) -> None:
    """Retrieves artifacts into a folder, which exists only when all of them are there."""
    if target.is_dir():
        return
    ivy = next(spark.glob("ivy-*.jar"))
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
    _ivy(
        java,
        spark_jars(LINES.LINES[-1].oldest, cache),
        cache,
        target,
        "sbt",
        "-dependency",
        "org.scala-sbt",
        "sbt-launch",
        version,
    )
    return target / f"sbt-launch-{version}.jar"


def delta_jars(pair: Pair, java: str, cache: Path) -> Path:
    """Returns a folder with the jars of Delta, downloaded once; what they need besides is in Spark's."""
    _, name, delta = LINES.delta_coordinates(LINES.line_of(pair.spark), pair.delta).split(":")
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
        _ivy(java, spark_jars(pair.spark, cache), cache, target, "Delta", "-ivy", str(request))
    return target


# -------------------------------------------------------------------------------------------- compiling

SCALAC_OPTIONS = ("-release", "17", "-encoding", "UTF-8", "-deprecation", "-feature", "-unchecked", "-Xlint")
JAVAC_OPTIONS = ("--release", "17", "-encoding", "UTF-8", "-Xlint:all,-processing,-path,-classfile")


def _class_path(*folders: Path) -> str:
    jars = [str(jar) for folder in folders for jar in sorted(folder.glob("*.jar"))]
    return os.pathsep.join([*jars, *(str(folder) for folder in folders)])


def _compile(java: str, spark: Path, sources: list[Path], class_path: str, classes: Path) -> None:
    """Compiles Scala and Java by the compiler that Spark brings along."""
    tools = os.pathsep.join(
        str(next(spark.glob(f"scala-{name}-2*.jar"))) for name in ("compiler", "reflect", "library")
    )
    here = [str(file.relative_to(HERE)) for file in sources]
    scalac = (java, "-Xmx1g", "-Xss8m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", tools)
    options = ("-classpath", class_path, "-d", str(classes))
    if any(name.endswith(".scala") for name in here):
        _run([*scalac, "scala.tools.nsc.Main", *SCALAC_OPTIONS, *options, *here], "scalac", HERE, quiet=r"\s*$")
    if ofjava := [name for name in here if name.endswith(".java")]:
        javac = str(Path(java).resolve().with_name("javac"))
        _run([javac, *JAVAC_OPTIONS, *options, *ofjava], "javac", HERE, quiet=r"\s*$")


def _pack(classes: Path, resources: Path, jar: Path) -> None:
    """Writes a jar. The same classes give the same bytes."""
    entries = {file.relative_to(folder).as_posix(): file for folder in (classes, resources) for file in _files(folder)}
    manifest = (
        f"Manifest-Version: 1.0\nImplementation-Title: {jar.stem}\nImplementation-Version: {project_version()}\n\n"
    )
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF"), manifest)
        for name in sorted(entries):
            archive.writestr(zipfile.ZipInfo(name), entries[name].read_bytes(), zipfile.ZIP_DEFLATED)


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and not file.name.startswith(".")]


def _build(pair: Pair) -> None:
    """Compiles the shim of a pair and puts it in place."""
    java, cache = find_java(), cache_dir()
    _require_compiler(java)
    digest = main_hash(pair)  # before the build: a file that is changed meanwhile makes the jar stale
    spark = spark_jars(pair.spark, cache)
    with tempfile.TemporaryDirectory(dir=cache) as work:
        classes, jar = Path(work, "classes"), Path(work, pair.jar.name)
        classes.mkdir()
        path = _class_path(spark, delta_jars(pair, java, cache), classes)
        _compile(java, spark, pair.sources(), path, classes)
        _pack(classes, SOURCES / "resources", jar)
        _install(jar, pair.jar, pair.stamp, digest)


def _build_test_jar(pair: Pair) -> None:
    """Compiles what only tests need, such as a file system that fails on demand, to two jars that are never shipped."""
    java, cache = find_java(), cache_dir()
    digest = test_hash(pair)
    spark = spark_jars(pair.spark, cache)
    with tempfile.TemporaryDirectory(dir=cache) as work:
        classes, jar = Path(work, "classes"), Path(work, TEST_JAR.name)
        classes.mkdir()
        path = os.pathsep.join([_class_path(spark, delta_jars(pair, java, cache), classes), str(pair.jar)])
        _compile(java, spark, _source_files(HERE / "src" / "test"), path, classes)
        catalogs = Path(work, "catalogs")
        (catalogs / TEST_CATALOGS).parent.mkdir(parents=True)
        (classes / TEST_CATALOGS).rename(catalogs / TEST_CATALOGS)
        _pack(catalogs, catalogs / "resources", Path(work, TEST_CATALOGS_JAR.name))
        _put(Path(work, TEST_CATALOGS_JAR.name), TEST_CATALOGS_JAR)
        _pack(classes, HERE / "src" / "test" / "resources", jar)
        _install(jar, TEST_JAR, TEST_STAMP, digest)


# ------------------------------------------------------------------------------------------------- sbt


def sbt(*tasks: str) -> None:
    """Runs tasks of sbt, which is started with everything it writes in the cache folder."""
    java = find_java()
    _require_compiler(java)
    cache = cache_dir()
    options = {
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
    _put(built, jar)
    partial = stamp.with_name(f".{stamp.name}.{os.getpid()}")
    partial.write_text(digest + "\n", encoding="utf-8")
    partial.replace(stamp)


def _put(built: Path, jar: Path) -> None:
    jar.parent.mkdir(parents=True, exist_ok=True)
    if built != jar:
        partial = jar.with_name(f".{jar.name}.{os.getpid()}")
        shutil.copyfile(built, partial)
        partial.replace(jar)


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    if fcntl is None:
        yield
        return
    with (cache_dir() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def ensure(pairs: list[Pair], *, force: bool = False, test_jar: bool = False) -> None:
    """Builds the shims of some pairs, and the test jar where asked for, unless they are fresh.

    Args:
        pairs: Spark lines with releases of Delta.
        force: Build even what is fresh.
        test_jar: Build the jar of the test sources too, against the first of the pairs.

    Raises:
        ShimError: Something that the build needs is missing, or the sources do not compile.
    """

    def stale() -> tuple[list[Pair], bool]:
        return (
            [pair for pair in pairs if force or not is_shim_fresh(pair)],
            test_jar
            and (force or not TEST_CATALOGS_JAR.is_file() or not is_fresh(TEST_JAR, TEST_STAMP, test_hash(pairs[0]))),
        )

    if not any(stale()):
        return
    find_java()
    with _one_at_a_time():
        main, test = stale()  # another process may have built it meanwhile
        for pair in main:
            print(f"building {pair.jar.name} (the first time, this downloads Delta)", file=sys.stderr)
            _build(pair)
        if test:
            _build_test_jar(pairs[0])


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    parser = argparse.ArgumentParser(description="Builds the shim's jar if its sources changed.", allow_abbrev=False)
    parser.add_argument("--all", action="store_true", help="build the jars of all supported pairs of Spark and Delta")
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
            pairs = all_pairs() if options.all else [installed_pair()]
            ensure(pairs, force=options.force, test_jar=options.test_jar)
    except ShimError as error:
        print(f"build_shim: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
