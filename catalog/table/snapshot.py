"""One version of a table: its files as one table in memory, and as DataFrames of files and blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from catalog.columns.column_names import FoundColumn
from catalog.errors import TableError, TooComplexError, UseError
from catalog.files import file_table
from catalog.files.block_rows import BLOCKS_SCHEMA, block_rows, states_of
from catalog.files.file_rows import FILE_ROW, NOT_IN_FILES, bounds, bounds_of, partition_text
from catalog.files.file_table import UNKNOWN, FileTable, Floats
from catalog.files.kept_tables import KeptTables, PathFilter, VersionKey, restricted
from catalog.files.log_changes import FileChanges, changes_between, listed_files
from catalog.jvm.row_expressions import RowExpressions
from catalog.jvm.session import metadata_session
from catalog.jvm.table_state import LogExtent, TableState
from catalog.properties.checks import property_errors
from catalog.properties.index_properties import IndexConfiguration
from catalog.properties.inherited import NOTHING_INHERITED, InheritedProperties
from otree.block import BLOCKS_TAG, REVISION_TAG
from otree.cube import CubeId
from otree.revision import Revision, StoredRevisions, last_revision_id, newest_revision, stored_revisions
from otree.tree import CubeState

_KEPT_TABLES = KeptTables(file_table.MAX_KEPT_BYTES)
# A log of this size is read by one task.
_ONE_TASK_BYTES = 64_000_000
# Lists of this length follow the commits at the cost of a Spark job; a shorter one is read again in the same time, and
# follows only commits that the driver reads.
FOLLOWED_FILES = 5_000


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

    @cached_property
    def bytes(self) -> int:
        """Bytes of all live files; Delta keeps the sum beside most versions, and else adds it up."""
        return self.state.size_in_bytes()

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
        return self.rows_of(self.log_files)

    @cached_property
    def file_table(self) -> FileTable:
        """The live files as a table in memory.

        The files of a version are read in one Spark job, and kept for the next snapshot of the version. A long table
        that is kept from an earlier version follows the commits since. A snapshot with restrictions other than those
        to paths needs a further job.

        Raises:
            TooComplexError: there are more than ``file_table.MAX_FILES`` files.
        """
        if self.version < 0:
            return FileTable.empty()
        files = self._file_table_of_version()
        if files is not None:
            return restricted(files, self.restrictions, self.state.files)
        if self.restrictions:
            rows = self.rows_of(self.log_files, *self._ranges)
            files = self._read(rows, are_counted=False)
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

    def _file_table_of_version(self) -> FileTable | None:
        """All files of the version; None where there are too many."""
        files = self.kept_file_table
        if files is None and (self.extent.files or 0) <= file_table.MAX_FILES:
            files = self._followed()
            if files is None:
                files = self._listed()
            if files is None:
                rows = self.rows_in(metadata_session(self.spark, self.extent.log_bytes))
                files = self._read(rows, are_counted=self.extent.files is not None)
            if files is not None:
                self.keep(files)
        return files

    def _read(self, rows: DataFrame, *, are_counted: bool) -> FileTable | None:
        """Reads rows of ``file_rows`` with bounds; None where there are too many."""
        if not are_counted:
            rows = rows.limit(file_table.MAX_FILES + 1)
        if self.extent.log_bytes <= _ONE_TASK_BYTES:
            rows = rows.coalesce(1)
        files = FileTable.of(rows.drop("partition_values").toArrow())
        return files if len(files) <= file_table.MAX_FILES else None

    def _followed(self) -> FileTable | None:
        """The kept files of an earlier version, with the changes of the commits since; None without them."""
        former = _KEPT_TABLES.newest_before(self._version_key) if self.location else None
        if former is None:
            return None
        version, files = former
        is_short = len(files) < FOLLOWED_FILES
        if is_short and self.extent.files is None:
            return None
        changes = self.changes_since(version, (), self._ranges, only_short=is_short)
        if changes is None:
            return None
        # Every changed path is gone, also that of a new file.
        followed = files.updated(changes.gone, FileTable.of(changes.added)) if changes.gone else files
        # Another writer may have replaced commits since.
        return followed if self._has_counted_files(followed) else None

    def _listed(self) -> FileTable | None:
        """The files as Delta has listed them beside the version; None where it has not."""
        text = self.state.listed()
        rows = None if text is None else listed_files(self.spark, text, self._rows_of_actions(self._ranges))
        files = None if rows is None else FileTable.of(rows)
        return files if files is not None and self._has_counted_files(files) else None

    def _has_counted_files(self, files: FileTable) -> bool:
        """Whether files are as many, with as many bytes, as Delta has counted for the version; True without a count."""
        return self.extent.files is None or (self.extent.files, self.bytes) == (len(files), int(files.size.sum()))

    def changes_since(
        self, version: int, columns: Sequence[str], more: Sequence[str] = (), only_short: bool = False
    ) -> FileChanges | None:
        """What became of the files of an earlier version with the same metadata, in one Spark job at most.

        Args:
            version: the earlier version.
            columns: of ``file_rows``, with ``path``; all but ``partition_values`` when empty.
            more: columns of rows of the log, as SQL.
            only_short: whether no Spark job may be started.

        Returns:
            The changes; None if the commits cannot be read, or are too many.
        """
        rows_of = self._rows_of_actions(more, columns)
        return changes_between(self.spark, self.location, (version, self.version), rows_of, only_short)

    def _rows_of_actions(self, more: Sequence[str], columns: Sequence[str] = ()) -> Callable[[DataFrame], DataFrame]:
        def rows_of(actions: DataFrame) -> DataFrame:
            rows = self.rows_of(actions, *more, "changed", "file_name")
            return rows.select(*columns, "changed", "file_name") if columns else rows.drop("partition_values")

        return rows_of

    @property
    def has_spaces(self) -> bool:
        """Whether any revision has a space; otherwise no file is indexed."""
        return bool(self._dimensions)

    @cached_property
    def extent(self) -> LogExtent:
        """How large the list of files is, as far as that is known without a Spark job."""
        return self.state.extent()

    @property
    def kept_file_table(self) -> FileTable | None:
        """All files of the version, if they were read before and are still kept."""
        return _KEPT_TABLES.get(self._version_key)

    @property
    def kept_files_before(self) -> FileTable | None:
        """All files of the newest earlier version that was read before and is still kept."""
        former = _KEPT_TABLES.newest_before(self._version_key) if self.location else None
        return None if former is None else former[1]

    def keep_listed(self) -> bool:
        """Keeps all files as Delta has listed them beside the version, without a Spark job.

        Returns:
            Whether they are kept; False where Delta lists none, as in a version of many files.
        """
        if self.version < 0 or self.kept_file_table is not None:
            return self.version >= 0
        files = self._listed()
        if files is not None:
            self.keep(files)
        return files is not None

    def keep(self, files: FileTable) -> None:
        """Keeps all files of the version for other snapshots of it."""
        if self.location:
            _KEPT_TABLES.put(self._version_key, files)

    @property
    def _version_key(self) -> VersionKey:
        # Tags that cannot be read with the revisions of one configuration may be readable with those of another, and
        # the ranges of the files are those of the newest revision's columns.
        spaces = frozenset((int(number), dimensions) for number, dimensions in self._dimensions.items())
        newest = self._newest_readable
        ranges = (self.schema.json(), newest.columns if newest else ())
        metadata = self.location, self.table_id, self.partition_columns, ranges
        return VersionKey(metadata, spaces, self.version, self.committed_at)

    def rows_in(self, session: SparkSession) -> DataFrame:
        """The rows that ``FileTable`` needs of all files, computed with the settings of a session."""
        return self.rows_of(self.state.files_in(session), *self._ranges)

    @property
    def ranged_columns(self) -> tuple[str, ...]:
        """The columns, by stored name, whose ranges ``file_table`` has."""
        newest = self._newest_readable
        return newest.columns if newest is not None else ()

    @property
    def _ranges(self) -> tuple[str, str]:
        """SQL for the ranges that ``FileTable`` has."""
        return bounds(self.schema, self._newest_readable)

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
        low, high = (file_table.vectors(rows[name], len(columns))[order] for name in ("low", "high"))
        return low, high

    def rows_of(self, log_files: DataFrame, *more: str) -> DataFrame:
        """The rows of ``file_rows`` for some rows of the log, with more columns.

        Args:
            log_files: rows with the columns of Delta's AddFile.
            more: columns of these rows, as SQL.
        """
        rows = log_files.withColumn("blocks", self.blocks_of_tags())
        partition = partition_text(bool(self.partition_columns))
        return rows.selectExpr(*FILE_ROW, partition, *more)

    @property
    def _newest_readable(self) -> Revision | None:
        """The newest revision, None where there is none or it cannot be read."""
        numbers = [int(number) for number in self._dimensions]
        return self.revisions[max(numbers)] if numbers else None

    @cached_property
    def _dimensions(self) -> dict[str, int]:
        """The number of dimensions of each revision with a space, by the revision's number."""
        return {str(number): r.dimensions for number, r in self.revisions.items() if number > 0 and r.transformations}

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

    def blocks_of_tags(self) -> Column:
        """The blocks of a row of ``log_files``: NULL unless its tags can be read and name a revision with a space.

        The shim reads them with the code that skips files, so that both agree on which files are indexed.
        """
        if not self._dimensions:
            return F.lit(None).cast(BLOCKS_SCHEMA)
        numbers = ", ".join(f"'{number}', {dimensions}" for number, dimensions in self._dimensions.items())
        dimensions = F.expr(f"try_element_at(map({numbers}), tags['{REVISION_TAG}'])")
        return RowExpressions(self.spark).blocks(F.col("tags")[BLOCKS_TAG], dimensions)

    def blocks(self, revision_id: int | None = None, files: DataFrame | None = None) -> DataFrame:
        """Blocks of a revision's live files, or of all live files.

        Args:
            revision_id: the revision; all when left out.
            files: rows of ``files``; all when left out.

        Returns:
            revision BIGINT, path, deletion_vector, size, write_id, cube_id STRING, min_weight INT, max_weight INT,
            element_count BIGINT.
        """
        files = self.files if files is None else files
        if revision_id is not None:
            files = files.where(F.col("revision") == revision_id)
        return block_rows(files)

    def cube_states(self, revision: Revision, without: Sequence[str] = ()) -> dict[CubeId, CubeState]:
        """The current tree of a revision: per cube the smallest maximum weight and the sum of elements.

        Its size is that of the tree, not of the file list.

        Args:
            revision: the revision.
            without: paths of files to leave out.
        """
        files = self.file_table_if_few
        if files is not None:
            return files.cube_states(revision, without)
        blocks = self.blocks(revision.revision_id)
        if without:
            blocks = blocks.where(~F.col("path").isin(list(without)))
        return states_of(blocks, revision)
