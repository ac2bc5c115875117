"""What happens at a point other than an error: another writer, a folder that vanishes, a right that is lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyspark.sql import SparkSession

from faults.operations import Operation
from faults.points import DELAY, DENIED, VANISHED
from faults.templates import append

APPENDED = range(9000, 9005)
"""The ids of the rows that another writer appends during a delay."""
_DELAY_SECONDS = 0.2


class Nothing:
    """Nothing happens, and nothing is put right afterwards."""

    def strike(self) -> None:
        """Called at the point."""

    def end(self) -> None:
        """Called after the operation."""


class Delay(Nothing):
    """The call waits, and meanwhile another writer appends rows."""

    def __init__(self, spark: SparkSession, operation: Operation, path: Path) -> None:
        self._spark, self._operation, self._path = spark, operation, path

    def strike(self) -> None:
        """See ``Nothing.strike``."""
        if self._operation.may_append:
            # In a thread of its own, because the disturbed one may have begun a transaction.
            with ThreadPoolExecutor(1) as other:
                other.submit(append, self._spark, self._path, APPENDED.start, len(APPENDED)).result()
        time.sleep(_DELAY_SECONDS)


class Vanished(Nothing):
    """The folder of the table is gone until the operation ends, as that of a disk which is detached."""

    def __init__(self, path: Path) -> None:
        self._path, self._gone = path, path.with_name(path.name + ".gone")

    def strike(self) -> None:
        """See ``Nothing.strike``."""
        self._path.rename(self._gone)

    def end(self) -> None:
        """See ``Nothing.end``; whatever was written in its place is hidden by it."""
        if self._gone.exists():
            shutil.rmtree(self._path, ignore_errors=True)
            self._gone.rename(self._path)


class Denied(Nothing):
    """Nothing can be created or deleted in any folder of the table until the operation ends."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def strike(self) -> None:
        """See ``Nothing.strike``."""
        set_writable(self._path, writable=False)

    def end(self) -> None:
        """See ``Nothing.end``."""
        set_writable(self._path, writable=True)


def set_writable(path: Path, *, writable: bool) -> None:
    """Gives or takes the right to create and delete files; root, whom rights do not stop, needs ``chattr``."""
    folders = [path, *(folder for folder in path.rglob("*") if folder.is_dir())]
    if os.geteuid() == 0:
        subprocess.run(["chattr", "-i" if writable else "+i", *map(str, folders)], check=True, capture_output=True)
    else:
        for folder in folders:
            folder.chmod(0o755 if writable else 0o555)


def act(kind: str, spark: SparkSession, operation: Operation, path: Path) -> Nothing:
    """What happens at the point.

    Args:
        kind: of the fault.
        spark: session of the other writer.
        operation: that is disturbed.
        path: of its table.
    """
    if kind == DELAY:
        return Delay(spark, operation, path)
    if kind == VANISHED:
        return Vanished(path)
    return Denied(path) if kind == DENIED else Nothing()
