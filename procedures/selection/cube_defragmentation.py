"""CubeDefragmentation: the files of all fragmented cubes, lowest level first, then lowest depth, up to a byte limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from catalog.table.snapshot import TableSnapshot
from otree.cube import symbols_per_level
from otree.level import next_level_elements
from procedures.optimizer.plan import FileGroup, InputFile, Selection, SkippedGroup
from procedures.selection.block_groups import (
    BlockGroup,
    block_groups,
    groups_of,
    indexed_revision,
    leveled_blocks,
    rises,
)
from procedures.selection.selection_strategy import MAX_FILES_PER_GROUP, SelectionSettings, Strategy, take_until

NAME = "CubeDefragmentation"


@dataclass(frozen=True)
class FileBlock:
    """The rows of one cube in a file, and the write that made the file."""

    path: str
    level: int
    cube_id: str
    write_id: str
    elements: int


def lifted(blocks: Sequence[FileBlock]) -> frozenset[str]:
    """The files among some that belong to a block group that rises when they are merged; pure.

    Whatever else was taken along would be rewritten without being lifted.

    Args:
        blocks: blocks of the files, those of fragmented cubes at least.
    """
    writes: dict[tuple[int, str], set[str]] = {}
    elements: dict[tuple[int, str], int] = {}
    for block in blocks:
        key = block.level, block.cube_id
        writes.setdefault(key, set()).add(block.write_id)
        elements[key] = elements.get(key, 0) + block.elements
    rising = {key for key in writes if len(writes[key]) >= 2 and elements[key] >= next_level_elements(key[0])}
    return frozenset(block.path for block in blocks if (block.level, block.cube_id) in rising)


class CubeDefragmentation(Strategy):
    """Merges the blocks of all fragmented cubes, as many as the byte limit takes: by level, cube depth and cube."""

    name: ClassVar[str] = NAME
    doc: ClassVar[str] = "Merges the blocks of fragmented cubes, lowest level and depth first, up to bytes_per_iter."

    def select(self, snapshot: TableSnapshot, settings: SelectionSettings) -> Selection:
        """See ``Strategy.select``."""
        revision = indexed_revision(snapshot, settings.revision_id, NAME)
        if isinstance(revision, Selection):
            return revision
        leveled = leveled_blocks(snapshot.blocks(revision.revision_id))
        groups = block_groups(leveled, symbols_per_level(revision.dimensions))
        reached = _reached(leveled, groups, settings.bytes_per_iter)
        taken = take_until(_in_order(snapshot, reached), settings.bytes_per_iter)
        kept = _lifted(reached, taken)
        if not kept:
            return _nothing(groups, settings.bytes_per_iter, revision.revision_id)
        first = kept[0].level
        cubes = len({f.level for f in kept})
        note = f"{len(kept)} files of fragmented cubes, from level {first} on" + (
            f", {cubes} levels" if cubes > 1 else ""
        )
        return Selection(FileGroup(NAME, revision.revision_id, f"FROM_LEVEL_{first}", kept, note))


def _reached(leveled: DataFrame, groups: DataFrame, bytes_per_iter: int) -> DataFrame:
    """The blocks of the groups that rise within the byte limit, as far as it reaches in each group by itself.

    Small files come first: more blocks of the cube for the same bytes.
    """
    in_file = leveled.groupBy("level", "cube_id", "path", "write_id", "size").agg(
        F.sum("element_count").alias("elements")
    )
    members = in_file.join(groups.select("level", "cube_id", "depth"), ["level", "cube_id"])
    before = Window.partitionBy("level", "cube_id").orderBy("size", "path").rowsBetween(Window.unboundedPreceding, -1)
    within = members.withColumn("before", F.coalesce(F.sum("size").over(before), F.lit(0))).where(
        F.col("before") < bytes_per_iter
    )
    rising = within.groupBy("level", "cube_id").agg(
        F.count_distinct("write_id").alias("blocks"), F.sum("elements").alias("element_count")
    )
    return within.join(rising.where(rises()).select("level", "cube_id"), ["level", "cube_id"])


def _in_order(snapshot: TableSnapshot, reached: DataFrame) -> list[InputFile]:
    """The files, group after group: by level, depth and cube of their first group, then size and path."""
    place: Column = F.min(F.struct("level", "depth", "cube_id")).alias("place")
    of_file = reached.groupBy("path").agg(place)
    rows = snapshot.files.drop("blocks", "write_id").join(of_file, "path").orderBy("place", "size", "path")
    return [
        InputFile(r.path, r.deletion_vector, r.size, r.rows, r.place["level"], r.first_time, r.last_time)
        for r in rows.limit(MAX_FILES_PER_GROUP).collect()
    ]


def _lifted(reached: DataFrame, taken: Sequence[InputFile]) -> tuple[InputFile, ...]:
    if not taken:
        return ()
    paths = [f.path for f in taken]
    rows = reached.where(F.col("path").isin(paths)).select("path", "level", "cube_id", "write_id", "elements")
    found = lifted([FileBlock(*row) for row in rows.collect()])
    return tuple(f for f in taken if f.path in found)


def _nothing(groups: DataFrame, bytes_per_iter: int, revision_id: int) -> Selection:
    stuck: list[BlockGroup] = groups_of(groups.orderBy("level", "depth", "cube_id"), 1)
    note = f"{NAME}: revision {revision_id} has no fragmented cubes"
    if not stuck:
        return Selection(note=note)
    first = stuck[0]
    why = (
        f"no fragmented cube reaches the next level within bytes_per_iter = {bytes_per_iter}; the first is cube "
        f"{first.cube_id or 'root'} at level {first.level} with {first.blocks} blocks of {first.element_count} rows"
    )
    return Selection(None, (SkippedGroup(NAME, "BYTES_PER_ITER_TOO_SMALL", 0, 0, why),), note)
