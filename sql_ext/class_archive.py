"""The archive of Java's classes from which the JVM of a short command starts (class-data sharing).

A third of the CPU time of a short command is spent on loading some 20,000 classes. A JVM can store the classes that it
has loaded when it ends, and later ones map that file. The JVM checks the file against its own version and class path,
and ignores one that does not fit.

Source: JEP 350, dynamic archives.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

FOLDER_VARIABLE = "USE_SPARK_CACHE"
"""Names the folder of the archive; empty = no archive."""

# The JVM writes the first bytes last, so that a file with them is complete.
_MAGIC = (0xF00BABA8).to_bytes(4, "little")
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
# A JVM that maps a damaged file crashes. It compares checksums in 0.1 s.
_CHECKED = "-XX:+VerifySharedSpaces"
_FREE_BYTES = 2_000_000_000
_SECONDS_TO_WRITE = 600
_SECONDS_TO_KEEP = 30 * 86_400
# Anything that changes the class path or the options of the JVM. A folder of settings on the class path would even
# keep a JVM that writes an archive from starting.
_VARIABLES = (
    *("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH", "SPARK_SUBMIT_OPTS", "HADOOP_CONF_DIR", "YARN_CONF_DIR"),
    *("CLASSPATH", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"),
)
_SETTINGS = ("spark.driver.extraClassPath", "spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions")
# Spark separates options of the JVM by blanks and removes quotes.
_PLAIN_PATH = re.compile(r"/[\w./@+-]*")

_requested: list[Path] = []


@dataclass(frozen=True)
class ClassArchive:
    """The archive for a JVM and a release of Spark.

    Attributes:
        folder: where archives are.
        key: of the JVM and of Spark's jars; a change of either needs a new archive.
    """

    folder: Path
    key: str

    @classmethod
    def of(cls, settings: Mapping[str, str], environment: Mapping[str, str]) -> ClassArchive | None:
        """Returns the archive for sessions with these settings; None if they have none.

        Args:
            settings: settings of the session.
            environment: variables.
        """
        if any(environment.get(name) for name in _VARIABLES) or any(settings.get(name) for name in _SETTINGS):
            return None
        java, folder = _java_home(environment), _folder(environment)
        spark = Path(pyspark.__file__).parent
        if java is None or folder is None or (spark / "conf").exists():
            return None
        facts = [_identity(place) for place in (java / "lib/server/libjvm.so", java / "release", spark / "jars")]
        return cls(folder, hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16])

    def options(self, *, may_write: bool) -> str | None:
        """Returns the options of a JVM that uses the archive, or writes it when it ends; None without either.

        Args:
            may_write: whether this JVM may write the archive, which takes it 20 seconds longer to end.
        """
        complete = self._complete()
        if complete is not None:
            return f"-XX:SharedArchiveFile={complete} {_CHECKED} {_QUIET}"
        if not may_write:
            return None
        try:
            part = self._new_part()
        except OSError:
            return None
        if part is None:
            return None
        _requested.append(part)
        return f"-XX:ArchiveClassesAtExit={part} {_QUIET}"

    def _complete(self) -> Path | None:
        """Returns the archive if it is complete. The first command after the JVM that wrote it gives it its name."""
        with suppress(OSError):
            if not _belongs_to_user(self.folder):
                return None
            for place in self.folder.glob(f"{self.key}.*.jsa"):
                # A JVM that maps a truncated file crashes.
                if place.name == self._name(place.stat().st_size):
                    return place
            for part in self.folder.glob(f"{self.key}.*.part"):
                if _has_magic(part):
                    return part.rename(self.folder / self._name(part.stat().st_size))
        return None

    def _name(self, size: int) -> str:
        return f"{self.key}.{size}.jsa"

    def _new_part(self) -> Path | None:
        """Returns the file that a JVM may write to; None if another one is writing, or if there is no space."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _belongs_to_user(self.folder) or shutil.disk_usage(self.folder).free < _FREE_BYTES:
            return None
        now = time.time()
        for other in self.folder.iterdir():
            age = now - other.stat().st_mtime
            if other.name.startswith(self.key) and other.suffix == ".part" and age < _SECONDS_TO_WRITE:
                return None
            # A complete archive of this key would have been used.
            if other.name.startswith(self.key) or other.suffix == ".part" or age > _SECONDS_TO_KEEP:
                other.unlink(missing_ok=True)
        part = self.folder / f"{self.key}.{os.getpid()}.part"
        # The JVM replaces the file. Until then, the file shows other commands that an archive is being written.
        part.touch()
        return part


def is_requested() -> bool:
    """Whether the JVM of this process writes an archive when it ends."""
    return bool(_requested)


def _java_home(environment: Mapping[str, str]) -> Path | None:
    """Returns the folder of the JVM that Spark's launcher starts, if it can write archives."""
    named = environment.get("JAVA_HOME")
    java = str(Path(named, "bin", "java")) if named else shutil.which("java", path=environment.get("PATH"))
    if java is None:
        return None
    home = Path(java).resolve().parents[1]
    # An archive of this kind extends the one of the JVM's own classes.
    return home if (home / "lib/server/classes.jsa").is_file() and (home / "lib/server/libjvm.so").is_file() else None


def _folder(environment: Mapping[str, str]) -> Path | None:
    named = environment.get(FOLDER_VARIABLE)
    if named is None:
        cache = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME", "~"), ".cache"))
        named = str(Path(cache, "use-spark"))
    return Path(named) if _PLAIN_PATH.fullmatch(named) else None


def _identity(place: Path) -> str:
    try:
        facts = place.stat()
    except OSError:
        return f"{place} missing"
    return f"{place} {facts.st_size} {facts.st_mtime_ns}"


def _has_magic(place: Path) -> bool:
    with suppress(OSError), place.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC
    return False


def _belongs_to_user(folder: Path) -> bool:
    """Whether no other user can put classes into the folder."""
    facts = folder.stat()
    return facts.st_uid == os.getuid() and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
