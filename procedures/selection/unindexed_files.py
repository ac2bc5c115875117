"""UnindexedFiles: files that plain writers appended (revision 0), oldest first."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any, ClassVar

from pyspark.sql import functions as F

from catalog.errors import InvalidArgumentError
from catalog.snapshot import TableSnapshot
from procedures.declaration import Parameter
from procedures.plan import FileGroup, InputFile, Selection
from procedures.selection.base import MAX_FILES_PER_GROUP, SelectionSettings, Strategy, take_until

logger = logging.getLogger(__name__)


def epoch_millis(name: str, text: str) -> int:
    """Parses epoch milliseconds or ``yyyy-MM-dd HH:mm:ss`` (UTC).

    Raises:
        InvalidArgumentError: neither.
    """
    if text.strip().isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        accepted = "epoch milliseconds or 'yyyy-MM-dd HH:mm:ss' in UTC"
        raise InvalidArgumentError.of(name, text, accepted) from error
    return int((moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp() * 1000)


def choose(oldest_first: Iterable[InputFile], batch_bytes: int, total: int) -> Selection:
    """Takes the first ``batch_bytes`` of the files; pure."""
    files = take_until(oldest_first, batch_bytes)
    if not files:
        return Selection(note="UnindexedFiles: no unindexed files")
    note = f"{len(files)} of {total} unindexed files, oldest first"
    return Selection(FileGroup("UnindexedFiles", 0, "UNINDEXED", files, note))


class UnindexedFiles(Strategy):
    """Joins unindexed files to the newest revision's tree, or starts a new revision when data leaves its space."""

    name: ClassVar[str] = "UnindexedFiles"
    doc: ClassVar[str] = "Indexes files that plain writers appended, oldest first."
    options: ClassVar[tuple[Parameter, ...]] = (
        Parameter("batch_bytes", "BIGINT", "Bytes of unindexed files taken in an iteration.", 10_000_000_000),
        Parameter(
            "from_timestamp",
            "STRING",
            "Files modified before it are left alone: epoch milliseconds or 'yyyy-MM-dd HH:mm:ss' in UTC.",
            "0",
        ),
    )

    def check_options(self, options: Mapping[str, Any]) -> None:
        """See ``Strategy.check_options``."""
        epoch_millis("from_timestamp", options["from_timestamp"])

    def select(self, snapshot: TableSnapshot, settings: SelectionSettings) -> Selection:
        """See ``Strategy.select``."""
        if settings.revision_id not in (None, 0):
            return Selection(note=f"UnindexedFiles: revision {settings.revision_id} was asked for")
        start = epoch_millis("from_timestamp", settings.options["from_timestamp"])
        unindexed = snapshot.files.where((F.col("revision") == 0) & (F.col("modification_time") >= start))
        rows = unindexed.drop("blocks").orderBy("modification_time", "path").limit(MAX_FILES_PER_GROUP).collect()
        total = len(rows) if len(rows) < MAX_FILES_PER_GROUP else unindexed.count()
        outdated = sum(bool(r.outdated) for r in rows)
        if outdated:
            logger.warning("%d files have index tags of before version 0.6, and count as unindexed.", outdated)
        unreadable = sum(bool(r.unreadable) for r in rows)
        if unreadable:
            logger.warning(
                "%d files have index tags that cannot be read, and count as unindexed; use.check says why.", unreadable
            )
        oldest_first = (
            InputFile(r.path, r.deletion_vector, r.size, r.rows, -1, r.first_time, r.last_time) for r in rows
        )
        return choose(oldest_first, settings.options["batch_bytes"], total)
