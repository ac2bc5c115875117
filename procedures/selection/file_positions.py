"""Selection over columns in memory: what the strategies compute of ``FileTable`` instead of DataFrames."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from catalog.files.arrays import Flags, Integers, digits, group_numbers, sums
from catalog.files.file_table import Blocks, FileTable
from procedures.groups.block_groups import BlockGroup


def positions_by_age(files: FileTable, wanted: Flags) -> Integers:
    """Positions of some files, by modification time and path.

    Args:
        files: all files.
        wanted: whether a file is among them.
    """
    positions = np.flatnonzero(wanted)
    return positions[np.argsort(files.modification_time[positions], kind="stable")]


@dataclass(frozen=True, eq=False)
class LeveledBlocks:
    """The blocks of a revision that have rows, and their groups; a group is the blocks of one cube and file level.

    Attributes:
        files: the files.
        blocks: blocks of the revision.
        symbols_per_level: characters of a cube's id per level.
        group: number of the group of each block; groups are numbered by level and cube.
        level: level of each group.
        cube: cube number of each group.
        writes: number of blocks of each group, where the blocks of one write count as one.
        elements: rows of each group.
    """

    files: FileTable
    blocks: Blocks
    symbols_per_level: int
    group: Integers
    level: Integers
    cube: Integers
    writes: Integers
    elements: Integers

    @classmethod
    def of(cls, files: FileTable, revision_id: int, symbols_per_level: int) -> LeveledBlocks:
        """Groups the blocks of a revision.

        Args:
            files: the files that may be chosen.
            revision_id: the revision.
            symbols_per_level: characters of a cube's id per level.
        """
        return cls._grouped(files, files.blocks_of(revision_id), symbols_per_level)

    @classmethod
    def _grouped(cls, files: FileTable, blocks: Blocks, symbols_per_level: int) -> LeveledBlocks:
        level = files.levels[blocks.file]
        group, groups = group_numbers(level, blocks.cube)
        level_of, cube_of = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
        level_of[group], cube_of[group] = level, blocks.cube
        _, first = np.unique(group_numbers(group, files.write[blocks.file])[0], return_index=True)
        writes = sums(group[first], groups, np.ones(len(first), np.int64))
        elements = sums(group, groups, blocks.elements)
        return cls(files, blocks, symbols_per_level, group, level_of, cube_of, writes, elements)

    @property
    def depth(self) -> Integers:
        """Depth of the cube of each group."""
        lengths = np.array([len(cube_id) for cube_id in self.blocks.cube_ids], np.int64)
        depths: Integers = lengths[self.cube] // self.symbols_per_level
        return depths

    @property
    def rises(self) -> Flags:
        """Whether each group becomes a block of the next level when it is merged; see ``BlockGroup.can_rise``."""
        flags: Flags = (self.writes >= 2) & (digits(self.elements) > self.level + 1)
        return flags

    def where(self, keep: Flags) -> LeveledBlocks:
        """Returns some of the blocks, in groups of their own.

        Args:
            keep: whether a block is kept.
        """
        return self._grouped(self.files, self.blocks.where(keep), self.symbols_per_level)

    def rising_groups(self, by_blocks: bool = True) -> list[int]:
        """Numbers of the groups that rise, by level, depth, number of blocks and cube.

        Args:
            by_blocks: whether the number of blocks counts.
        """
        blocks = self.writes if by_blocks else np.zeros(len(self.writes), np.int64)
        order = np.lexsort((self.cube, blocks, self.depth, self.level))
        return [int(number) for number in order[self.rises[order]]]

    def block_group(self, number: int) -> BlockGroup:
        """A group as a value.

        Args:
            number: of the group.
        """
        return BlockGroup(
            int(self.level[number]),
            self.blocks.cube_ids[int(self.cube[number])],
            int(self.depth[number]),
            int(self.writes[number]),
            int(self.elements[number]),
        )

    def files_of(self, number: int) -> tuple[Integers, Integers]:
        """The files of a group, by size and path, with their rows in the cube.

        Args:
            number: of the group.

        Returns:
            Positions of the files, and the number of rows of each.
        """
        blocks = self.blocks.where(self.group == number)
        positions, of_block = np.unique(blocks.file, return_inverse=True)
        elements = sums(of_block, len(positions), blocks.elements)
        order = np.argsort(self.files.size[positions], kind="stable")
        return positions[order], elements[order]

    def within_bytes(self, most_bytes: int) -> LeveledBlocks:
        """The blocks of rising groups as far as a byte limit reaches in each group by itself, where they still rise.

        Files are counted by size and path: small ones hold more blocks of the cube for the same bytes.

        Args:
            most_bytes: bytes of the files before the last one of a group, at most.
        """
        in_rising = self.where(self.rises[self.group])
        size = in_rising.files.size[in_rising.blocks.file]
        in_file, count = group_numbers(in_rising.group, size, in_rising.blocks.file)
        group, bytes_of = np.zeros(count, np.int64), np.zeros(count, np.int64)
        group[in_file], bytes_of[in_file] = in_rising.group, size
        before = np.cumsum(bytes_of) - bytes_of
        is_first = np.ones(count, np.bool_)
        is_first[1:] = group[1:] != group[:-1]
        before_group = before[is_first]
        within = in_rising.where((before - before_group[group] < most_bytes)[in_file])
        return within.where(within.rises[within.group])
