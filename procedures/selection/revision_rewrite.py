"""RevisionRewrite: files of older revisions are indexed again into the newest, so that the older ones run empty.

The newest revision itself is laid out anew where it is asked for by its number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from catalog.counted_nouns import agreeing, counted
from catalog.errors import InvalidArgumentError, UnknownNameError
from catalog.files.file_table import FileTable
from catalog.properties.index_properties import is_outdated
from catalog.settings.strategy_options import BATCH_BYTES
from catalog.table.snapshot import TableSnapshot
from catalog.virtual_tables.spaces import column_names
from procedures.declare.option import option
from procedures.declare.signature import Parameter
from procedures.groups.cutter import Limits, pieces
from procedures.groups.group import InputFile, Relayout
from procedures.groups.strategy import Finding, SelectionSettings, Strategy, TableFiles
from procedures.selection.file_positions import positions_by_age

NAME = "RevisionRewrite"


class RevisionRewrite(Strategy):
    """Takes the files of one older revision at a time, the oldest revision first; their rows join the newest one.

    With the number of the newest revision, it takes the files that this revision has when the run begins, each once.
    Their rows stay in the revision; its tree grows where cubes hold too many rows.
    """

    name: ClassVar[str] = NAME
    aliases: ClassVar[tuple[str, ...]] = ("RevisionOptimization",)
    doc: ClassVar[str] = "Indexes the files of older revisions again into the newest one, oldest revision first."
    options: ClassVar[tuple[Parameter, ...]] = (option(BATCH_BYTES),)

    def groups(self, table: TableFiles, settings: SelectionSettings) -> Iterator[Finding]:
        """See ``Strategy.groups``.

        Raises:
            InvalidArgumentError: revision 0 was asked for, which is not indexed.
            UnknownNameError: the table has no revision of this number.
        """
        snapshot, wanted = table.snapshot, settings.revision_id
        if wanted == 0:
            raise InvalidArgumentError.of(
                "revision_id", 0, "an indexed revision's number; UnindexedFiles takes files of 0"
            )
        latest = snapshot.latest_revision
        if wanted is not None and wanted not in snapshot.revisions:
            known = [str(n) for n in snapshot.revisions if n > 0]
            raise UnknownNameError.of("revision", str(wanted), known, "revision_id")
        if latest is None:
            yield f"{NAME}: the table has no indexed files yet"
            return
        # Where the properties ask for another index than the newest revision is, that one is to be left too.
        last = (
            latest.revision_id
            if is_outdated(snapshot.index_configuration, latest, snapshot.configuration)
            else latest.revision_id - 1
        )
        if wanted is None or wanted <= last:
            revisions = (1, last) if wanted is None else (wanted, wanted)
            yield from _oldest_first(table.files, revisions, settings.options[BATCH_BYTES.name])
            return
        # The files that the run has written are of the same revision.
        first = table.first.files
        among = frozenset(first.path[first.revision == wanted])
        yield from _oldest_first(table.files, (wanted, wanted), settings.options[BATCH_BYTES.name], wanted, among)


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
    files = _files_per_revision(snapshot, former)
    if not files:
        return None
    newest, count = snapshot.revisions[max(files)], sum(files.values())
    names = column_names(snapshot.schema, newest.columns)
    indexed_by = ", ".join(f"{name}:{t.kind}" for name, t in zip(names, newest.transformers, strict=True))
    return (
        f"{counted(count, 'file')} {agreeing(count, 'is', 'are')} indexed as before use.index.columns was changed "
        f"({indexed_by}): revision_rewrite => true indexes {agreeing(count, 'it', 'them')} again"
    )


def _files_per_revision(snapshot: TableSnapshot, revisions: Sequence[int]) -> dict[int, int]:
    """The number of files of each of these revisions that has any; none are known of too long a list of files."""
    files = snapshot.file_table_if_few
    if files is None:
        return {}
    numbers, counts = np.unique(files.revision, return_counts=True)
    return {int(n): int(count) for n, count in zip(numbers, counts, strict=True) if n in revisions}


def _oldest_first(
    files: FileTable,
    revisions: tuple[int, int],
    batch_bytes: int,
    stay: int = 0,
    among: frozenset[str] | None = None,
) -> Iterator[Finding]:
    """The files of some revisions, the oldest revision first.

    Args:
        files: the table.
        revisions: first and last revision that may be chosen.
        batch_bytes: bytes after which a group takes no further file.
        stay: the revision in which the rows stay, 0 if they join the newest one.
        among: paths of the files that may be chosen; None = any file.
    """
    first, last = revisions
    wanted = (files.revision >= first) & (files.revision <= last)
    if among is not None:
        wanted &= files.with_paths(among)
    if not wanted.any():
        left = f"revision {stay} are left to lay out anew" if stay else "older revisions"
        yield f"{NAME}: no files of {left}"
    for number in np.unique(files.revision[wanted]).tolist():
        positions = positions_by_age(files, wanted & (files.revision == number))
        for start, end in pieces(files.size[positions], Limits(batch_bytes), crossing=True):
            taken = InputFile.of(files, positions[start:end])
            left = counted(len(positions) - start, "file")
            note = f"{len(taken)} of {left} of revision {number}, oldest first"
            yield Relayout(NAME, stay, f"REVISION_{number}", taken, note)
