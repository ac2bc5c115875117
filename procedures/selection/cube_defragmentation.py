"""CubeDefragmentation: the files of all fragmented cubes, lowest level first, then lowest depth, up to a byte limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from catalog.counted_nouns import counted
from catalog.files.arrays import Flags, Integers
from catalog.files.file_table import FileTable
from otree.cube import symbols_per_level
from otree.revision import Revision
from procedures.groups.block_groups import groups_in_revision
from procedures.groups.cutter import first_piece
from procedures.groups.group import InputFile, Relayout, SkippedGroup
from procedures.groups.strategy import Finding, SelectionSettings, Strategy, TableFiles
from procedures.selection.file_positions import LeveledBlocks

NAME = "CubeDefragmentation"


class CubeDefragmentation(Strategy):
    """Merges the blocks of all fragmented cubes, as many as the byte limit takes: by level, cube depth and cube."""

    name: ClassVar[str] = NAME
    doc: ClassVar[str] = "Merges the blocks of fragmented cubes, lowest level and depth first, up to bytes_per_iter."

    def groups(self, table: TableFiles, settings: SelectionSettings) -> Iterator[Finding]:
        """See ``Strategy.groups``."""
        return groups_in_revision(table, settings, NAME, _first)


def _first(files: FileTable, revision: Revision, bytes_per_iter: int) -> Iterator[Finding]:
    leveled = LeveledBlocks.of(files, revision.revision_id, symbols_per_level(revision.dimensions))
    reached = leveled.within_bytes(bytes_per_iter)
    place = np.empty(len(reached.level), np.int64)
    place[np.lexsort((reached.cube, reached.depth, reached.level))] = np.arange(len(reached.level))
    first = np.full(len(files), len(place))
    np.minimum.at(first, reached.blocks.file, place[reached.group])
    order = np.lexsort((np.arange(len(files)), files.size, first))
    order = order[first[order] < len(place)]
    taken = order[: first_piece(files.size[order], bytes_per_iter)]
    # Whatever is not lifted with the others would be rewritten in vain.
    kept = taken[lifted(reached, taken)[taken]]
    if not len(kept):
        yield from _nothing(leveled, bytes_per_iter, revision.revision_id)
        return
    inputs = InputFile.of(files, kept)
    levels = len({file.level for file in inputs})
    note = f"{counted(len(inputs), 'file')} of fragmented cubes, from level {inputs[0].level} on" + (
        f", {levels} levels" if levels > 1 else ""
    )
    yield Relayout(NAME, revision.revision_id, f"FROM_LEVEL_{inputs[0].level}", inputs, note)


def lifted(blocks: LeveledBlocks, taken: Integers) -> Flags:
    """Whether each file holds blocks of a group that rises when only some files are merged; pure.

    Args:
        blocks: the blocks of fragmented cubes.
        taken: positions of the files that would be merged.
    """
    is_taken = np.zeros(len(blocks.files), np.bool_)
    is_taken[taken] = True
    among = blocks.where(is_taken[blocks.blocks.file])
    flags = np.zeros(len(blocks.files), np.bool_)
    flags[among.blocks.file[among.rises[among.group]]] = True
    return flags


def _nothing(leveled: LeveledBlocks, bytes_per_iter: int, revision_id: int) -> Iterator[Finding]:
    rising = leveled.rising_groups(by_blocks=False)
    if rising:
        first = leveled.block_group(rising[0])
        why = (
            f"no fragmented cube reaches the next level within bytes_per_iter = {bytes_per_iter}; the first is cube "
            f"{first.cube_id or 'root'} at level {first.level} with {counted(first.blocks, 'block')} of "
            f"{counted(first.element_count, 'row')}"
        )
        yield SkippedGroup(NAME, "BYTES_PER_ITER_TOO_SMALL", 0, 0, why)
    yield f"{NAME}: revision {revision_id} has no fragmented cubes"
