"""The index that a table has already, from its properties and the tags of its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.errors import UseError
from otree.block import REVISION_TAG
from otree.errors import IndexFormatError
from otree.revision import newest_revision
from sql_ext.diagnosis.assumed_queries import SHARE
from sql_ext.diagnosis.file_bounds import FileBounds
from sql_ext.readers.delta_files import DeltaFiles
from sql_ext.readers.log_entries import LogEntry
from sql_ext.readers.table_scan import scan

_NO_REVISION = "0"


@dataclass(frozen=True)
class PresentIndex:
    """The index of a version.

    Attributes:
        columns: names of its columns; empty without an index.
        unindexed_bytes: size of the files that it does not cover.
        sample_share: share of the bytes that a sample of 1 % of the rows reads.
    """

    columns: tuple[str, ...]
    unindexed_bytes: int
    sample_share: float


def present_index(table: DeltaFiles, files: FileBounds, storage_options: Mapping[str, str]) -> PresentIndex:
    """Reads the index of a version.

    Args:
        table: the version.
        files: its live files.
        storage_options: for object stores.
    """
    nothing = PresentIndex((), files.bytes, 1.0)
    try:
        revision = newest_revision(table.configuration)
    except IndexFormatError:
        return nothing
    if revision is None:
        return nothing
    found = [table.columns.find_stored(name) for name in revision.columns]
    unindexed = sum(
        int(size)
        for path, size in zip(files.paths, files.sizes, strict=True)
        if not _is_indexed(table.entry(str(path)))
    )
    try:
        sampled = scan(table.location, SHARE, version=table.version, storage_options=storage_options)
        share = sampled.bytes / max(sampled.table_bytes, 1)
    except UseError:
        share = 1.0
    return PresentIndex(tuple(column.name for column in found if column is not None), unindexed, share)


def _is_indexed(entry: LogEntry | None) -> bool:
    return entry is not None and entry.tags.get(REVISION_TAG, _NO_REVISION) != _NO_REVISION
