"""Tables of the files of recent versions, kept in the driver, and restrictions that are applied to them in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from catalog.files.file_table import FileTable, Flags


@dataclass(frozen=True)
class PathFilter:
    """A restriction of a snapshot to files with some paths, or to all others; see ``TableSnapshot.only``.

    Attributes:
        paths: as in the log.
        keeps: whether the files with these paths are kept, or the others.
    """

    paths: frozenset[str]
    keeps: bool

    def __call__(self, files: DataFrame) -> DataFrame:
        """Filters the rows of ``TableSnapshot.log_files``."""
        is_named = F.col("path").isin(sorted(self.paths))
        return files.where(is_named if self.keeps else ~is_named)

    def of(self, files: FileTable) -> Flags:
        """Whether each of the files is kept."""
        is_named = files.with_paths(self.paths)
        return is_named if self.keeps else ~is_named


def restricted(
    files: FileTable,
    restrictions: Sequence[Callable[[DataFrame], DataFrame]],
    log_files: Callable[[], DataFrame],
) -> FileTable:
    """The files that restrictions keep; one Spark job if any of them is not a ``PathFilter``.

    Args:
        files: all files of a version.
        restrictions: see ``TableSnapshot``.
        log_files: the rows of all files of the version.
    """
    by_path = [r for r in restrictions if isinstance(r, PathFilter)]
    others = [r for r in restrictions if not isinstance(r, PathFilter)]
    if others:
        rows = log_files()
        for restrict in others:
            rows = restrict(rows)
        by_path.append(PathFilter(frozenset(rows.select("path").toArrow()["path"].to_pylist()), keeps=True))
    for restriction in by_path:
        files = files.where(restriction.of(files))
    return files


class VersionKey(NamedTuple):
    """Names the files of one version of a table.

    Attributes:
        metadata: table and schema. Files have the same columns in all versions in which it and the spaces are the same.
        spaces: number and dimensions of each revision whose tags can be read.
        version: the version.
        committed_at: when it was committed. A log whose last commit was replaced by hand has the same version again.
    """

    metadata: Hashable
    spaces: frozenset[tuple[int, int]]
    version: int
    committed_at: int


class KeptTables:
    """Files of recent versions, the longest unused dropped first.

    Args:
        limit: bytes that are kept.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        self._tables: OrderedDict[VersionKey, FileTable] = OrderedDict()
        self._lock = Lock()

    def get(self, key: VersionKey) -> FileTable | None:
        """Returns the files of a version, None when they are not kept."""
        with self._lock:
            files = self._tables.get(key)
            if files is not None:
                self._tables.move_to_end(key)
            return files

    def newest_before(self, key: VersionKey) -> tuple[int, FileTable] | None:
        """Returns the newest earlier version whose files have the same columns, and its files; None without one.

        A revision that was made since changes no column of a file, unless the file's tags name it already.
        """
        with self._lock:
            earlier = [k for k in self._tables if k.metadata == key.metadata and k.version < key.version]
            newest = max(earlier, key=lambda k: k.version, default=None)
            if newest is None or not newest.spaces <= key.spaces:
                return None
            files = self._tables[newest]
        made_since = [number for number, _ in key.spaces - newest.spaces]
        return None if np.isin(files.tagged_revision, made_since).any() else (newest.version, files)

    def put(self, key: VersionKey, files: FileTable) -> None:
        """Keeps the files of a version, unless they alone exceed the limit."""
        if files.kept_bytes > self._limit:
            return
        with self._lock:
            former = self._tables.pop(key, None)
            self._bytes += files.kept_bytes - (former.kept_bytes if former is not None else 0)
            self._tables[key] = files
            while self._bytes > self._limit:
                _, dropped = self._tables.popitem(last=False)
                self._bytes -= dropped.kept_bytes
