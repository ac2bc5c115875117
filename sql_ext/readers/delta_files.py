"""A version of a Delta table as the library deltalake reads it: live files, deletion vectors and schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
from numpy.typing import NDArray

from catalog.errors import MissingPackageError, NotSupportedError, TableError
from sql_ext.readers.log_tags import Tags, tags_of_files
from sql_ext.readers.table_columns import TableColumns

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
_LAST_READER_WITHOUT_FEATURES = 2


@dataclass(frozen=True, eq=False)
class DeltaFile:
    """A live file.

    Attributes:
        path: as in the log.
        bytes: its size.
        partition: values of the partition columns, by name.
        minima: smallest values by stored name of a top-level column; None where unknown.
        maxima: largest values.
        nulls: numbers of NULLs.
        rows: number of rows, with deleted ones; None if unknown.
        tags: of the index; empty if unknown.
    """

    path: str
    bytes: int
    partition: Mapping[str, Any]
    minima: Mapping[str, Any]
    maxima: Mapping[str, Any]
    nulls: Mapping[str, Any]
    rows: int | None
    tags: Tags


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
            TableError: there is no table, or no such version.
            NotSupportedError: the table has features that are not implemented.
        """
        try:
            from deltalake import DeltaTable
            from deltalake.exceptions import DeltaError
        except ImportError as error:
            raise MissingPackageError.of("deltalake", "readers") from error
        try:
            table = DeltaTable(location, version=version, storage_options=dict(storage_options))
        except (DeltaError, OSError, ValueError) as error:
            raise TableError.missing(location, str(error).split("\n", 1)[0]) from error
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
        """The live files in the order of their paths."""
        actions = pa.table(self.table.get_add_actions(flatten=False))
        names = set(actions.column_names)
        tags = tags_of_files(self.file_system, self.version)
        found = []
        for row in actions.to_pylist():
            statistics = {name: row[name] or {} if name in names else {} for name in ("min", "max", "null_count")}
            found.append(
                DeltaFile(
                    row["path"],
                    row["size_bytes"],
                    (row["partition"] if "partition" in names else None) or {},
                    statistics["min"],
                    statistics["max"],
                    statistics["null_count"],
                    row.get("num_records"),
                    tags.get(row["path"], tags.get(unquote(row["path"]), {})),
                )
            )
        return sorted(found, key=lambda file: file.path)

    @cached_property
    def _kept_rows(self) -> dict[str, NDArray[np.bool_]]:
        """Which rows of a file its deletion vector keeps, by the end of the file's URL."""
        if "deletionVectors" not in (self.table.protocol().reader_features or ()):
            return {}
        vectors = pa.table(self.table.deletion_vectors())
        masks = (np.array(mask.as_py(), dtype=np.bool_) for mask in vectors["selection_vector"])
        return {unquote(path.as_py()): mask for path, mask in zip(vectors["filepath"], masks, strict=True)}

    def kept_rows(self, file: DeltaFile) -> NDArray[np.bool_] | None:
        """Returns which of the first rows of a file are live; rows beyond are live, too. None without deleted rows."""
        ending = "/" + unquote(file.path)
        return next((mask for path, mask in self._kept_rows.items() if path.endswith(ending)), None)
