"""Judges a table after a fault: its rows by the oracle, the next run, and what a vacuum leaves."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from faults import oracle
from faults.worker_process import WorkerProcess

WRITTEN = range(5000, 5020)
"""See ``operations.WRITTEN``, which needs Spark."""
APPENDED = range(9000, 9005)
"""See ``acts.APPENDED``."""
ADDS_ROWS = frozenset({"write"})
_UNCLEAR = frozenset({"USE_INTERNAL"})


class Tables:
    """Copies of templates for cases.

    Args:
        folder: where they are.
        operations: template by operation.
    """

    def __init__(self, folder: Path, operations: dict[str, str]) -> None:
        self._folder, self._operations = folder, operations
        self._rows: dict[str, list[int]] = {}

    def path_of(self, template: str) -> Path:
        """The table that is copied."""
        return self._folder / "templates" / template

    def make_missing(self, worker: WorkerProcess, templates: Iterable[str]) -> None:
        """Makes the templates that are not there."""
        for name in templates:
            path = self.path_of(name)
            if not path.exists():
                part = path.with_name(f".{name}-{uuid.uuid4().hex[:8]}")
                worker.ask("make", template=name, path=str(part))
                part.rename(path)

    def rows_of(self, operation: str) -> list[int]:
        """The ids of the rows before an operation."""
        return self.rows_of_template(self._operations[operation])

    def rows_of_template(self, template: str) -> list[int]:
        """The ids of the rows of a template."""
        if template not in self._rows:
            self._rows[template] = oracle.ids(self.path_of(template))
        return self._rows[template]

    def copy(self, operation: str, folder: Path | None = None) -> Path:
        """A new table for an operation, with the times of the files as they are."""
        return self.copy_of(self._operations[operation], folder)

    def copy_of(self, template: str, folder: Path | None = None) -> Path:
        """A copy of a template; see ``copy``."""
        path = (folder or self._folder / "tables") / uuid.uuid4().hex[:12]
        shutil.copytree(self.path_of(template), path)
        return path

    def remove(self, path: Path) -> None:
        """Deletes a table and what is beside it."""
        for place in path.parent.glob(f"{path.name}*"):
            shutil.rmtree(place, ignore_errors=True)


def unclear(answer: dict[str, Any]) -> str | None:
    """Why the error of an operation says too little; None if it is clear."""
    if answer and (answer.get("code") in _UNCLEAR or not str(answer.get("message", "")).strip()):
        return f"the error is unclear: {answer}"
    return None


def problem_before(path: Path, operation: str, rows: list[int], *, appended: bool = False) -> str | None:
    """What is wrong with a table right after a fault; None if nothing is.

    Args:
        path: the table.
        operation: that was disturbed.
        rows: ids before the operation.
        appended: whether another writer has appended rows meanwhile.
    """
    return _problem(path, _choices(rows, operation, (0, 1), appended=appended))


def problem_after(
    path: Path, operation: str, rows: list[int], before: list[int], damaged: str | None = None
) -> str | None:
    """What is wrong with a table after the next run and a vacuum; None if nothing is.

    Args:
        path: the table.
        operation: that was disturbed.
        rows: ids before the operation.
        before: ids after the fault.
        damaged: a file that nobody can read; the record of a rewrite stays then.
    """
    expected = sorted([*before, *(WRITTEN if operation in ADDS_ROWS else ())])
    problem = _problem(path, [expected])
    if problem is not None:
        return f"after the next run and a vacuum: {problem}"
    if left := oracle.orphans(path):
        return f"a vacuum leaves {left}"
    if records := [name for name in oracle.write_records(path) if damaged != f"_use/writes/{name}"]:
        return f"a vacuum leaves the records {records}"
    return None if len(rows) <= len(before) else "rows are lost"


def _choices(rows: list[int], operation: str, times: Collection[int], *, appended: bool) -> list[list[int]]:
    more = [*(APPENDED if appended else ())]
    written = list(WRITTEN)
    times = times if operation in ADDS_ROWS else (0,)
    return [sorted([*rows, *more, *written * count]) for count in times]


def _problem(path: Path, choices: list[list[int]]) -> str | None:
    if gone := oracle.missing(path):
        return f"{len(gone)} files of the newest version are missing: {gone[0]}"
    ids = oracle.ids(path)
    if ids not in choices:
        expected = choices[0]
        lost, extra = set(expected) - set(ids), len(ids) - len(expected)
        return f"{len(lost)} rows are lost, {extra} more are there than expected"
    if oracle.checksum(path) != oracle.checksum_of(ids):
        return "the values of rows have changed"
    return None
