"""CubeDefragmentation: the files of all fragmented cubes, lowest level first, then lowest depth, up to a byte limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from catalog.counted_nouns import counted
from catalog.files.file_table import FileTable
from catalog.table.snapshot import TableSnapshot
from otree.cube import symbols_per_level
from otree.level import next_level_elements
from otree.revision import Revision
from procedures.groups.block_groups import (
    BlockGroup,
    indexed_revision,
)
from procedures.groups.plan import FileGroup, InputFile, Selection, SkippedGroup
from procedures.groups.selection_strategy import MAX_FILES_PER_GROUP, SelectionSettings, Strategy, take_until
from procedures.selection.file_positions import LeveledBlocks, input_file

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
        limit = settings.bytes_per_iter
        fragmented = _fragmented(snapshot.file_table, revision, limit)
        taken = take_until(fragmented.files, limit)
        liftable = lifted(fragmented.blocks_of([f.path for f in taken])) if taken else frozenset()
        kept = tuple(f for f in taken if f.path in liftable)
        if not kept:
            return _nothing(fragmented.first_group(), limit, revision.revision_id)
        first = kept[0].level
        cubes = len({f.level for f in kept})
        note = f"{counted(len(kept), 'file')} of fragmented cubes, from level {first} on" + (
            f", {cubes} levels" if cubes > 1 else ""
        )
        return Selection(FileGroup(NAME, revision.revision_id, f"FROM_LEVEL_{first}", kept, note))


@dataclass(frozen=True)
class _Fragmented:
    """The files of fragmented cubes that rise within the byte limit, each cube by itself.

    Attributes:
        files: by level, depth and cube of their first group, then size and path.
        blocks_of: the blocks of these cubes in the files of some paths.
        first_group: the first group that would rise without a limit, None when there is none.
    """

    files: Sequence[InputFile]
    blocks_of: Callable[[Sequence[str]], Sequence[FileBlock]]
    first_group: Callable[[], BlockGroup | None]


def _fragmented(files: FileTable, revision: Revision, bytes_per_iter: int) -> _Fragmented:
    leveled = LeveledBlocks.of(files, revision.revision_id, symbols_per_level(revision.dimensions))
    reached = leveled.within_bytes(bytes_per_iter)
    place = np.empty(len(reached.level), np.int64)
    place[np.lexsort((reached.cube, reached.depth, reached.level))] = np.arange(len(reached.level))
    of_block = place[reached.group]
    first = np.full(len(files), np.iinfo(np.int64).max)
    np.minimum.at(first, reached.blocks.file, of_block)
    level_of_place = np.empty(len(place), np.int64)
    level_of_place[place] = reached.level
    order = np.lexsort((np.arange(len(files)), files.size, first))
    in_order = [int(p) for p in order if first[p] < len(place)][:MAX_FILES_PER_GROUP]

    def blocks_of(paths: Sequence[str]) -> list[FileBlock]:
        blocks, group = reached.blocks, reached.group
        wanted = np.flatnonzero(files.with_paths(paths)[blocks.file])
        return [
            FileBlock(
                str(files.path[blocks.file[i]]),
                int(reached.level[group[i]]),
                blocks.cube_ids[int(blocks.cube[i])],
                str(files.write[blocks.file[i]]),
                int(blocks.elements[i]),
            )
            for i in wanted
        ]

    def first_group() -> BlockGroup | None:
        rising = leveled.rising_groups(by_blocks=False)
        return leveled.block_group(rising[0]) if rising else None

    return _Fragmented([input_file(files, p, level_of_place[first[p]]) for p in in_order], blocks_of, first_group)


def _nothing(first: BlockGroup | None, bytes_per_iter: int, revision_id: int) -> Selection:
    note = f"{NAME}: revision {revision_id} has no fragmented cubes"
    if first is None:
        return Selection(note=note)
    why = (
        f"no fragmented cube reaches the next level within bytes_per_iter = {bytes_per_iter}; the first is cube "
        f"{first.cube_id or 'root'} at level {first.level} with {counted(first.blocks, 'block')} of "
        f"{counted(first.element_count, 'row')}"
    )
    return Selection(None, (SkippedGroup(NAME, "BYTES_PER_ITER_TOO_SMALL", 0, 0, why),), note)
