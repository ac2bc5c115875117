"""DeleteCompaction: rewrites files many of whose rows deletion vectors hide, with only the rows that live."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from catalog.counted_nouns import counted
from catalog.errors import InvalidArgumentError
from catalog.files.file_table import FileTable
from catalog.table.snapshot import TableSnapshot
from procedures.declare.declaration import Parameter
from procedures.groups.plan import FileGroup, FileRun, InputFile, Selection
from procedures.groups.selection_strategy import SelectionSettings, Strategy, take_until
from procedures.selection.file_positions import input_file, levels_or

NAME = "DeleteCompaction"
MIN_DELETED_RATIO = 0.05


@dataclass(frozen=True)
class FileWithDeletes:
    """A file some of whose rows a deletion vector hides.

    Attributes:
        file: the file.
        revision_id: its revision, 0 when it is unindexed.
        deleted: rows that are hidden.
        tier: size tier that clustering has lifted the file to, which it keeps; 0 without one.
    """

    file: InputFile
    revision_id: int
    deleted: int
    tier: int = 0

    @property
    def ratio(self) -> float:
        """Hidden rows as a share of all; 1 where the log does not tell how many rows there are."""
        return 1.0 if self.file.rows is None else self.deleted / max(self.file.rows + self.deleted, 1)

    @property
    def freed_bytes(self) -> int:
        """About how many bytes the hidden rows take; 0 where the log does not tell."""
        return 0 if self.file.rows is None else int(self.file.size * self.ratio)


def choose(files: list[FileWithDeletes], bytes_per_iter: int, retention_hours: float) -> Selection:
    """Takes files of the first revision that has any, those first that free the largest share; pure.

    Args:
        files: the files that qualify.
        bytes_per_iter: bytes after which no further file is taken.
        retention_hours: how long the table keeps removed files, for people.
    """
    if not files:
        return Selection(note=f"{NAME}: no file has so many deleted rows")
    revision_id = min(f.revision_id for f in files)
    of_revision = sorted((f for f in files if f.revision_id == revision_id), key=lambda f: (-f.ratio, f.file.path))
    by_path = {f.file.path: f for f in of_revision}
    taken = take_until((f.file for f in of_revision), bytes_per_iter)
    chosen = [by_path[file.path] for file in taken]
    runs = tuple(FileRun((f.file.path,), f.tier or None) for f in chosen if f.file.rows != 0)
    deleted, freed = sum(f.deleted for f in chosen), sum(f.freed_bytes for f in chosen)
    read = sum(f.file.size for f in chosen if f.file.rows != 0)
    written = sum(f.size for f in taken) - freed
    note = (
        f"{counted(deleted, 'deleted row')} in {counted(len(chosen), 'file')}; reads {read} bytes, writes about "
        f"{written}, and frees about {freed} once vacuum removes the old files, which the table keeps for "
        f"{retention_hours:g} hours"
    )
    return Selection(FileGroup(NAME, revision_id, f"DELETED_ROWS_{deleted}", taken, note, runs=runs))


class DeleteCompaction(Strategy):
    """Rewrites each file separately: its rows keep their order, and indexed ones their revision, cubes and band."""

    name: ClassVar[str] = NAME
    doc: ClassVar[str] = "Rewrites files many of whose rows are deleted, without these rows; any table has use for it."
    needs_index_columns: ClassVar[bool] = False
    options: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "min_deleted_ratio",
            "DOUBLE",
            "Files are rewritten when deletion vectors hide more than this share of their rows.",
            MIN_DELETED_RATIO,
        ),
        Parameter("min_deleted_rows", "BIGINT", "Files are rewritten when so many of their rows are hidden.", None),
    )

    def check_options(self, options: Mapping[str, Any]) -> None:
        """See ``Strategy.check_options``."""
        ratio, rows = options["min_deleted_ratio"], options["min_deleted_rows"]
        if not 0.0 <= ratio <= 1.0:
            raise InvalidArgumentError.of("min_deleted_ratio", ratio, "a number from 0 to 1")
        if rows is not None and rows < 1:
            raise InvalidArgumentError.of("min_deleted_rows", rows, "a whole number of at least 1")

    def select(self, snapshot: TableSnapshot, settings: SelectionSettings) -> Selection:
        """See ``Strategy.select``."""
        revision_id = settings.revision_id
        limits = settings.options["min_deleted_ratio"], settings.options["min_deleted_rows"]
        candidates = _files_with_deletes(snapshot.file_table, *limits)
        qualified = [f for f in candidates if revision_id in (None, f.revision_id)]
        return choose(qualified, settings.bytes_per_iter, snapshot.retention_hours)


def _files_with_deletes(files: FileTable, min_ratio: float, min_rows: int | None) -> list[FileWithDeletes]:
    positions = np.flatnonzero(files.deleted > 0)
    levels = dict(levels_or(files, positions, 0))
    hidden = [
        FileWithDeletes(
            input_file(files, int(p), levels[int(p)] if files.revision[p] else -1),
            int(files.revision[p]),
            int(files.deleted[p]),
            int(files.tier[p]),
        )
        for p in positions
    ]
    return [f for f in hidden if f.ratio > min_ratio or (min_rows is not None and f.deleted >= min_rows)]
