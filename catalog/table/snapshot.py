"""One version of a table as DataFrames of its files and blocks; nothing here collects all files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from catalog.errors import TableError, UseError
from catalog.jvm.row_expressions import RowExpressions
from catalog.jvm.table_state import TableState
from catalog.properties.checks import property_errors
from catalog.properties.index_properties import IndexConfiguration
from otree.block import BLOCKS_TAG, REVISION_TAG, TIME_RANGE_TAG, WRITE_TAG
from otree.cube import CubeId
from otree.revision import Revision, StoredRevisions, last_revision_id, newest_revision, stored_revisions
from otree.tree import CubeState

BLOCKS_SCHEMA = "array<struct<cubeId:string,minWeight:int,maxWeight:int,elementCount:bigint>>"


@dataclass(frozen=True)
class TableSnapshot:
    """A version of a Delta table.

    Attributes:
        version: Delta version.
        table_id: Delta's metadata id.
        configuration: table properties.
        schema: logical schema.
        partition_columns: logical names.
        retention_hours: how long the table promises to keep deleted files.
        state: the shim's table state.
        location: root of the table, as a URI or path.
        restrictions: each takes the rows of ``log_files`` and leaves out files that are not to be looked at.
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
        )

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
        gone = list(paths)
        return self.only(lambda files: files.where(~F.col("path").isin(gone))) if gone else self

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
        tag = F.col("tags")[REVISION_TAG].try_cast("bigint")
        tagged = self.log_files.where(F.col("tags")[BLOCKS_TAG].isNotNull()).select(tag.alias("revision")).distinct()
        named = {r.revision for r in tagged.where("revision IS NOT NULL").collect()}
        return self.stored_revisions.numbers | named | {last_revision_id(self.configuration) or 0}

    @cached_property
    def index_configuration(self) -> IndexConfiguration | None:
        """What the table's properties and its newest revision say about its index; None without index columns.

        Raises:
            UseError: a property is wrong or does not fit the schema; see ``IndexConfiguration.of``.
            IndexFormatError: the properties name a newest revision that is missing or cannot be read.
        """
        return IndexConfiguration.of(self.configuration, self.schema, self.latest_revision, self.partition_columns)

    @property
    def property_errors(self) -> list[UseError]:
        """What is wrong with the table's properties below ``use.``."""
        return property_errors(self.configuration, self.schema, self.partition_columns)

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
        tag = F.col("tags")
        blocks = self.blocks_of_tags()
        revision = tag[REVISION_TAG].try_cast("bigint")
        vector = F.col("deletionVector")
        identity = F.concat(
            vector["storageType"],
            vector["pathOrInlineDv"],
            F.coalesce(F.concat(F.lit("@"), vector["offset"].cast("string")), F.lit("")),
        )
        rows = F.get_json_object("stats", "$.numRecords").try_cast("bigint")
        times = F.split(tag[TIME_RANGE_TAG], ",")
        indexed = blocks.isNotNull()
        outdated = tag["cube"].isNotNull() & tag[BLOCKS_TAG].isNull()
        says_indexed = tag[BLOCKS_TAG].isNotNull() | (F.coalesce(tag[REVISION_TAG], F.lit("0")) != "0")
        return self.log_files.select(
            "path",
            F.coalesce(identity, F.lit("")).alias("deletion_vector"),
            "size",
            F.col("modificationTime").alias("modification_time"),
            (rows - F.coalesce(vector["cardinality"], F.lit(0))).alias("rows"),
            F.when(indexed, revision).otherwise(F.lit(0)).alias("revision"),
            blocks.alias("blocks"),
            # Files of writers that leave no write id count as a write each.
            F.coalesce(tag[WRITE_TAG], F.col("path")).alias("write_id"),
            F.coalesce(F.try_element_at(times, F.lit(1)).try_cast("bigint"), "modificationTime").alias("first_time"),
            F.coalesce(F.try_element_at(times, F.lit(2)).try_cast("bigint"), "modificationTime").alias("last_time"),
            outdated.alias("outdated"),
            (says_indexed & ~indexed & ~outdated).alias("unreadable"),
            F.col("partitionValues").alias("partition_values"),
        )

    def blocks_of_tags(self) -> Column:
        """The blocks of a row of ``log_files``: NULL unless its tags can be read and name a revision with a space.

        The shim reads them with the code that skips files, so that both agree on which files are indexed.
        """
        spaces = {str(number): r.dimensions for number, r in self.revisions.items() if number > 0 and r.transformations}
        if not spaces:
            return F.lit(None).cast(BLOCKS_SCHEMA)
        numbers, sizes = F.array(*map(F.lit, spaces)), F.array(*map(F.lit, spaces.values()))
        dimensions = F.try_element_at(F.map_from_arrays(numbers, sizes), F.col("tags")[REVISION_TAG])
        return RowExpressions(self.spark).blocks(F.col("tags")[BLOCKS_TAG], dimensions)

    def blocks(self, revision_id: int | None = None) -> DataFrame:
        """Blocks of a revision's live files, or of all live files.

        Returns:
            revision BIGINT, path, deletion_vector, size, write_id, cube_id STRING, min_weight INT, max_weight INT,
            element_count BIGINT.
        """
        files = self.files if revision_id is None else self.files.where(F.col("revision") == revision_id)
        return files.select(
            "revision", "path", "deletion_vector", "size", "write_id", F.explode("blocks").alias("block")
        ).select(
            "revision",
            "path",
            "deletion_vector",
            "size",
            "write_id",
            F.col("block.cubeId").alias("cube_id"),
            F.col("block.minWeight").alias("min_weight"),
            F.col("block.maxWeight").alias("max_weight"),
            F.col("block.elementCount").alias("element_count"),
        )

    def cube_states(self, revision: Revision, without: Sequence[str] = ()) -> dict[CubeId, CubeState]:
        """The current tree of a revision: per cube the smallest maximum weight and the sum of elements.

        Its size is that of the tree, not of the file list.

        Args:
            revision: the revision.
            without: paths of files to leave out.
        """
        blocks = self.blocks(revision.revision_id)
        if without:
            blocks = blocks.where(~F.col("path").isin(list(without)))
        rows = (
            blocks.groupBy("cube_id")
            .agg(F.min("max_weight").alias("max_weight"), F.sum("element_count").alias("elements"))
            .collect()
        )
        return {CubeId.parse(r.cube_id, revision.dimensions): CubeState(r.max_weight, r.elements) for r in rows}


def file_levels(blocks: DataFrame) -> DataFrame:
    """The level of each file, by its largest block; the blocks of one cube and one write count as one block.

    Args:
        blocks: as ``TableSnapshot.blocks`` gives them.

    Returns:
        path STRING, level INT; no row for a file whose blocks are all empty.
    """
    blocks = blocks.where("element_count > 0")
    per_write = blocks.groupBy("revision", "cube_id", "write_id").agg(F.sum("element_count").alias("of_write"))
    return (
        blocks.join(per_write, ["revision", "cube_id", "write_id"])
        .groupBy("path")
        .agg(level_column(F.max("of_write")).alias("level"))
    )


def level_column(element_count: Column) -> Column:
    """floor(log10(count)) in exact integer arithmetic: the number of decimal digits less one."""
    return F.greatest(F.length(element_count.cast("string")) - 1, F.lit(0))
