"""Levels and block groups: how fragmented cubes are found, for every strategy that merges blocks.

Source:
    A file's level is floor(log10(rows of its largest block)); a group is the blocks of one cube in files of one level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from catalog.errors import UnknownNameError
from catalog.files.file_table import FileTable
from catalog.table.snapshot import TableSnapshot
from otree.level import next_level_elements
from otree.revision import Revision
from procedures.groups.strategy import Finding, SelectionSettings, TableFiles, one_after_another

# The first groups are considered; the later ones stand by for the next iteration.
GROUPS_CONSIDERED = 1000


@dataclass(frozen=True)
class BlockGroup:
    """Blocks of one cube in the files of one level.

    Attributes:
        level: file level, floor(log10(elements of a file's largest block)).
        cube_id: cube.
        depth: depth of the cube.
        blocks: number of blocks, where the blocks of one write count as one.
        element_count: rows in them.
    """

    level: int
    cube_id: str
    depth: int
    blocks: int
    element_count: int

    @property
    def can_rise(self) -> bool:
        """Whether merging the blocks makes one of the next level; a single block is not fragmented."""
        return self.blocks >= 2 and self.element_count >= next_level_elements(self.level)


def indexed_revision(snapshot: TableSnapshot, wanted: int | None, strategy: str) -> Revision | str:
    """The revision whose blocks a strategy looks at: the newest unless one is asked for.

    Returns:
        The revision, or a sentence that says why there is nothing to look at.

    Raises:
        UnknownNameError: the table has no revision of this number.
    """
    if wanted == 0:
        return f"{strategy}: revision 0 is not indexed"
    revision = snapshot.latest_revision if wanted is None else snapshot.revisions.get(wanted)
    if revision is None and wanted is None:
        return f"{strategy}: the table has no indexed files yet"
    if revision is None:
        known = [str(number) for number in snapshot.revisions if number > 0]
        raise UnknownNameError.of("revision", str(wanted), known, "revision_id")
    if not snapshot.has_columns_of(revision):
        return f"{strategy}: a column of revision {revision.revision_id} was dropped; see revision_rewrite"
    return revision


def groups_in_revision(
    table: TableFiles,
    settings: SelectionSettings,
    strategy: str,
    choose: Callable[[FileTable, Revision, int], Iterator[Finding]],
) -> Iterator[Finding]:
    """Yields the groups of a strategy that merges blocks of one revision.

    Args:
        table: what may be chosen.
        settings: the revision, and the bytes of a group.
        strategy: its name.
        choose: finds at most one group among some files of the revision; the number is ``bytes_per_iter``.
    """
    revision = indexed_revision(table.snapshot, settings.revision_id, strategy)
    if isinstance(revision, str):
        yield revision
        return
    yield from one_after_another(table.files, lambda files: choose(files, revision, settings.bytes_per_iter))


def limit_note(strategy: str, groups: int) -> str:
    """What to say when none of the groups considered rises within the byte limit, and more stood by."""
    if groups <= GROUPS_CONSIDERED:
        return ""
    return (
        f"; {strategy} considered the first {GROUPS_CONSIDERED} groups and there are more: a larger bytes_per_iter "
        "lets the first ones rise"
    )
