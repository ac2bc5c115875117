"""LeveledCompaction: the lowest level's most fragmented cube first, so that each iteration lifts it by a level.

Where no cube is fragmented, it splits overfull cubes: the files of a cube with far more rows than desired are written
anew, in a tree that has grown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from catalog.counted_nouns import agreeing, counted
from catalog.files.file_table import FileTable
from otree.cube import symbols_per_level
from otree.level import next_level_elements
from otree.overfull import OVERFULL_FACTOR
from otree.revision import Revision
from procedures.groups.block_groups import GROUPS_CONSIDERED, groups_in_revision, limit_note
from procedures.groups.cutter import first_piece
from procedures.groups.group import InputFile, Relayout, SkippedGroup
from procedures.groups.overfull_cubes import overfull_cube
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


def overfull_group(
    files: FileTable, revision: Revision, strategy: str, bytes_per_iter: int
) -> Relayout | SkippedGroup | None:
    """The files of the first overfull cube, those of the smallest writes first; None without such a cube.

    Args:
        files: the files that may be chosen.
        revision: the revision whose cubes are looked at.
        strategy: name of the strategy that asks.
        bytes_per_iter: bytes after which no further write is taken.
    """
    found = overfull_cube(files, revision, bytes_per_iter)
    if found is None:
        return None
    cube, count = found.cube_id or "root", len(found.files)
    note = (
        f"cube {cube} holds {counted(found.elements, 'row')}, more than {OVERFULL_FACTOR} times the desired "
        f"{revision.desired_cube_size:,}; {counted(count, 'file')} of {counted(found.writes, 'write')} taken"
    )
    if not found.is_relieved:
        return SkippedGroup(strategy, "BYTES_PER_ITER_TOO_SMALL", count, int(files.size[found.files].sum()), note)
    return Relayout(strategy, revision.revision_id, f"OVERFULL_CUBE_{cube}", InputFile.of(files, found.files), note)
