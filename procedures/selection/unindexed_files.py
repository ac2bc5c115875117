"""UnindexedFiles: files that plain writers appended (revision 0), oldest first."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from catalog.files.arrays import Integers
from catalog.files.file_table import FileTable
from catalog.settings.strategy_options import BATCH_BYTES, FROM_TIMESTAMP
from procedures.declare.option import option
from procedures.declare.signature import Parameter
from procedures.groups.cutter import Limits, pieces
from procedures.groups.group import InputFile, Relayout
from procedures.groups.strategy import Finding, SelectionSettings, Strategy, TableFiles
from procedures.selection.file_positions import positions_by_age
from procedures.selection.timestamps import WrittenTime, instant

logger = logging.getLogger(__name__)

NAME = "UnindexedFiles"
_FROM = FROM_TIMESTAMP.name


class UnindexedFiles(Strategy):
    """Joins unindexed files to the newest revision's tree, or starts a new revision when data leaves its space."""

    name: ClassVar[str] = NAME
    aliases: ClassVar[tuple[str, ...]] = ("UnindexedFilesSelection",)
    doc: ClassVar[str] = "Indexes files that plain writers appended, oldest first."
    options: ClassVar[tuple[Parameter, ...]] = (option(BATCH_BYTES), option(FROM_TIMESTAMP))

    def check_options(self, options: Mapping[str, Any]) -> None:
        """See ``Strategy.check_options``."""
        WrittenTime.of(_FROM, options[_FROM])

    def groups(self, table: TableFiles, settings: SelectionSettings) -> Iterator[Finding]:
        """See ``Strategy.groups``."""
        if settings.revision_id not in (None, 0):
            yield f"{NAME}: revision {settings.revision_id} was asked for"
            return
        start, files = instant(table.snapshot.spark, _FROM, settings.options[_FROM]), table.files
        oldest = positions_by_age(files, (files.revision == 0) & (files.modification_time >= start.millis))
        _warn(files, oldest)
        modified = f" modified since {start.text}" if start.millis else ""
        if not len(oldest):
            yield f"{NAME}: no unindexed files{modified}"
        for first, end in pieces(files.size[oldest], Limits(settings.options[BATCH_BYTES.name]), crossing=True):
            taken = InputFile.of(files, oldest[first:end])
            note = f"{len(taken)} of {len(oldest) - first} unindexed files{modified}, oldest first"
            yield Relayout(NAME, 0, "UNINDEXED", taken, note)


def _warn(files: FileTable, unindexed: Integers) -> None:
    outdated, unreadable = int(files.outdated[unindexed].sum()), int(files.unreadable[unindexed].sum())
    if outdated:
        logger.warning("%d files have index tags of before version 0.6, and count as unindexed.", outdated)
    if unreadable:
        logger.warning(
            "%d files have index tags that cannot be read, and count as unindexed; use.check says why.", unreadable
        )
