"""FileList: the files that the caller names, rewritten as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from catalog.counted_nouns import counted
from procedures.groups.cutter import Limits, pieces
from procedures.groups.group import InputFile, Relayout
from procedures.groups.strategy import Finding, SelectionSettings, Strategy, TableFiles

NAME = "FileList"


class FileList(Strategy):
    """Takes all files that may be chosen, those of one revision together; unindexed ones first, which are indexed.

    It is for runs that are restricted to named files: what it writes has other names, so that it ends. Files of a
    revision whose column was dropped are indexed again.
    """

    name: ClassVar[str] = NAME
    doc: ClassVar[str] = "Rewrites the files given by the parameter files: unindexed ones are indexed."

    def groups(self, table: TableFiles, settings: SelectionSettings) -> Iterator[Finding]:
        """See ``Strategy.groups``."""
        files, wanted = table.files, settings.revision_id
        revisions = np.unique(files.revision if wanted is None else files.revision[files.revision == wanted])
        if not len(revisions):
            yield f"{NAME}: none of the files is there any more"
        for revision in revisions.tolist():
            positions = np.flatnonzero(files.revision == revision)
            stays = revision > 0 and table.snapshot.has_columns_of(table.snapshot.revisions[revision])
            for first, end in pieces(files.size[positions], Limits(None)):
                taken = InputFile.of(files, positions[first:end])
                note = f"{counted(len(taken), 'named file')} of revision {revision}"
                yield Relayout(NAME, revision if stays else 0, "NAMED_FILES", taken, note)
