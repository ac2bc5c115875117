"""Overfull cubes: which one to split, and with which files; pure, without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np

from catalog.files.arrays import Integers, group_numbers, sums
from catalog.files.file_table import Blocks, FileTable
from otree.cube import symbols_per_level
from otree.overfull import OVERFULL_FACTOR, can_be_split, has_rows_of_others
from otree.revision import Revision
from procedures.groups.cutter import MAX_FILES_PER_GROUP, Limits, pieces

# The first cubes are considered; a cube that stays overfull does not keep the later ones from being split.
_CUBES_CONSIDERED = 1000


@dataclass(frozen=True, eq=False)
class OverfullCube:
    """An overfull cube with the files to rewrite.

    Attributes:
        cube_id: the cube.
        elements: its rows in all files.
        files: positions of the files to rewrite, those of the smallest writes first.
        writes: how many writes they are of.
        is_relieved: whether the rewrite merges enough rows with those of the largest of these writes.
    """

    cube_id: str
    elements: int
    files: Integers
    writes: int
    is_relieved: bool


def overfull_cube(files: FileTable, revision: Revision, bytes_per_iter: int) -> OverfullCube | None:
    """The first overfull cube that a rewrite is expected to relieve: least depth first, then most rows.

    Whole writes are taken until their bytes cross the limit, the crossing one included. The files of two writes or more
    become those of one. So the number of writes falls with each group, and a run ends. A quarter of the rows or more
    come from writes other than the largest. So a row is rewritten a number of times that grows with the logarithm of
    the rows, also if the cube cannot be split.

    Args:
        files: the files that may be chosen.
        revision: the revision whose cubes are looked at.
        bytes_per_iter: bytes after which no further write is taken.

    Returns:
        The cube; if the limit keeps all cubes from being relieved, the first one; None without overfull cubes.
    """
    blocks, width = files.blocks_of(revision.revision_id), symbols_per_level(revision.dimensions)
    candidates = sorted(
        (len(blocks.cube_ids[cube]) // width, -elements, cube)
        for cube, elements, largest_write in _overfull_cubes(files, blocks, revision.desired_cube_size)
        if can_be_split(elements, largest_write, revision.desired_cube_size)
    )
    if not candidates:
        return None
    first: OverfullCube | None = None
    by_cube = np.argsort(blocks.cube, kind="stable")
    ordered = blocks.cube[by_cube]
    for _, negated, cube in islice(candidates, _CUBES_CONSIDERED):
        start, end = np.searchsorted(ordered, (cube, cube + 1))
        held = blocks.where(by_cube[start:end])
        found = _with_files(files, held, blocks.cube_ids[cube], -negated, bytes_per_iter)
        if found.is_relieved:
            return found
        first = first or found
    return first


def _overfull_cubes(files: FileTable, blocks: Blocks, desired: int) -> list[tuple[int, int, int]]:
    """The overfull cubes: number, rows, and rows of the write that has the most of them."""
    group, groups = group_numbers(blocks.cube, files.write[blocks.file])
    of_write = sums(group, groups, blocks.elements)
    cube_of = np.zeros(groups, np.int64)
    cube_of[group] = blocks.cube
    elements = sums(cube_of, len(blocks.cube_ids), of_write)
    largest = np.zeros(len(blocks.cube_ids), np.int64)
    np.maximum.at(largest, cube_of, of_write)
    overfull = np.flatnonzero(elements > OVERFULL_FACTOR * desired)
    return [(int(cube), int(elements[cube]), int(largest[cube])) for cube in overfull]


def _with_files(files: FileTable, held: Blocks, cube_id: str, elements: int, bytes_per_iter: int) -> OverfullCube:
    holding, file = np.unique(held.file, return_inverse=True)
    # Numbers of writes are in the order of their ids.
    numbers, of_file = np.unique(files.write[holding], return_inverse=True)
    size = sums(of_file, len(numbers), files.size[holding])
    rows = sums(of_file[file], len(numbers), held.elements)
    count = np.bincount(of_file, minlength=len(numbers))
    order = np.argsort(size, kind="stable")
    _, end = next(pieces(size[order], Limits(bytes_per_iter), crossing=True, files=count[order]))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    by_write = holding[np.argsort(rank[of_file], kind="stable")]
    taken = by_write[: int(count[order[:end]].sum())][:MAX_FILES_PER_GROUP]
    of_writes = rows[order[:end]]
    is_relieved = has_rows_of_others(int(of_writes.sum()), int(of_writes.max()))
    return OverfullCube(cube_id, elements, taken, end, is_relieved)
