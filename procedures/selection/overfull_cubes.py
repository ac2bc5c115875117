"""Overfull cubes: the files of a cube with far more rows than desired are written anew, in a tree that has grown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from catalog.counted_nouns import counted
from catalog.files.file_table import FileTable, group_numbers, sums
from catalog.table.snapshot import TableSnapshot
from otree.cube import symbols_per_level
from otree.overfull import OVERFULL_FACTOR, can_be_split
from otree.revision import Revision
from procedures.groups.plan import FileGroup, InputFile, Selection, SkippedGroup
from procedures.groups.selection_strategy import MAX_FILES_PER_GROUP
from procedures.selection.file_positions import input_file, levels_or


def overfull_cube(snapshot: TableSnapshot, revision: Revision) -> tuple[str, int] | None:
    """The first overfull cube that a rewrite is expected to relieve: least depth first, then most rows.

    Returns:
        Its id and its rows, None when there is no such cube.
    """
    desired, width = revision.desired_cube_size, symbols_per_level(revision.dimensions)
    candidates = [
        (len(cube_id) // width, -elements, cube_id)
        for cube_id, elements, largest_write in _overfull_cubes(snapshot.file_table, revision)
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


def select_overfull(snapshot: TableSnapshot, revision: Revision, strategy: str, bytes_per_iter: int) -> Selection:
    """Takes the files of the first overfull cube, those of the smallest writes first.

    Args:
        snapshot: the table.
        revision: the revision whose cubes are looked at.
        strategy: name of the strategy that asks.
        bytes_per_iter: bytes after which no further write is taken.
    """
    overfull = overfull_cube(snapshot, revision)
    if overfull is None:
        return Selection()
    cube_id, elements = overfull
    return choose(
        _writes(snapshot.file_table, revision, cube_id), cube_id, elements, revision, strategy, bytes_per_iter
    )


def choose(
    writes: Iterable[Sequence[InputFile]],
    cube_id: str,
    elements: int,
    revision: Revision,
    strategy: str,
    bytes_per_iter: int,
) -> Selection:
    """Takes whole writes until their bytes cross ``bytes_per_iter``, the crossing one included; pure.

    The files of two writes or more become those of one. So the number of writes falls with each group, and a run ends.

    Args:
        writes: the files with rows of the cube, by the write that made them, in the order in which to take them.
        cube_id: the cube.
        elements: its rows.
        revision: its revision.
        strategy: name of the strategy that asks.
        bytes_per_iter: bytes after which no further write is taken.
    """
    cube = cube_id or "root"
    taken: list[InputFile] = []
    count = 0
    for files in writes:
        if count and (sum(f.size for f in taken) >= bytes_per_iter or len(taken) + len(files) > MAX_FILES_PER_GROUP):
            break
        taken += files
        count += 1
    note = (
        f"cube {cube} holds {counted(elements, 'row')}, more than {OVERFULL_FACTOR} times the desired "
        f"{revision.desired_cube_size}; {counted(len(taken), 'file')} of {counted(count, 'write')} taken"
    )
    if count < 2:
        size = sum(file.size for file in taken)
        return Selection(None, (SkippedGroup(strategy, "BYTES_PER_ITER_TOO_SMALL", len(taken), size, note),))
    return Selection(FileGroup(strategy, revision.revision_id, f"OVERFULL_CUBE_{cube}", tuple(taken), note))


def _writes(files: FileTable, revision: Revision, cube_id: str) -> list[list[InputFile]]:
    """The files with rows of a cube, by the write that made them: writes of fewest bytes first, each one whole."""
    blocks = files.blocks_of(revision.revision_id)
    holding = np.unique(blocks.file[blocks.cube == blocks.cube_ids.index(cube_id)])
    of_write: dict[int, list[InputFile]] = defaultdict(list)
    for position, level in levels_or(files, holding, 0):
        of_write[int(files.write[position])].append(input_file(files, position, level))
    # Numbers of writes are in the order of their ids.
    in_order = sorted(of_write, key=lambda write: (sum(f.size for f in of_write[write]), write))
    writes: list[list[InputFile]] = []
    taken = 0
    for write in in_order:
        taken += len(of_write[write])
        if taken > MAX_FILES_PER_GROUP:
            break
        writes.append(of_write[write])
    return writes
