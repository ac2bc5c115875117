"""A table in a folder of this machine as its log has it: the facts that a ``TableSnapshot`` has with Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.columns.column_names import FoundColumn, find_path, find_stored
from catalog.errors import IndexUnreadableError, TableError, TooComplexError
from catalog.files.file_table import MAX_FILES, FileTable
from catalog.properties.index_properties import IndexConfiguration
from catalog.properties.inherited import InheritedProperties
from otree.errors import IndexFormatError
from otree.revision import Revision, newest_revision, stored_revisions
from sql_ext.from_log.files_of_log import file_table_of
from sql_ext.from_log.local_state import LocalState
from sql_ext.from_log.log_schema import log_schema
from sql_ext.readers.delta_files import DeltaFiles, reading
from sql_ext.readers.domain_metadata import domain_metadata
from sql_ext.readers.log_segment import LogSegment

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_CLUSTERING = "clustering"


@dataclass(frozen=True)
class LogTable(LocalState):
    """The newest version of a table.

    Attributes:
        files: the version as deltalake reads it.
        session: properties that a session would set, by name.
    """

    files: DeltaFiles
    session: Mapping[str, str]

    @classmethod
    def of(cls, folder: Path, session: Mapping[str, str]) -> LogTable:
        """Loads the newest version.

        Args:
            folder: of the table, absolute.
            session: properties that a session would set, by name.

        Raises:
            TableError: there is no table.
            NotSupportedError: the table needs Spark.
            MissingPackageError: deltalake is not installed.
        """
        return cls(folder, DeltaFiles.of(str(folder), None, {}), session)

    @property
    def version(self) -> int:
        """The version."""
        return self.files.version

    @property
    def table_id(self) -> str:
        """Delta's metadata id."""
        return str(self.files.table.metadata().id)

    @cached_property
    def configuration(self) -> Mapping[str, str]:
        """The properties of the table itself."""
        return self.files.configuration

    @cached_property
    def schema(self) -> StructType:
        """The logical schema, for lookups of columns."""
        return log_schema(self.files.columns.fields)

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """The properties in force: a table that is named by its path is in no database."""
        return InheritedProperties(session=self.session).effective(self.configuration, self.schema.names)

    @cached_property
    def revisions(self) -> Mapping[int, Revision]:
        """The readable revisions by number."""
        return stored_revisions(self.configuration).readable

    @cached_property
    def latest_revision(self) -> Revision | None:
        """The newest revision that has a space; None before the first indexing.

        Raises:
            IndexUnreadableError: the properties name one that is missing or cannot be read.
        """
        try:
            return newest_revision(self.configuration)
        except IndexFormatError as error:
            raise IndexUnreadableError(str(error)) from error

    @cached_property
    def index_configuration(self) -> IndexConfiguration | None:
        """What the properties say about the index; None without index columns.

        Raises:
            UseError: a property is wrong or does not fit the schema.
            IndexUnreadableError: see ``latest_revision``.
        """
        partition = self.files.columns.partitioned_by
        return IndexConfiguration.of(self.settings, self.schema, self.latest_revision, partition)

    @cached_property
    def file_table(self) -> FileTable:
        """The live files, with the ranges of the newest readable revision's columns.

        Raises:
            FileSystemError: the log cannot be read.
            TooComplexError: there are too many files.
            NotSupportedError: their statistics or tags need Spark.
        """
        if len(self.files.actions) > MAX_FILES:
            raise TooComplexError.too_many_files(self.location, MAX_FILES)
        spaces = {number: r for number, r in self.revisions.items() if number > 0 and r.transformations}
        ranged: list[FoundColumn | None] = []
        if spaces:
            ranged = [find_stored(self.schema, column) for column in spaces[max(spaces)].columns]
        dimensions = {number: revision.dimensions for number, revision in spaces.items()}
        is_partitioned = bool(self.files.columns.partitioned_by)
        with reading(self.location):  # texts in tags need not be valid Unicode
            return file_table_of(self.files, dimensions, ranged, is_partitioned=is_partitioned)

    @cached_property
    def log_segment(self) -> LogSegment:
        """The files of the log from which the version is read."""
        return LogSegment.of(self.files.file_system, self.version)

    @cached_property
    def clustering_columns(self) -> tuple[str, ...]:
        """The logical names of the columns of CLUSTER BY; none without it.

        Raises:
            TableError: the log does not tell them.
        """
        if _CLUSTERING not in (self.files.table.protocol().writer_features or ()):
            return ()
        try:
            text = domain_metadata(self.files.file_system, self.version, f"delta.{_CLUSTERING}")
            stored = [] if text is None else json.loads(text).get("clusteringColumns", [])
            columns = [find_path(self.schema, tuple(path)) for path in stored]
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise TableError.unreadable(self.location, f"its columns of CLUSTER BY are damaged ({error})") from error
        return tuple(column.name for column in columns if column is not None)
