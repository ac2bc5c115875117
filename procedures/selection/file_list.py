"""FileList: the files that the caller names, rewritten as they are."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from catalog.counted_nouns import counted
from catalog.files.file_table import FileTable
from catalog.table.snapshot import TableSnapshot
from procedures.groups.plan import FileGroup, InputFile, Selection
from procedures.groups.selection_strategy import MAX_FILES_PER_GROUP, SelectionSettings, Strategy
from procedures.selection.file_positions import input_file, levels_or

NAME = "FileList"


class FileList(Strategy):
    """Takes all files that may be chosen, those of one revision together; unindexed ones first, which are indexed.

    It is for runs that are restricted to named files: what it writes has other names, so that it ends.
    """

    name: ClassVar[str] = NAME
    doc: ClassVar[str] = "Rewrites the files given by the parameter files: unindexed ones are indexed."

    def select(self, snapshot: TableSnapshot, settings: SelectionSettings) -> Selection:
        """See ``Strategy.select``."""
        found = _first_revision(snapshot.file_table, settings.revision_id)
        if found is None:
            return Selection(note=f"{NAME}: none of the files is there any more")
        first, taken = found
        note = f"{counted(len(taken), 'named file')} of revision {first}"
        return Selection(FileGroup(NAME, first, "NAMED_FILES", taken, note))


_Found = tuple[int, tuple[InputFile, ...]]
"""The first revision that has files, and these files."""


def _first_revision(files: FileTable, of_revision: int | None) -> _Found | None:
    revisions = files.revision if of_revision is None else files.revision[files.revision == of_revision]
    if not len(revisions):
        return None
    first = int(revisions.min())
    positions = np.flatnonzero(files.revision == first)[:MAX_FILES_PER_GROUP]
    levels = levels_or(files, positions, _level_without_rows(first))
    return first, tuple(input_file(files, position, level) for position, level in levels)


def _level_without_rows(revision_id: int) -> int:
    return -1 if revision_id == 0 else 0
