"""LeveledCompaction: the lowest level's most fragmented cube first, so that each iteration lifts it by a level.

Where no cube is fragmented, it splits overfull cubes; see ``overfull_cubes``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar

from catalog.counted_nouns import agreeing, counted
from catalog.files.file_table import FileTable
from catalog.table.snapshot import TableSnapshot
from otree.cube import symbols_per_level
from otree.level import next_level_elements
from otree.revision import Revision
from procedures.groups.block_groups import (
    GROUPS_CONSIDERED,
    BlockGroup,
    indexed_revision,
    limit_note,
)
from procedures.groups.plan import FileGroup, InputFile, Selection, SkippedGroup
from procedures.groups.selection_strategy import MAX_FILES_PER_GROUP, SelectionSettings, Strategy, take_until
from procedures.selection.file_positions import LeveledBlocks, input_file
from procedures.selection.overfull_cubes import select_overfull

NAME = "LeveledCompaction"


@dataclass(frozen=True)
class GroupFile:
    """A file of a block group: its elements of the group's cube, and the write that made it."""

    file: InputFile
    elements: int
    write_id: str


def choose(
    groups: Iterable[BlockGroup],
    files_of: Callable[[BlockGroup], Iterable[GroupFile]],
    bytes_per_iter: int,
    revision_id: int,
) -> Selection:
    """Takes the first group that rises within the byte limit; pure.

    Args:
        groups: block groups by level, cube depth, number of blocks, all ascending.
        files_of: the files of a group, in the order in which to take them.
        bytes_per_iter: bytes after which no further file is taken.
        revision_id: revision of the blocks.
    """
    skipped: list[SkippedGroup] = []
    for group in groups:
        if not group.can_rise:
            continue
        by_path: dict[str, GroupFile] = {}

        def remembered(group_files: Iterable[GroupFile], seen: dict[str, GroupFile] = by_path) -> Iterable[InputFile]:
            for item in group_files:
                seen[item.file.path] = item
                yield item.file

        files = take_until(remembered(files_of(group)), bytes_per_iter)
        taken = [by_path[f.path] for f in files]
        elements = sum(item.elements for item in taken)
        writes = len({item.write_id for item in taken})
        cube = group.cube_id or "root"
        if writes >= 2 and elements >= next_level_elements(group.level):
            reason = f"LEVEL_{group.level}_CUBE_{cube}"
            note = (
                f"{group.blocks} blocks of cube {cube} with {group.element_count} rows in files of level "
                f"{group.level}; {counted(len(files), 'file')} taken"
            )
            return Selection(FileGroup(NAME, revision_id, reason, files, note), tuple(skipped))
        note = (
            f"cube {cube} at level {group.level}: {counted(len(files), 'file')} within bytes_per_iter = "
            f"{bytes_per_iter} {agreeing(len(files), 'holds', 'hold')} {counted(elements, 'row')} of "
            f"{counted(writes, 'write')}, too few for a block of {next_level_elements(group.level)}"
        )
        size = sum(f.size for f in files)
        skipped.append(SkippedGroup(NAME, "BYTES_PER_ITER_TOO_SMALL", len(files), size, note))
    return Selection(None, tuple(skipped), f"{NAME}: revision {revision_id} has no fragmented cubes")


class LeveledCompaction(Strategy):
    """Merges the blocks of the first fragmented cube, by level, then cube depth, then number of blocks.

    Where there is none, it rewrites the files of the first cube that holds more than twice the desired rows.
    """

    name: ClassVar[str] = NAME
    aliases: ClassVar[tuple[str, ...]] = ("LeveledCompactionSelection",)
    doc: ClassVar[str] = "Merges the blocks of the first fragmented cube: lowest level, then lowest depth."

    def select(self, snapshot: TableSnapshot, settings: SelectionSettings) -> Selection:
        """See ``Strategy.select``."""
        revision = indexed_revision(snapshot, settings.revision_id, NAME)
        if isinstance(revision, Selection):
            return revision
        groups, files_of = _groups(snapshot.file_table, revision)
        selection = choose(groups[:GROUPS_CONSIDERED], files_of, settings.bytes_per_iter, revision.revision_id)
        if selection.group:
            return selection
        overfull = select_overfull(snapshot, revision, NAME, settings.bytes_per_iter)
        if overfull.group:
            return replace(overfull, skipped=selection.skipped)
        note = selection.note + limit_note(NAME, len(groups))
        return Selection(None, (*selection.skipped, *overfull.skipped), note)


_Groups = tuple[Sequence[BlockGroup], Callable[[BlockGroup], Iterable[GroupFile]]]
"""The first groups that rise, at most one more than are considered, and the files of each."""


def _groups(files: FileTable, revision: Revision) -> _Groups:
    leveled = LeveledBlocks.of(files, revision.revision_id, symbols_per_level(revision.dimensions))
    numbers = {leveled.block_group(n): n for n in leveled.rising_groups()[: GROUPS_CONSIDERED + 1]}

    def files_of(group: BlockGroup) -> Iterator[GroupFile]:
        for position, elements in islice(leveled.files_of(numbers[group]), MAX_FILES_PER_GROUP):
            yield GroupFile(input_file(files, position, group.level), elements, str(files.write[position]))

    return list(numbers), files_of
