"""LeveledCompaction: the lowest level's most fragmented cube first, so that each iteration lifts it by a level.

Where no cube is fragmented, it splits overfull cubes: the files of a cube with far more rows than desired are written
anew, in a tree that has grown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from catalog.counted_nouns import agreeing, counted
from catalog.files.arrays import group_numbers, sums
from catalog.files.file_table import FileTable
from otree.cube import symbols_per_level
from otree.level import next_level_elements
from otree.overfull import OVERFULL_FACTOR, can_be_split
from otree.revision import Revision
from procedures.groups.block_groups import GROUPS_CONSIDERED, groups_in_revision, limit_note
from procedures.groups.cutter import MAX_FILES_PER_GROUP, Limits, first_piece, pieces
from procedures.groups.group import InputFile, Relayout, SkippedGroup
from procedures.groups.strategy import Finding, SelectionSettings, Strategy, TableFiles
from procedures.selection.file_positions import LeveledBlocks

NAME = "LeveledCompaction"


class LeveledCompaction(Strategy):
    """Merges the blocks of the first fragmented cube, by level, then cube depth, then number of blocks.

    Where there is none, it rewrites the files of the first cube that holds more than twice the desired rows.
    """

    name: ClassVar[str] = NAME
    aliases: ClassVar[tuple[str, ...]] = ("LeveledCompactionSelection",)
    doc: ClassVar[str] = "Merges the blocks of the first fragmented cube: lowest level, then lowest depth."

    def groups(self, table: TableFiles, settings: SelectionSettings) -> Iterator[Finding]:
        """See ``Strategy.groups``."""
        return groups_in_revision(table, settings, NAME, _first)


def _first(files: FileTable, revision: Revision, bytes_per_iter: int) -> Iterator[Finding]:
    """The first block group that rises within the byte limit, or else the first overfull cube."""
    leveled = LeveledBlocks.of(files, revision.revision_id, symbols_per_level(revision.dimensions))
    rising = leveled.rising_groups()
    for number in rising[:GROUPS_CONSIDERED]:
        group = leveled.block_group(number)
        positions, elements = leveled.files_of(number)
        end = first_piece(files.size[positions], bytes_per_iter)
        taken, rows = positions[:end], int(elements[:end].sum())
        writes = len(np.unique(files.write[taken]))
        cube = group.cube_id or "root"
        # Rows of a single write are too few: their files would be of the next level.
        if rows >= next_level_elements(group.level):
            note = (
                f"{group.blocks} blocks of cube {cube} with {group.element_count} rows in files of level "
                f"{group.level}; {counted(end, 'file')} taken"
            )
            reason = f"LEVEL_{group.level}_CUBE_{cube}"
            yield Relayout(NAME, revision.revision_id, reason, InputFile.of(files, taken), note)
            return
        note = (
            f"cube {cube} at level {group.level}: {counted(end, 'file')} within bytes_per_iter = "
            f"{bytes_per_iter} {agreeing(end, 'holds', 'hold')} {counted(rows, 'row')} of "
            f"{counted(writes, 'write')}, too few for a block of {next_level_elements(group.level)}"
        )
        yield SkippedGroup(NAME, "BYTES_PER_ITER_TOO_SMALL", end, int(files.size[taken].sum()), note)
    overfull = overfull_group(files, revision, NAME, bytes_per_iter)
    if overfull is not None:
        yield overfull
    if not isinstance(overfull, Relayout):
        none = f"{NAME}: revision {revision.revision_id} has no fragmented cubes"
        yield none + limit_note(NAME, len(rising))


def overfull_cube(files: FileTable, revision: Revision) -> tuple[str, int] | None:
    """The first overfull cube that a rewrite is expected to relieve: least depth first, then most rows.

    Returns:
        Its id and its rows, None when there is no such cube.
    """
    desired, width = revision.desired_cube_size, symbols_per_level(revision.dimensions)
    candidates = [
        (len(cube_id) // width, -elements, cube_id)
        for cube_id, elements, largest_write in _overfull_cubes(files, revision)
        if can_be_split(elements, largest_write, desired)
    ]
    if not candidates:
        return None
    _, negated, cube_id = min(candidates)
    return cube_id, -negated


def _overfull_cubes(files: FileTable, revision: Revision) -> list[tuple[str, int, int]]:
    """The overfull cubes: id, rows, and rows of the write that has the most of them."""
    blocks = files.blocks_of(revision.revision_id)
    group, groups = group_numbers(blocks.cube, files.write[blocks.file])
    of_write = sums(group, groups, blocks.elements)
    cube_of = np.zeros(groups, np.int64)
    cube_of[group] = blocks.cube
    elements = sums(cube_of, len(blocks.cube_ids), of_write)
    largest = np.zeros(len(blocks.cube_ids), np.int64)
    np.maximum.at(largest, cube_of, of_write)
    overfull = np.flatnonzero(elements > OVERFULL_FACTOR * revision.desired_cube_size)
    return [(blocks.cube_ids[cube], int(elements[cube]), int(largest[cube])) for cube in overfull]


def overfull_group(
    files: FileTable, revision: Revision, strategy: str, bytes_per_iter: int
) -> Relayout | SkippedGroup | None:
    """The files of the first overfull cube, those of the smallest writes first; None without such a cube.

    Whole writes are taken until their bytes cross the limit, the crossing one included. The files of two writes or more
    become those of one. So the number of writes falls with each group, and a run ends.

    Args:
        files: the files that may be chosen.
        revision: the revision whose cubes are looked at.
        strategy: name of the strategy that asks.
        bytes_per_iter: bytes after which no further write is taken.
    """
    found = overfull_cube(files, revision)
    if found is None:
        return None
    cube_id, elements = found
    blocks = files.blocks_of(revision.revision_id)
    holding = np.unique(blocks.file[blocks.cube == blocks.cube_ids.index(cube_id)])
    # Numbers of writes are in the order of their ids.
    numbers, of_file = np.unique(files.write[holding], return_inverse=True)
    size = sums(of_file, len(numbers), files.size[holding])
    count = np.bincount(of_file, minlength=len(numbers))
    order = np.argsort(size, kind="stable")
    _, end = next(pieces(size[order], Limits(bytes_per_iter), crossing=True, files=count[order]))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    by_write = holding[np.argsort(rank[of_file], kind="stable")]
    taken = by_write[: int(count[order[:end]].sum())][:MAX_FILES_PER_GROUP]
    cube = cube_id or "root"
    note = (
        f"cube {cube} holds {counted(elements, 'row')}, more than {OVERFULL_FACTOR} times the desired "
        f"{revision.desired_cube_size:,}; {counted(len(taken), 'file')} of {counted(end, 'write')} taken"
    )
    if end < 2:
        return SkippedGroup(strategy, "BYTES_PER_ITER_TOO_SMALL", len(taken), int(files.size[taken].sum()), note)
    return Relayout(strategy, revision.revision_id, f"OVERFULL_CUBE_{cube}", InputFile.of(files, taken), note)
