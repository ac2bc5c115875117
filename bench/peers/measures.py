"""Where tables are stored, and who counts the requests to them."""

from __future__ import annotations

import json
import os
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import pyspark

LOGS = ("/_delta_log", "/_use", "/metadata", "/.hoodie")


def is_log(path: str) -> bool:
    """Whether a path below a warehouse belongs to the log of a table."""
    return any(part in path for part in LOGS)


class Storage(Protocol):
    """A place for tables that counts what it is asked for."""

    @property
    def settings(self) -> dict[str, str]:
        """Settings of the Spark session."""

    @property
    def packages(self) -> tuple[str, ...]:
        """Coordinates of the jars that a session needs besides those of its system."""

    @property
    def warehouse(self) -> str:
        """A folder for the tables."""

    def start(self, jvm: Any, /) -> None:
        """Counts anew."""

    def counts(self, jvm: Any, /) -> dict[str, int]:
        """The counts since then; a name is ``data`` or ``log``, a point, and what was counted."""


class LocalStorage:
    """A folder of this machine, below a file system that counts.

    Args:
        home: an empty folder.
        jar: has the file system.
    """

    packages: tuple[str, ...] = ()

    def __init__(self, home: Path, jar: str) -> None:
        self._home, self._jar = home, jar

    @property
    def settings(self) -> dict[str, str]:
        """See :class:`Storage`."""
        return {
            "spark.driver.extraClassPath": self._jar,
            "spark.hadoop.fs.file.impl": "io.usespark.testing.CountingFileSystem",
        }

    @property
    def warehouse(self) -> str:
        """See :class:`Storage`."""
        return str(self._home / "warehouse")

    def start(self, jvm: Any, /) -> None:
        """See :class:`Storage`."""
        jvm.io.usespark.testing.CountingFileSystem.start(str(self._home))

    def counts(self, jvm: Any, /) -> dict[str, int]:
        """See :class:`Storage`."""
        counted = dict(jvm.io.usespark.testing.CountingFileSystem.counts())
        return {str(name): int(count) for name, count in counted.items()}


class Bucket:
    """A bucket of a server that counts, with the client's settings as they come.

    Args:
        address: of the server, see ``peers.object_store``.
        name: of the bucket; it is made.
    """

    def __init__(self, address: str, name: str) -> None:
        self._address, self._name = address, name
        urllib.request.urlopen(urllib.request.Request(f"{address}/{name}", method="PUT")).close()

    @property
    def packages(self) -> tuple[str, ...]:
        """See :class:`Storage`."""
        (jar,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
        return (f"org.apache.hadoop:hadoop-aws:{jar.stem.removeprefix('hadoop-client-api-')}",)

    @property
    def settings(self) -> dict[str, str]:
        """See :class:`Storage`."""
        return {
            "spark.hadoop.fs.s3a.endpoint": self._address,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.access.key": "test",
            "spark.hadoop.fs.s3a.secret.key": "test",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        }

    @property
    def warehouse(self) -> str:
        """See :class:`Storage`."""
        return f"s3a://{self._name}/warehouse"

    def start(self, jvm: Any, /) -> None:
        """See :class:`Storage`."""
        self.counts(jvm)

    def counts(self, _jvm: Any, /) -> dict[str, int]:
        """See :class:`Storage`."""
        with urllib.request.urlopen(f"{self._address}/_counts/{self._name}") as answer:
            counted: dict[str, int] = json.load(answer)
        return counted


def log_bytes(jvm: Any, configuration: Any, warehouse: str) -> int:
    """Bytes of all logs below a warehouse."""
    folder = jvm.org.apache.hadoop.fs.Path(warehouse)
    found, total = folder.getFileSystem(configuration).listFiles(folder, True), 0
    while found.hasNext():
        status = found.next()
        total += status.getLen() if is_log(str(status.getPath())) else 0
    return int(total)


def cpu_seconds(pid: int) -> float:
    """CPU time of a process and all below it, in user and in kernel mode.

    Fields 4, 14 and 15 of proc(5), after the name in parentheses.
    """
    times, parents = dict[int, int](), dict[int, int]()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            fields = (folder / "stat").read_text("ascii", "replace").rpartition(")")[2].split()
            parents[int(folder.name)] = int(fields[1])
            times[int(folder.name)] = sum(map(int, fields[11:13]))
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return sum(times.get(each, 0) for each in found) / os.sysconf("SC_CLK_TCK")
