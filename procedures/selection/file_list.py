"""FileList: the files that the caller names, rewritten as they are."""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql import functions as F

from catalog.table.snapshot import TableSnapshot, file_levels
from procedures.optimizer.plan import FileGroup, InputFile, Selection
from procedures.selection.selection_strategy import MAX_FILES_PER_GROUP, SelectionSettings, Strategy

NAME = "FileList"


class FileList(Strategy):
    """Takes all files that may be chosen, those of one revision together; unindexed ones first, which are indexed.

    It is for runs that are restricted to named files: what it writes has other names, so that it ends.
    """

    name: ClassVar[str] = NAME
    doc: ClassVar[str] = "Rewrites the files given by the parameter files: unindexed ones are indexed."

    def select(self, snapshot: TableSnapshot, settings: SelectionSettings) -> Selection:
        """See ``Strategy.select``."""
        files = snapshot.files.drop("blocks", "write_id")
        if settings.revision_id is not None:
            files = files.where(F.col("revision") == settings.revision_id)
        first = files.agg(F.min("revision")).collect()[0][0]
        if first is None:
            return Selection(note=f"{NAME}: none of the files is there any more")
        levels = file_levels(snapshot.blocks(first))
        rows = (
            files.where(F.col("revision") == first)
            .join(levels, "path", "left")
            .orderBy("path")
            .limit(MAX_FILES_PER_GROUP)
            .collect()
        )
        unindexed = -1 if first == 0 else 0
        taken = tuple(
            InputFile(
                r.path,
                r.deletion_vector,
                r["size"],
                r.rows,
                unindexed if r["level"] is None else r["level"],
                r.first_time,
                r.last_time,
            )
            for r in rows
        )
        note = f"{len(taken)} named files of revision {first}"
        return Selection(FileGroup(NAME, first, "NAMED_FILES", taken, note))
