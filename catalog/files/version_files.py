"""All files of one version as a table in memory: kept, followed from an earlier version, listed by Delta, or read."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import NamedTuple

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog.files import file_table
from catalog.files.arrays import Flags
from catalog.files.file_rows import LogRowReader
from catalog.files.file_table import FileTable
from catalog.files.log_changes import FileChanges, changes_between, listed_files
from catalog.jvm.session import metadata_session
from catalog.jvm.table_state import LogExtent, TableState

# A log of this size is read by one task.
_ONE_TASK_BYTES = 64_000_000
# Lists of this length follow the commits at the cost of a Spark job; a shorter one is read again in the same time, and
# follows only commits that the driver reads.
FOLLOWED_FILES = 5_000
# Versions of a table whose files are kept.
_KEPT_VERSIONS = 2


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
    """Files of recent versions, at most two of a table: the newest and the one of the others that was used last.

    Args:
        limit: bytes that are kept; versions of the table that was not used for longest are dropped first.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        # By ``VersionKey.metadata``. Both levels are in the order of use.
        self._tables: OrderedDict[Hashable, dict[VersionKey, FileTable]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: VersionKey) -> FileTable | None:
        """Returns the files of a version, None when they are not kept."""
        with self._lock:
            versions = self._tables.get(key.metadata, {})
            files = versions.pop(key, None)
            if files is not None:
                versions[key] = files
                self._tables.move_to_end(key.metadata)
            return files

    def newest_before(self, key: VersionKey) -> tuple[int, FileTable] | None:
        """Returns the newest earlier version whose files have the same columns, and its files; None without one.

        A revision that was made since changes no column of a file, unless the file's tags name it already.
        """
        with self._lock:
            versions = self._tables.get(key.metadata, {})
            newest = max((k for k in versions if k.version < key.version), key=lambda k: k.version, default=None)
            if newest is None or not newest.spaces <= key.spaces:
                return None
            files = versions[newest]
        made_since = [number for number, _ in key.spaces - newest.spaces]
        return None if np.isin(files.tagged_revision, made_since).any() else (newest.version, files)

    def put(self, key: VersionKey, files: FileTable) -> None:
        """Keeps the files of a version, unless they alone exceed the limit."""
        if files.kept_bytes > self._limit:
            return
        with self._lock:
            versions = self._tables.setdefault(key.metadata, {})
            self._tables.move_to_end(key.metadata)
            self._drop(key.metadata, key)
            versions[key] = files
            self._bytes += files.kept_bytes
            if len(versions) > _KEPT_VERSIONS:
                newest = max(versions, key=lambda k: k.version)
                self._drop(key.metadata, next(k for k in versions if k != newest))
            while self._bytes > self._limit:
                metadata, oldest = next(iter(self._tables.items()))
                self._drop(metadata, next(iter(oldest)))
                if not oldest:
                    del self._tables[metadata]

    def _drop(self, metadata: Hashable, key: VersionKey) -> None:
        dropped = self._tables[metadata].pop(key, None)
        self._bytes -= dropped.kept_bytes if dropped is not None else 0


_KEPT_TABLES = KeptTables(file_table.MAX_KEPT_BYTES)


@dataclass(frozen=True)
class VersionFiles:
    """All files of one version, from the source that costs least.

    They are read in one Spark job, and kept for the next snapshot of the version. A long table that is kept from an
    earlier version follows the commits since.

    Attributes:
        state: the shim's table state.
        location: root of the table; nothing is kept without it.
        table_id: Delta's metadata id.
        version: Delta version.
        committed_at: modification time of the version's commit file, in epoch milliseconds.
        reader: reads rows of the log.
    """

    state: TableState
    location: str
    table_id: str
    version: int
    committed_at: int
    reader: LogRowReader

    def table(self) -> FileTable | None:
        """The files; None where there are more than ``file_table.MAX_FILES``."""
        files = self.kept
        if files is None and (self.extent.files or 0) <= file_table.MAX_FILES:
            files = self._followed()
            if files is None:
                files = self._listed()
            if files is None:
                rows = self.rows_in(metadata_session(self.reader.spark, self.extent.log_bytes))
                files = self.read(rows, are_counted=self.extent.files is not None)
            if files is not None:
                self.keep(files)
        return files

    def read(self, rows: DataFrame, *, are_counted: bool = False) -> FileTable | None:
        """Reads files in one Spark job; None where there are too many.

        Args:
            rows: as ``LogRowReader.table_rows_of`` gives them.
            are_counted: whether they are known to be few enough.
        """
        if not are_counted:
            rows = rows.limit(file_table.MAX_FILES + 1)
        if self.extent.log_bytes <= _ONE_TASK_BYTES:
            rows = rows.coalesce(1)
        files = FileTable.of(rows.toArrow())
        return files if len(files) <= file_table.MAX_FILES else None

    def _followed(self) -> FileTable | None:
        """The kept files of an earlier version, with the changes of the commits since; None without them."""
        former = self.kept_before
        if former is None:
            return None
        version, files = former
        is_short = len(files) < FOLLOWED_FILES
        if is_short and self.extent.files is None:
            return None
        changes = self.changes_since(version, only_short=is_short)
        if changes is None:
            return None
        # Every changed path is gone, also that of a new file.
        followed = files.updated(changes.gone, FileTable.of(changes.added)) if changes.gone else files
        # Another writer may have replaced commits since.
        return followed if self._has_counted_files(followed) else None

    def _listed(self) -> FileTable | None:
        """The files as Delta has listed them beside the version; None where it has not."""
        text = self.state.listed()
        rows = None if text is None else listed_files(self.reader.spark, text, self._rows_of_actions)
        files = None if rows is None else FileTable.of(rows)
        return files if files is not None and self._has_counted_files(files) else None

    def _has_counted_files(self, files: FileTable) -> bool:
        """Whether files are as many, with as many bytes, as Delta has counted for the version; True without a count."""
        return self.extent.files is None or (self.extent.files, self.bytes) == (len(files), int(files.size.sum()))

    def changes_since(self, version: int, *, only_short: bool = False) -> FileChanges | None:
        """What became of the files of an earlier version with the same metadata, in one Spark job at most.

        Args:
            version: the earlier version.
            only_short: whether no Spark job may be started.

        Returns:
            The changes; None if the commits cannot be read, or are too many.
        """
        versions = version, self.version
        return changes_between(self.reader.spark, self.location, versions, self._rows_of_actions, only_short)

    def _rows_of_actions(self, actions: DataFrame) -> DataFrame:
        return self.reader.table_rows_of(actions, "changed", "file_name")

    def rows_in(self, session: SparkSession) -> DataFrame:
        """The rows that ``FileTable`` needs of all files, computed with the settings of a session."""
        return self.reader.table_rows_of(self.state.files_in(session))

    @cached_property
    def extent(self) -> LogExtent:
        """How large the list of files is, as far as that is known without a Spark job."""
        return self.state.extent()

    @cached_property
    def bytes(self) -> int:
        """Bytes of the files; Delta keeps the sum beside most versions, and else adds it up."""
        return self.state.size_in_bytes()

    @property
    def kept(self) -> FileTable | None:
        """The files, if they were read before and are still kept."""
        return _KEPT_TABLES.get(self.key)

    @property
    def kept_before(self) -> tuple[int, FileTable] | None:
        """The newest earlier version that was read before and is still kept, and its files."""
        return _KEPT_TABLES.newest_before(self.key) if self.location else None

    def keep(self, files: FileTable) -> None:
        """Keeps all files of the version for other snapshots of it."""
        if self.location:
            _KEPT_TABLES.put(self.key, files)

    def keep_listed(self) -> bool:
        """Keeps the files as Delta has listed them beside the version, without a Spark job.

        Returns:
            Whether they are kept; False where Delta lists none, as in a version of many files.
        """
        if self.version < 0 or self.kept is not None:
            return self.version >= 0
        files = self._listed()
        if files is not None:
            self.keep(files)
        return files is not None

    @cached_property
    def key(self) -> VersionKey:
        """Names the files among those that are kept."""
        # Tags that cannot be read with the revisions of one configuration may be readable with those of another, and
        # the ranges of the files are those of the newest revision's columns.
        # The schema of a wide table takes more memory than a list of few files.
        schema = hashlib.sha256(self.reader.schema.json().encode()).digest()
        ranges = schema, self.reader.ranged_columns
        metadata = self.location, self.table_id, self.reader.partition_columns, ranges
        return VersionKey(metadata, frozenset(self.reader.dimensions.items()), self.version, self.committed_at)
