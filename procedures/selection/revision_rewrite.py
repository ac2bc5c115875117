"""RevisionRewrite: files of older revisions are indexed again into the newest, so that the older ones run empty."""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from catalog.errors import InvalidArgumentError, UnknownNameError
from catalog.properties.index_properties import HASH_TYPES_KEY_PREFIX
from catalog.table.snapshot import TableSnapshot, file_levels
from catalog.virtual_tables.spaces import column_names
from otree.revision import Revision
from procedures.declaration import Parameter
from procedures.optimizer.plan import FileGroup, InputFile, Selection
from procedures.selection.selection_strategy import MAX_FILES_PER_GROUP, SelectionSettings, Strategy, take_until

NAME = "RevisionRewrite"


class RevisionRewrite(Strategy):
    """Takes the files of one older revision at a time, the oldest revision first; their rows join the newest one."""

    name: ClassVar[str] = NAME
    doc: ClassVar[str] = "Indexes the files of older revisions again into the newest one, oldest revision first."
    options: ClassVar[tuple[Parameter, ...]] = (
        Parameter("batch_bytes", "BIGINT", "Bytes of files taken in an iteration.", 10_000_000_000),
    )

    def select(self, snapshot: TableSnapshot, settings: SelectionSettings) -> Selection:
        """See ``Strategy.select``.

        Raises:
            InvalidArgumentError: revision 0 was asked for, which is not indexed.
            UnknownNameError: the table has no revision of this number.
        """
        wanted = settings.revision_id
        if wanted == 0:
            raise InvalidArgumentError.of(
                "revision_id", 0, "an indexed revision's number; UnindexedFiles takes files of 0"
            )
        latest = snapshot.latest_revision
        if wanted is not None and wanted not in snapshot.revisions:
            raise UnknownNameError.of("revision", str(wanted), [str(n) for n in snapshot.revisions if n > 0])
        if latest is None:
            return Selection(note=f"{NAME}: the table has no indexed files yet")
        # Where the properties ask for another index than the newest revision is, that one is to be left too.
        last = latest.revision_id if _is_outdated(snapshot, latest) else latest.revision_id - 1
        if wanted is not None and wanted > last:
            return Selection(note=f"{NAME}: revision {wanted} is the newest")
        older = snapshot.files.where(
            F.col("revision").between(1, last) if wanted is None else F.col("revision") == wanted
        )
        return _oldest(snapshot, older, settings.options["batch_bytes"])


def former_index_note(snapshot: TableSnapshot) -> str | None:
    """Says how many files are indexed by other columns than the properties ask for, and how to change that.

    Returns:
        One sentence; None when there are no such files.
    """
    latest = snapshot.latest_revision
    if latest is None:
        return None
    wanted = snapshot.index_configuration
    former = [
        number
        for number, revision in snapshot.revisions.items()
        if number > 0 and wanted is not None and revision.transformers != wanted.transformers
    ]
    if not former:
        return None
    found = snapshot.files.where(F.col("revision").isin(former)).groupBy("revision").count().collect()
    if not found:
        return None
    newest = snapshot.revisions[max(row.revision for row in found)]
    names = column_names(snapshot.schema, newest.columns)
    indexed_by = ", ".join(f"{name}:{t.kind}" for name, t in zip(names, newest.transformers, strict=True))
    return (
        f"{sum(row['count'] for row in found)} files are indexed as before use.index.columns was changed "
        f"({indexed_by}): revision_rewrite => true indexes them again"
    )


def _is_outdated(snapshot: TableSnapshot, latest: Revision) -> bool:
    """Whether the next data that is indexed would start a revision, wherever it lies."""
    found = snapshot.index_configuration
    if found is None:
        return False
    hashed_as = snapshot.configuration.get(f"{HASH_TYPES_KEY_PREFIX}{latest.revision_id}")
    return (
        found.transformers != latest.transformers
        or (found.cube_size is not None and found.cube_size != latest.desired_cube_size)
        or (hashed_as is not None and hashed_as != ";".join(found.hash_types))
    )


def _oldest(snapshot: TableSnapshot, older: DataFrame, batch_bytes: int) -> Selection:
    per_revision = older.groupBy("revision").agg(F.count(F.lit(1)).alias("files")).orderBy("revision").first()
    if per_revision is None:
        return Selection(note=f"{NAME}: no files of older revisions")
    number = per_revision.revision
    of_revision = older.where(F.col("revision") == number).drop("blocks", "write_id")
    rows = (
        of_revision.orderBy("modification_time", "path")
        .limit(MAX_FILES_PER_GROUP)
        .join(file_levels(snapshot.blocks(number)), "path", "left")
        .orderBy("modification_time", "path")
        .collect()
    )
    oldest_first = (
        InputFile(r.path, r.deletion_vector, r.size, r.rows, r["level"] or 0, r.first_time, r.last_time) for r in rows
    )
    files = take_until(oldest_first, batch_bytes)
    note = f"{len(files)} of {per_revision.files} files of revision {number}, oldest first"
    return Selection(FileGroup(NAME, 0, f"REVISION_{number}", files, note))
