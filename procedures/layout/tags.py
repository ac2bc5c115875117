"""Block tags, computed from the rows that were written and never from a plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias
from urllib.parse import unquote

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from catalog.errors import RowsChangedError
from catalog.history.events import FileFacts
from catalog.jvm.file_writer import DataFile
from otree.block import (
    BAND_TAG,
    BLOCKS_TAG,
    REVISION_TAG,
    REWRITES_TAG,
    TIME_RANGE_TAG,
    WRITE_TAG,
    Block,
    blocks_to_json,
)
from otree.cube import CubeId, preorder_key
from otree.cube_map import CubeMap
from otree.level import level_of
from otree.tree import CubeState, Tree
from otree.weight import MAX_WEIGHT
from procedures.layout.index_columns import IndexColumns


@dataclass(frozen=True)
class WrittenFile:
    """A file as it was written: path as in the log, bytes, and its blocks."""

    path: str
    size: int
    blocks: tuple[Block, ...]
    last_weight: int

    @property
    def rows(self) -> int:
        """Rows in the file."""
        return sum(b.element_count for b in self.blocks)


def noted_blocks(written: Sequence[DataFile], tree: Tree) -> list[WrittenFile] | None:
    """Makes the blocks of what was noted of each row while it was written.

    Args:
        written: the files, with the blocks that were counted while they were written.
        tree: thresholds by which rows were placed.

    Returns:
        The files; None where nothing was noted, since the user's session takes no statistics.

    Raises:
        RowsChangedError: a row lies outside the weights of its cube.
    """
    if any(file.blocks is None for file in written):
        return None
    ordinals = tree.ordinals()
    return [
        _file(file, [(*ordinals.cube(b.cube), b.rows, b.lowest, b.highest) for b in file.blocks or ()])
        for file in written
    ]


def read_blocks(written: Sequence[DataFile], rows: DataFrame, tree: Tree, columns: IndexColumns) -> list[WrittenFile]:
    """Reads the indexed columns of the written files back and makes their blocks.

    Args:
        written: the files.
        rows: the rows of these files.
        tree: thresholds by which they were placed.
        columns: their place in the revision.

    Raises:
        RowsChangedError: a row lies outside the weights of its cube.
    """
    ordinals = tree.ordinals()
    collected = (
        rows.groupBy(F.col("_metadata.file_name").alias("file"), columns.cube(ordinals).alias("cube"))
        .agg(F.count(F.lit(1)).alias("rows"), F.min(columns.weight).alias("low"), F.max(columns.weight).alias("high"))
        .collect()
    )
    by_file: dict[str, list[_Facts]] = defaultdict(list)
    for r in collected:
        by_file[r.file].append((*ordinals.cube(r.cube), r.rows, r.low, r.high))
    return [_file(file, by_file[unquote(file.path.rsplit("/", 1)[-1])]) for file in written]


_Facts: TypeAlias = tuple[str, int, int, int, int]
"""Text and threshold of a cube; number, smallest and largest weight of its rows in a file."""


def _file(file: DataFile, cubes: Sequence[_Facts]) -> WrittenFile:
    blocks = []
    for cube, threshold, rows, lowest, highest in cubes:
        if highest > threshold:
            raise RowsChangedError(f"A row of weight {highest} was written to cube '{cube}' of at most {threshold}.")
        blocks.append(Block(cube, lowest, threshold, rows))
    blocks.sort(key=lambda block: block.cube_id)
    last = max((highest for *_, highest in cubes), default=0)
    return WrittenFile(file.path, file.size, tuple(blocks), last)


def carry_thresholds(
    files: Sequence[WrittenFile], tree: Tree, remaining: Mapping[CubeId, CubeState]
) -> list[WrittenFile]:
    """Makes lowered thresholds known where no row was written to the cube itself.

    Readers of the format take a cube's threshold from its blocks and look below it only for weights above. A cube whose
    threshold is lower than its remaining blocks say, and that received no row, gets an empty block that says so.

    Args:
        files: what was written.
        tree: thresholds by which it was written.
        remaining: live cubes of the revision without the files that are replaced.
    """
    written = {block.cube_id for file in files for block in file.blocks}
    thresholds, states = tree.inner.by_text, CubeMap.of(tree.dimensions, remaining).by_text
    lowered = [text for text, state in states.items() if state.max_weight > thresholds.get(text, MAX_WEIGHT)]
    empty = tuple(
        Block(text, thresholds[text], thresholds[text], 0)
        for text in sorted(lowered, key=preorder_key)
        if text not in written
    )
    if not empty or not files:
        return list(files)
    return [replace(files[0], blocks=files[0].blocks + empty), *files[1:]]


@dataclass(frozen=True)
class FileHistory:
    """Where the rows of a file come from.

    Attributes:
        write_id: id of the write that placed them.
        first_time: first modification time (epoch ms) of the files that they came from.
        last_time: last one.
        rewrites: how many times optimizations have written them, on average; 0 for rows that a user writes.
    """

    write_id: str
    first_time: int
    last_time: int
    rewrites: float = 0.0

    @property
    def tags(self) -> dict[str, str]:
        """The tags that say so."""
        return {
            WRITE_TAG: self.write_id,
            TIME_RANGE_TAG: f"{self.first_time},{self.last_time}",
            **({REWRITES_TAG: f"{self.rewrites:.3f}"} if self.rewrites else {}),
        }


TAGS_OF_BLOCKS = (REVISION_TAG, BLOCKS_TAG, BAND_TAG)
"""The tags that follow from the rows of a file alone."""


def tags_of(file: WrittenFile, revision_id: int, history: FileHistory) -> dict[str, str]:
    """The tags of one file: the format's two, and ours for its weight band [from, to) and its history.

    Args:
        file: what was written.
        revision_id: its revision.
        history: where its rows come from.
    """
    first = min(b.min_weight for b in file.blocks if b.element_count)
    return {
        REVISION_TAG: str(revision_id),
        BLOCKS_TAG: blocks_to_json(file.blocks),
        BAND_TAG: f"{first},{file.last_weight + 1}",
        **history.tags,
    }


def tags_by_path(files: Sequence[WrittenFile], revision_id: int, history: FileHistory) -> dict[str, dict[str, str]]:
    """The tags of the files of one write, by their paths; see ``tags_of``."""
    return {file.path: tags_of(file, revision_id, history) for file in files}


def facts_of(files: Sequence[WrittenFile]) -> list[FileFacts]:
    """The files as the event tells of them; the blocks of a cube count as one for the level."""
    per_cube: dict[str, int] = defaultdict(int)
    for file in files:
        for block in file.blocks:
            per_cube[block.cube_id] += block.element_count
    return [
        FileFacts(
            path=file.path,
            size=file.size,
            rows=file.rows,
            block_counts=tuple(b.element_count for b in file.blocks if b.element_count),
            cube_ids=tuple(b.cube_id for b in file.blocks if b.element_count),
            level=level_of(max(per_cube[b.cube_id] for b in file.blocks)),
        )
        for file in files
    ]
