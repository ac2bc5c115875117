"""One version of a table: its files as one table in memory, and as DataFrames of files and blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from catalog.columns.column_names import FoundColumn, find_stored
from catalog.errors import TableError, TooComplexError, UseError
from catalog.files import arrays, file_table
from catalog.files.arrays import UNKNOWN, Floats
from catalog.files.block_rows import block_rows, states_of
from catalog.files.file_rows import NOT_IN_FILES, LogRowReader, bounds_of
from catalog.files.file_table import FileTable
from catalog.files.version_files import PathFilter, VersionFiles, restricted
from catalog.jvm.table_state import LogExtent, TableState
from catalog.properties.checks import property_errors
from catalog.properties.index_properties import IndexConfiguration
from catalog.properties.inherited import NOTHING_INHERITED, InheritedProperties
from otree.cube_map import CubeMap
from otree.revision import Revision, StoredRevisions, last_revision_id, newest_revision, stored_revisions
from otree.tree import CubeState


class FilesTotal(NamedTuple):
    """A number of files, and their bytes."""

    files: int
    bytes: int


@dataclass(frozen=True)
class TableSnapshot:
    """A version of a Delta table.

    Attributes:
        version: Delta version.
        table_id: Delta's metadata id.
        configuration: properties of the table itself.
        schema: logical schema.
        partition_columns: logical names.
        retention_hours: how long the table promises to keep deleted files.
        state: the shim's table state.
        location: root of the table, as a URI or path.
        committed_at: modification time of the version's commit file, in epoch milliseconds.
        inherited: properties of its database and of the session.
        restrictions: each takes the rows of ``log_files`` and leaves out files that are not to be looked at. It
            decides for each file by itself.
    """

    spark: SparkSession
    version: int
    table_id: str
    configuration: dict[str, str]
    schema: StructType
    partition_columns: tuple[str, ...]
    retention_hours: float
    state: TableState
    location: str = ""
    committed_at: int = 0
    inherited: InheritedProperties = NOTHING_INHERITED
    restrictions: tuple[Callable[[DataFrame], DataFrame], ...] = ()

    @classmethod
    def of(cls, state: TableState, location: str = "") -> TableSnapshot:
        """Makes a snapshot of a table's state, in the session of the state.

        Raises:
            TableError: the table was dropped meanwhile.
        """
        facts = state.facts()
        # A table that is being made has no version yet, and has a schema.
        if facts.schema is None:
            raise TableError.gone()
        return cls(
            state.spark,
            facts.version,
            facts.table_id,
            facts.configuration,
            facts.schema,
            facts.partition_columns,
            facts.retention_hours,
            state,
            location,
            facts.committed_at,
            InheritedProperties(facts.database_properties, facts.session_properties),
        )

    @cached_property
    def settings(self) -> dict[str, str]:
        """The properties in force: those of the table, and those that it inherits."""
        return self.inherited.effective(self.configuration, self.schema.names)

    @cached_property
    def log_files(self) -> DataFrame:
        """One row per live file, with the columns of Delta's AddFile; made when asked for, since that takes a while."""
        files = self.state.files()
        for restrict in self.restrictions:
            files = restrict(files)
        return files

    def only(self, restrict: Callable[[DataFrame], DataFrame]) -> TableSnapshot:
        """The same version with fewer files, as far as files and blocks are asked for.

        Args:
            restrict: gets the rows of ``log_files``, and returns those that count.
        """
        return replace(self, restrictions=(*self.restrictions, restrict))

    def without(self, paths: Sequence[str]) -> TableSnapshot:
        """The same version without some files; see ``only``."""
        return self.only(PathFilter(frozenset(paths), keeps=False)) if paths else self

    def only_paths(self, paths: Sequence[str]) -> TableSnapshot:
        """The same version with the files of some paths; see ``only``."""
        return self.only(PathFilter(frozenset(paths), keeps=True))

    @property
    def whole(self) -> TableSnapshot:
        """The same version with all its files."""
        return replace(self, restrictions=()) if self.restrictions else self

    @cached_property
    def stored_revisions(self) -> StoredRevisions:
        """The revisions that the table's properties hold, those that cannot be read among them."""
        return stored_revisions(self.configuration)

    @property
    def revisions(self) -> Mapping[int, Revision]:
        """Readable revisions by id; files of any other revision count as unindexed."""
        return self.stored_revisions.readable

    @property
    def latest_revision(self) -> Revision | None:
        """The newest revision that has a space (not the staging one), or None before the first indexing.

        Raises:
            IndexFormatError: the properties name one that is missing or cannot be read.
        """
        return newest_revision(self.configuration, self.stored_revisions)

    def has_columns_of(self, revision: Revision) -> bool:
        """Whether the table still has all columns of a revision: other index columns allow to drop the former ones."""
        return all(find_stored(self.schema, column) is not None for column in revision.columns)

    @cached_property
    def revision_ids_in_use(self) -> frozenset[int]:
        """Every number that a property or a file's tag gives to a revision.

        A new revision takes none of them: files that carry the number of a lost revision would be read as its files.
        """
        if self.version < 0:
            return self.stored_revisions.numbers
        files = self.file_table_if_few
        if files is not None:
            named = set(files.tagged_revision[files.tagged_revision != UNKNOWN].tolist())
        else:
            tagged = self.file_rows.where("tagged_revision IS NOT NULL").select("tagged_revision").distinct()
            named = {row.tagged_revision for row in tagged.collect()}
        return self.stored_revisions.numbers | named | {last_revision_id(self.configuration) or 0}

    @cached_property
    def index_configuration(self) -> IndexConfiguration | None:
        """What the table's properties and its newest revision say about its index; None without index columns.

        Raises:
            UseError: a property is wrong or does not fit the schema; see ``IndexConfiguration.of``.
            IndexFormatError: the properties name a newest revision that is missing or cannot be read.
        """
        return IndexConfiguration.of(self.settings, self.schema, self.latest_revision, self.partition_columns)

    @property
    def property_errors(self) -> list[UseError]:
        """What is wrong with the table's properties below ``use.``."""
        return property_errors(self.settings, self.schema, self.partition_columns)

    @property
    def bytes(self) -> int:
        """Bytes of all live files; Delta keeps the sum beside most versions, and else adds it up."""
        return self.version_files.bytes

    @cached_property
    def reader(self) -> LogRowReader:
        """Reads rows of the log with the schema and the revisions of the version."""
        return LogRowReader(self.spark, self.schema, self.partition_columns, self.revisions)

    @cached_property
    def version_files(self) -> VersionFiles:
        """All files of the version, whatever the restrictions."""
        return VersionFiles(self.state, self.location, self.table_id, self.version, self.committed_at, self.reader)

    @cached_property
    def files(self) -> DataFrame:
        """Live files.

        Returns:
            path STRING, deletion_vector STRING ('' = none), size BIGINT, modification_time BIGINT (epoch ms),
            rows BIGINT (deletion vector subtracted; NULL without statistics), revision BIGINT (0 = unindexed),
            blocks (NULL = unindexed), write_id STRING, first_time and last_time BIGINT (epoch ms), outdated BOOLEAN
            (tagged as before version 0.6 of the format, which nobody reads any more), unreadable BOOLEAN (tagged, and
            unindexed since the tags or their revision cannot be read), partition_values MAP.
        """
        return self.file_rows.drop(*NOT_IN_FILES)

    @property
    def file_rows(self) -> DataFrame:
        """The rows of ``files`` with more columns.

        Returns:
            As ``files``, and band_first and band_end BIGINT (first weight of the band that the file was written for,
            and first weight above it, NULL without one), rewrites DOUBLE (how many times optimizations have written
            the file's rows, on average), tagged_revision BIGINT (the revision that the tags name, readable or not),
            deleted BIGINT (rows that a deletion vector hides), tier BIGINT (size tier that clustering has lifted the
            file to, 0 without one) and partition STRING (equal for files of one partition).
        """
        return self.reader.rows_of(self.log_files)

    @cached_property
    def file_table(self) -> FileTable:
        """The live files as a table in memory.

        See ``VersionFiles``. A snapshot with restrictions other than those to paths needs a further Spark job.

        Raises:
            TooComplexError: there are more than ``file_table.MAX_FILES`` files.
        """
        if self.version < 0:
            return FileTable.empty()
        files = self.version_files.table()
        if files is not None:
            return restricted(files, self.restrictions, self.state.files)
        if self.restrictions:
            files = self.version_files.read(self.reader.table_rows_of(self.log_files))
        if files is None:
            raise TooComplexError.too_many_files(self.location, file_table.MAX_FILES)
        return files

    @cached_property
    def file_table_if_few(self) -> FileTable | None:
        """``file_table``, or None where there are too many files, for what writes need to know of the whole table."""
        try:
            return self.file_table
        except TooComplexError:
            return None

    @property
    def has_spaces(self) -> bool:
        """Whether any revision has a space; otherwise no file is indexed."""
        return bool(self.reader.dimensions)

    @property
    def extent(self) -> LogExtent:
        """How large the list of files is, as far as that is known without a Spark job."""
        return self.version_files.extent

    def ranges_of(
        self, paths: Sequence[str] | NDArray[np.object_], columns: Sequence[FoundColumn | None]
    ) -> tuple[Floats, Floats]:
        """The ranges of any columns in files of this version, from the statistics in the log; one Spark job.

        Args:
            paths: of the files.
            columns: of the table; None for one that it no longer has. At least one.

        Returns:
            The smallest and the largest value of each column in each file, NaN where it is not known. Shape (paths,
            columns).
        """
        rows = self.log_files.selectExpr("path", *bounds_of(columns)).toArrow()
        position = {path: number for number, path in enumerate(rows["path"].to_pylist())}
        order = [position[path] for path in paths]
        low, high = (arrays.vectors(rows[name], len(columns))[order] for name in ("low", "high"))
        return low, high

    @property
    def total(self) -> FilesTotal:
        """How many live files there are, and their bytes; no Spark job if Delta keeps the number beside the version."""
        if not self.restrictions and self.version >= 0 and self.extent.files is not None:
            return FilesTotal(self.extent.files, self.bytes)
        totals = self.log_files.agg(F.count(F.lit(1)), F.coalesce(F.sum("size"), F.lit(0)))
        return FilesTotal(*totals.collect()[0])

    @property
    def unindexed_total(self) -> FilesTotal:
        """How many files are unindexed, and their bytes; no Spark job for a version that was read before."""
        if not self.has_spaces and not self.restrictions and self.version >= 0 and self.extent.files is not None:
            return self.total
        files = self.file_table_if_few
        if files is not None:
            sizes = files.size[files.revision == 0]
            return FilesTotal(len(sizes), int(sizes.sum()))
        totals = self.files.where("revision = 0").agg(F.count(F.lit(1)), F.coalesce(F.sum("size"), F.lit(0)))
        return FilesTotal(*totals.collect()[0])

    def blocks(self) -> DataFrame:
        """Blocks of all live files.

        Returns:
            revision BIGINT, path, deletion_vector, size, write_id, cube_id STRING, min_weight INT, max_weight INT,
            element_count BIGINT.
        """
        return block_rows(self.files)

    def cube_states(
        self, revision: Revision, without: Sequence[str] = (), *, largest: bool = False
    ) -> CubeMap[CubeState]:
        """The current tree of a revision: per cube the smallest maximum weight and the sum of elements.

        Its size is that of the tree, not of the file list.

        Args:
            revision: the revision.
            without: paths of files to leave out.
            largest: each cube has the largest maximum weight of its blocks in place of the smallest.
        """
        files = self.file_table_if_few
        if files is not None:
            return files.cube_states(revision, without, largest=largest)
        blocks = block_rows(self.files.where(F.col("revision") == revision.revision_id))
        if without:
            blocks = blocks.where(~F.col("path").isin(list(without)))
        return states_of(blocks, revision, largest=largest)
