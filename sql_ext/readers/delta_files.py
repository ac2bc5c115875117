"""A version of a Delta table as the library deltalake reads it: live files, deletion vectors and schema."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
from numpy.typing import NDArray

from catalog.errors import FileSystemError, MissingPackageError, NotSupportedError, TableError, VersionError
from catalog.locations import path_of_file_url
from sql_ext.readers.deletion_vectors import deleted_positions
from sql_ext.readers.log_entries import LogEntry, Tags, entries_of_files
from sql_ext.readers.log_segment import LOG, newest_version
from sql_ext.readers.table_columns import TableColumns, stored_name

# Reader features of tables whose rows are read correctly here.
_FEATURES = frozenset(
    {
        "deletionVectors",
        "columnMapping",
        "timestampNtz",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "typeWidening",
        "typeWidening-preview",
    }
)
# Colors of a terminal, between the causes of an error.
_COLOR = re.compile(r"\x1b\[\d+m")
_LONGEST_CAUSE = 400
_ABSOLUTE = re.compile("[A-Za-z][A-Za-z0-9+.-]*:/|/")
_ENCODED = re.compile("%[0-9A-Fa-f]{2}")


@dataclass(frozen=True, eq=False)
class DeltaFile:
    """A live file.

    Attributes:
        path: as in the log.
        bytes: its size.
        partition: values of the partition columns, by their names for users; days and microseconds instead of dates and
            times.
        minima: smallest values by stored name of a top-level column; None where unknown.
        maxima: largest values.
        nulls: numbers of NULLs.
        rows: number of rows, with deleted ones; None if unknown.
        tags: of the index; empty if unknown.
        deletion_vector: its descriptor; None without deleted rows.
        times_are_known: whether ``minima`` and ``maxima`` of TIMESTAMP columns are right.
    """

    path: str
    bytes: int
    partition: Mapping[str, Any]
    minima: Mapping[str, Any]
    maxima: Mapping[str, Any]
    nulls: Mapping[str, Any]
    rows: int | None
    tags: Tags
    deletion_vector: Mapping[str, Any] | None = None
    times_are_known: bool = True


@dataclass(frozen=True, eq=False)
class DeltaFiles:
    """A version of a table.

    Attributes:
        location: path or URL of the table.
        storage_options: for the object store.
        table: deltalake's table.
    """

    location: str
    storage_options: Mapping[str, str] = field(repr=False)
    table: Any = field(repr=False)

    @classmethod
    def of(cls, location: str, version: int | None, storage_options: Mapping[str, str]) -> DeltaFiles:
        """Loads a version.

        Args:
            location: path or URL.
            version: None = the newest.
            storage_options: as deltalake takes them.

        Raises:
            MissingPackageError: deltalake is not installed.
            TableError: there is no table.
            VersionError: there is no such version.
            NotSupportedError: the table has features that are not implemented, or a folder that deltalake would
                confuse with another one.
        """
        try:
            from deltalake import DeltaTable
            from deltalake.exceptions import DeltaError
            from deltalake.fs import DeltaStorageHandler
        except ImportError as error:
            raise MissingPackageError.of("deltalake") from error
        try:
            _check_folder(location)
            if version is not None:
                # deltalake tries all versions up to a missing one.
                newest = newest_version(pafs.PyFileSystem(DeltaStorageHandler(location, dict(storage_options))))
                if newest is None:
                    raise TableError.missing(location, f"no version in {LOG}")
                if version > newest:
                    raise VersionError.missing(version, 0, newest)
            table = DeltaTable(location, version=version, storage_options=dict(storage_options))
        except (DeltaError, OSError, ValueError) as error:
            raise TableError.missing(location, causes_of(error)) from error
        found = cls(location, storage_options, table)
        found._check_features()
        return found

    def _check_features(self) -> None:
        protocol = self.table.protocol()
        unknown = sorted(set(protocol.reader_features or ()) - _FEATURES)
        if unknown:
            raise NotSupportedError(f"{self.location} has reader features that need Spark: {', '.join(unknown)}.")

    @property
    def version(self) -> int:
        """The version."""
        return int(self.table.version())

    @property
    def configuration(self) -> Mapping[str, str]:
        """The table properties."""
        return dict(self.table.metadata().configuration)

    @cached_property
    def columns(self) -> TableColumns:
        """The columns."""
        fields = json.loads(self.table.schema().to_json())["fields"]
        return TableColumns(tuple(fields), tuple(self.table.metadata().partition_columns))

    @cached_property
    def file_system(self) -> pafs.FileSystem:
        """The table's folder."""
        from deltalake.fs import DeltaStorageHandler

        return pafs.PyFileSystem(DeltaStorageHandler(self.table.table_uri, dict(self.storage_options)))

    @cached_property
    def files(self) -> list[DeltaFile]:
        """The live files in the order of their paths.

        Raises:
            FileSystemError: the log cannot be read.
        """
        with reading(self.location):
            rows = self.actions.to_pylist()
        return sorted((self._file(row) for row in rows), key=lambda file: file.path)

    @cached_property
    def actions(self) -> pa.Table:
        """The live files as deltalake has them, with days and microseconds instead of dates and times.

        Raises:
            FileSystemError: the log cannot be read.
        """
        with reading(self.location):
            actions = pa.table(self.table.get_add_actions(flatten=False))
            return pa.Table.from_arrays([_as_numbers(c) for c in actions.columns], actions.column_names)

    @cached_property
    def _entries(self) -> Mapping[str, LogEntry]:
        with reading(self.location):
            return entries_of_files(self.file_system, self.version)

    def entry(self, path: str) -> LogEntry | None:
        """Returns what the log says of a live file beside ``actions``; None where it is not found.

        Args:
            path: as in ``actions``.

        Raises:
            FileSystemError: it is not found, and rows of the file may be deleted.
        """
        entry = self._entries.get(path)
        if entry is None and "deletionVectors" in (self.table.protocol().reader_features or ()):
            raise FileSystemError.of(self.location, f"its log does not say which rows of {path} are deleted")
        return entry

    def _file(self, row: Mapping[str, Any]) -> DeltaFile:
        entry = self.entry(row["path"])
        values = {name: row.get(name) or {} for name in ("partition", "min", "max", "null_count")}
        partition = values["partition"]
        return DeltaFile(
            row["path"],
            row["size_bytes"],
            {
                name: partition.get(name, partition.get(stored_name(self.columns.field(name))))
                for name in self.columns.partitioned_by
            },
            values["min"],
            values["max"],
            values["null_count"],
            row.get("num_records"),
            {} if entry is None else entry.tags,
            None if entry is None else entry.deletion_vector,
            entry is not None and entry.times_are_known,
        )

    def open(self, file: DeltaFile) -> pa.NativeFile:
        """Opens a file.

        Raises:
            NotSupportedError: the file is that of another table, of which this one is a clone.
        """
        return self.open_path(file.path)

    def open_path(self, path: str) -> pa.NativeFile:
        """Opens the file of a path as the log has it.

        Raises:
            NotSupportedError: the file is that of another table, of which this one is a clone.
        """
        if _ABSOLUTE.match(path):
            raise NotSupportedError(f"{self.location} has files of another table ({path}): read it with Spark.")
        # The log has paths as URLs have them.
        return self.file_system.open_input_file(unquote(path))

    def deleted_rows(self, file: DeltaFile) -> NDArray[np.int64]:
        """Returns the positions of the deleted rows of a file, ascending.

        Raises:
            NotSupportedError: its deletion vector cannot be read.
        """
        if file.deletion_vector is None:
            return np.zeros(0, dtype=np.int64)
        return deleted_positions(self.file_system, file.deletion_vector).astype(np.int64)


def _check_folder(location: str) -> None:
    """Refuses local folders such as ``a%20b``: deltalake lists the folder's files, but opens those of ``a b``."""
    local = path_of_file_url(location)
    if local is None and "://" in location:
        return
    if _ENCODED.search(os.path.realpath(local or location)):
        raise NotSupportedError(
            f"{location} needs Spark: deltalake cannot read folders with a % before two hexadecimal digits."
        )


@contextmanager
def reading(location: str) -> Iterator[None]:
    """Turns errors of other libraries into one that names the table."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (DeltaError, OSError, ValueError, pa.ArrowException) as error:
        raise FileSystemError.of(location, causes_of(error)) from error


def causes_of(error: BaseException) -> str:
    """Returns the text of an error of deltalake or Arrow, with the causes that it lists, in one line."""
    text = _COLOR.sub("", str(error)).replace("\u21b3", ":")
    return re.sub(r"\s+:", ":", " ".join(text.split()))[:_LONGEST_CAUSE].rstrip(". ") or type(error).__name__


def _as_numbers(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Values with days and microseconds instead of dates and times, which may lie outside of Python's types."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    kind = array.type
    if pa.types.is_date32(kind):
        return array.cast(pa.int32())
    if pa.types.is_timestamp(kind):
        return array.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    if pa.types.is_struct(kind) and kind.num_fields:
        parts = [_as_numbers(array.field(number)) for number in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, [field.name for field in kind], mask=array.is_null())
    return array
