"""Bad disks: one without space, and one that has become read-only; both are file systems in memory."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from faults import oracle
from faults.judge import Tables, problem_after, problem_before, unclear
from faults.results import Outcome
from faults.worker_process import WorkerProcess

FULL, READ_ONLY = "full disk", "read-only disk"
# Kilobytes that are left: for nothing, for a state file or two, for data files too, and for some commits.
_KILOBYTES_LEFT = (0, 8, 24, 64)
_DISK_BYTES = 16 * 1024**2
_FILLER = "filler"


@dataclass(frozen=True)
class DiskCase:
    """An operation on a bad disk.

    Attributes:
        operation: its name.
        kind: of the fault.
        left: kilobytes that are free.
    """

    operation: str
    kind: str
    left: int = 0

    @property
    def name(self) -> str:
        """The same each time."""
        return f"{self.operation} / {self.kind} / {self.left} KB left"


def cases_of(operations: Iterable[str]) -> Iterator[DiskCase]:
    """The cases of some operations."""
    for operation in operations:
        yield DiskCase(operation, READ_ONLY)
        for left in _KILOBYTES_LEFT:
            yield DiskCase(operation, FULL, left)


class Disk:
    """A small file system in memory.

    Args:
        folder: where it is mounted.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def mounted(self) -> Iterator[Path]:
        """The folder, as long as the block runs.

        Raises:
            PermissionError: this user may not mount.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        self._mount("-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "tmpfs")
        try:
            yield self._folder
        finally:
            subprocess.run(["umount", "-l", str(self._folder)], check=True)

    def fill(self, left: int) -> None:
        """Leaves so many kilobytes free."""
        free = os.statvfs(self._folder)
        size = free.f_bavail * free.f_bsize - 1024 * left
        with (self._folder / _FILLER).open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)

    def empty(self) -> None:
        """Makes space again."""
        (self._folder / _FILLER).unlink(missing_ok=True)

    def set_writable(self, *, writable: bool) -> None:
        """Makes the file system writable, or read-only."""
        self._mount("-o", f"remount,{'rw' if writable else 'ro'}")

    def _mount(self, *options: str) -> None:
        done = subprocess.run(["mount", *options, str(self._folder)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise PermissionError(done.stderr.strip())


def run(worker: WorkerProcess, tables: Tables, case: DiskCase, disk: Disk) -> Outcome:
    """Runs an operation on a bad disk, and judges the table once the disk is good again."""
    with disk.mounted() as folder:
        path = tables.copy(case.operation, folder)
        if case.kind == FULL:
            disk.fill(case.left)
        else:
            disk.set_writable(writable=False)
        answer = worker.ask("run", operation=case.operation, path=str(path))
        if case.kind == FULL:
            disk.empty()
        else:
            disk.set_writable(writable=True)
        rows = tables.rows_of(case.operation)
        failed = unclear(answer) or problem_before(path, case.operation, rows)
        if failed is None:
            before = oracle.ids(path)
            recovered = worker.ask("recover", operation=case.operation, path=str(path))
            failed = f"{recovered}" if recovered else problem_after(path, case.operation, rows, before)
        if failed is not None:
            failed = f"{failed}; the operation had ended with {answer or 'success'}"
    where = case.kind if answer else ""
    return Outcome(case.name, case.operation, case.kind, where, failed, answer.get("code", ""))
