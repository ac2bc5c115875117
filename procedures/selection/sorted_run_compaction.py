"""SortedRunCompaction: merges overlapping sorted runs, so that reads cost what they cost over a fresh layout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from catalog.columns.column_names import find_stored
from catalog.files.file_table import FileTable
from catalog.properties.optimization_properties import MAX_WRITE_AMPLIFICATION, MAX_WRITE_AMPLIFICATION_KEY
from catalog.table.snapshot import TableSnapshot
from otree.revision import Revision
from procedures.groups.block_groups import indexed_revision
from procedures.groups.cutter import MAX_FILES_PER_GROUP
from procedures.groups.group import InputFile, Relayout, SkippedGroup
from procedures.groups.read_costs import Judge, Regions
from procedures.groups.strategy import Finding, SelectionSettings, Strategy, TableFiles, one_after_another
from procedures.selection.sorted_runs import Choice, Merge, choose

NAME = "SortedRunCompaction"


class SortedRunCompaction(Strategy):
    """Merges the runs whose merge saves reads the most per byte rewritten, within a budget of rewrites."""

    name: ClassVar[str] = NAME
    doc: ClassVar[str] = (
        "Merges overlapping sorted runs within bands of weights, where samples and boxes save the most per byte "
        f"rewritten; a row is rewritten {MAX_WRITE_AMPLIFICATION_KEY} times at most, on average."
    )

    def groups(self, table: TableFiles, settings: SelectionSettings) -> Iterator[Finding]:
        """See ``Strategy.groups``; the groups of one plan share the budget of rewrites."""
        snapshot = table.snapshot
        revision = indexed_revision(snapshot, settings.revision_id, NAME)
        if isinstance(revision, str):
            yield revision
            return
        configuration = snapshot.index_configuration
        if configuration is None:
            yield f"{NAME}: the table has no index columns"
            return
        files = _files_of(snapshot, revision)
        if len(files) == 0:
            yield f"{NAME}: revision {revision.revision_id} has no files"
            return
        limit = float(MAX_WRITE_AMPLIFICATION.value(snapshot.configuration))
        target, fractions = float(configuration.target_file_bytes), configuration.sample_fractions
        planned_bytes = 0

        def first(rest: FileTable) -> Iterator[Finding]:
            nonlocal planned_bytes
            rewritten = float((rest.rewrites * rest.size).sum()) + planned_bytes
            judge = Judge(Regions.of(rest), target, fractions=fractions)
            choice = choose(judge, limit, rewritten, settings.bytes_per_iter, MAX_FILES_PER_GROUP)
            planned_bytes += 0 if choice.merge is None else int(choice.merge.size)
            yield from findings_of(choice, rest, revision.revision_id, limit)

        yield from one_after_another(files, first)


def findings_of(choice: Choice, files: FileTable, revision_id: int, limit: float) -> Iterator[Finding]:
    """Turns a choice into what the strategy finds; pure.

    Args:
        choice: what is to be merged.
        files: the files, in the order that the choice refers to.
        revision_id: their revision.
        limit: the budget, for people.
    """
    if choice.waiting is not None:
        why = f"{MAX_WRITE_AMPLIFICATION_KEY} = {limit:g} allows it later; {_gain(choice.waiting, choice)}"
        yield _skipped("WRITE_AMPLIFICATION", choice.waiting, why)
    if choice.too_large is not None:
        why = f"bytes_per_iter is smaller than the group; {_gain(choice.too_large, choice)}"
        yield _skipped("BYTES_PER_ITER_TOO_SMALL", choice.too_large, why)
    merge = choice.merge
    if merge is None:
        yield f"{NAME}: revision {revision_id} has no runs that are worth a merge"
        return
    taken = InputFile.of(files, merge.files)
    reason = f"WEIGHTS_{merge.first:g}_TO_{merge.end:g}_WRITES_{merge.writes}"
    note, span = _gain(merge, choice), merge.end - merge.first
    yield Relayout(NAME, revision_id, reason, taken, note, weight_span=span, gain=merge.gain)


def _gain(merge: Merge, choice: Choice) -> str:
    after = choice.cost - merge.gain
    return (
        f"{len(merge.files)} files of {merge.writes} writes with weights from {merge.first:g} to {merge.end:g}: reads "
        f"cost {choice.cost:.2f} of what is allowed, and {after:.2f} once {merge.size:.0f} bytes are rewritten; rows "
        f"were rewritten {choice.rewrites:.2f} times"
    )


def _skipped(reason: str, merge: Merge, note: str) -> SkippedGroup:
    return SkippedGroup(NAME, reason, len(merge.files), int(merge.size), note)


def _files_of(snapshot: TableSnapshot, revision: Revision) -> FileTable:
    """The files of a revision, with the ranges of its columns."""
    columns = snapshot.file_table.where(snapshot.file_table.revision == revision.revision_id)
    newest = snapshot.latest_revision
    if newest is not None and newest.columns == revision.columns:
        return columns
    low, high = snapshot.ranges_of(columns.path, [find_stored(snapshot.schema, name) for name in revision.columns])
    return replace(columns, low=low, high=high)
