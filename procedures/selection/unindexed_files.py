"""UnindexedFiles: files that plain writers appended (revision 0), oldest first."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from catalog.files.file_table import FileTable
from catalog.table.snapshot import TableSnapshot
from procedures.declare.declaration import Parameter
from procedures.groups.plan import FileGroup, InputFile, Selection
from procedures.groups.selection_strategy import MAX_FILES_PER_GROUP, SelectionSettings, Strategy, take_until
from procedures.selection.file_positions import input_file, positions_by_age
from procedures.selection.timestamps import WrittenTime, instant

logger = logging.getLogger(__name__)

NAME = "UnindexedFiles"
_FROM = "from_timestamp"


def choose(oldest_first: Iterable[InputFile], batch_bytes: int, total: int, since: str = "") -> Selection:
    """Takes the first ``batch_bytes`` of the files; pure.

    Args:
        oldest_first: the files, those of which the first are taken.
        batch_bytes: bytes after which no further file is taken.
        total: number of unindexed files that may be taken.
        since: the time before which files are left alone, for people; '' without one.
    """
    files = take_until(oldest_first, batch_bytes)
    modified = f" modified since {since}" if since else ""
    if not files:
        return Selection(note=f"{NAME}: no unindexed files{modified}")
    note = f"{len(files)} of {total} unindexed files{modified}, oldest first"
    return Selection(FileGroup(NAME, 0, "UNINDEXED", files, note))


class UnindexedFiles(Strategy):
    """Joins unindexed files to the newest revision's tree, or starts a new revision when data leaves its space."""

    name: ClassVar[str] = NAME
    aliases: ClassVar[tuple[str, ...]] = ("UnindexedFilesSelection",)
    doc: ClassVar[str] = "Indexes files that plain writers appended, oldest first."
    options: ClassVar[tuple[Parameter, ...]] = (
        Parameter("batch_bytes", "BIGINT", "Bytes of unindexed files taken in an iteration.", 10_000_000_000),
        Parameter(
            _FROM,
            "STRING",
            "Files modified before it are left alone: epoch milliseconds, or 'yyyy-MM-dd HH:mm:ss' in the session's "
            "time zone unless one follows.",
            "0",
        ),
    )

    def check_options(self, options: Mapping[str, Any]) -> None:
        """See ``Strategy.check_options``."""
        WrittenTime.of(_FROM, options[_FROM])

    def select(self, snapshot: TableSnapshot, settings: SelectionSettings) -> Selection:
        """See ``Strategy.select``."""
        if settings.revision_id not in (None, 0):
            return Selection(note=f"UnindexedFiles: revision {settings.revision_id} was asked for")
        start = instant(snapshot.spark, _FROM, settings.options[_FROM])
        since = start.millis
        unindexed = _unindexed(snapshot.file_table, since)
        if unindexed.outdated:
            logger.warning(
                "%d files have index tags of before version 0.6, and count as unindexed.", unindexed.outdated
            )
        if unindexed.unreadable:
            logger.warning(
                "%d files have index tags that cannot be read, and count as unindexed; use.check says why.",
                unindexed.unreadable,
            )
        return choose(unindexed.oldest, settings.options["batch_bytes"], unindexed.total, start.text if since else "")


@dataclass(frozen=True)
class _Unindexed:
    """The unindexed files of a version.

    Attributes:
        oldest: the oldest ``MAX_FILES_PER_GROUP``, oldest first.
        total: how many there are.
        outdated: how many of the oldest have tags of before version 0.6.
        unreadable: how many of the oldest have tags that cannot be read.
    """

    oldest: Sequence[InputFile]
    total: int
    outdated: int
    unreadable: int


def _unindexed(files: FileTable, since: int) -> _Unindexed:
    positions = positions_by_age(files, (files.revision == 0) & (files.modification_time >= since))
    first = positions[:MAX_FILES_PER_GROUP]
    oldest = [input_file(files, position, -1) for position in first]
    return _Unindexed(oldest, len(positions), int(files.outdated[first].sum()), int(files.unreadable[first].sum()))
