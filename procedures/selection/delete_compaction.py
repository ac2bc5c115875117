"""DeleteCompaction: rewrites files many of whose rows deletion vectors hide, with only the rows that live."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from catalog.counted_nouns import counted
from catalog.files.arrays import UNKNOWN, Floats, Integers
from catalog.files.file_table import FileTable
from catalog.quantities import size_text
from catalog.settings.setting import Setting, whole_number
from catalog.settings.strategy_options import MIN_DELETED_RATIO
from procedures.declare.option import option
from procedures.declare.signature import Parameter
from procedures.groups.cutter import Limits, pieces
from procedures.groups.group import Concatenate, FileRun, InputFile
from procedures.groups.strategy import Finding, SelectionSettings, Strategy, TableFiles

NAME = "DeleteCompaction"
MIN_DELETED_ROWS = Setting(
    "min_deleted_rows", whole_number(1), "Files are rewritten when so many of their rows are hidden."
)


class DeleteCompaction(Strategy):
    """Rewrites each file separately: its rows keep their order, and indexed ones their revision, cubes and band."""

    name: ClassVar[str] = NAME
    doc: ClassVar[str] = "Rewrites files many of whose rows are deleted, without these rows; any table has use for it."
    needs_index_columns: ClassVar[bool] = False
    options: ClassVar[tuple[Parameter, ...]] = (option(MIN_DELETED_RATIO), option(MIN_DELETED_ROWS))

    def groups(self, table: TableFiles, settings: SelectionSettings) -> Iterator[Finding]:
        """See ``Strategy.groups``; those files of a revision come first that free the largest share of their bytes."""
        files, wanted = table.files, settings.revision_id
        ratio, least = settings.options[MIN_DELETED_RATIO.name], settings.options[MIN_DELETED_ROWS.name]
        shares = _deleted_shares(files)
        qualifies = (files.deleted > 0) & ((shares > ratio) | (least is not None and files.deleted >= (least or 0)))
        if wanted is not None:
            qualifies &= files.revision == wanted
        if not qualifies.any():
            yield f"{NAME}: no file has so many deleted rows"
        for revision in np.unique(files.revision[qualifies]).tolist():
            positions = np.flatnonzero(qualifies & (files.revision == revision))
            positions = positions[np.argsort(-shares[positions], kind="stable")]
            limits = Limits(settings.bytes_per_iter)
            for first, end in pieces(files.size[positions], limits, crossing=True):
                yield _group(files, positions[first:end], revision, table.snapshot.retention_hours)


def _deleted_shares(files: FileTable) -> Floats:
    """Hidden rows of each file as a share of all; 1 where the log does not tell how many rows there are."""
    rows = np.maximum(files.rows + files.deleted, 1)
    return np.where(files.rows == UNKNOWN, 1.0, files.deleted / np.where(files.rows == UNKNOWN, 1, rows))


def _group(files: FileTable, taken: Integers, revision: int, retention_hours: float) -> Concatenate:
    live = taken[files.rows[taken] != 0]
    runs = tuple(FileRun.of(files, [p]) for p in live)
    known = taken[files.rows[taken] != UNKNOWN]
    freed = int((files.size[known] * _deleted_shares(files)[known]).astype(np.int64).sum())
    deleted, read = int(files.deleted[taken].sum()), int(files.size[live].sum())
    written = int(files.size[taken].sum()) - freed
    note = (
        f"{counted(deleted, 'deleted row')} in {counted(len(taken), 'file')}; reads {size_text(read)}, writes about "
        f"{size_text(written)}, and frees about {size_text(freed)} once vacuum removes the old files, which the table "
        f"keeps for {retention_hours:g} hours"
    )
    return Concatenate(NAME, revision, f"DELETED_ROWS_{deleted}", InputFile.of(files, taken), note, runs=runs)
