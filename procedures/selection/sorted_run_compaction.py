"""SortedRunCompaction: merges files that overlap, so that reads cost no more than a target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from catalog.columns.column_names import find_stored
from catalog.files.file_table import FileTable
from catalog.properties.optimization_properties import (
    MAX_WRITE_AMPLIFICATION,
    MAX_WRITE_AMPLIFICATION_KEY,
    TARGET_READ_COST,
    TARGET_READ_COST_KEY,
)
from catalog.table.snapshot import TableSnapshot
from otree.revision import Revision
from procedures.groups.block_groups import indexed_revision
from procedures.groups.cutter import MAX_FILES_PER_GROUP
from procedures.groups.group import InputFile, Relayout, SkippedGroup
from procedures.groups.judge import Judge
from procedures.groups.read_costs import Regions
from procedures.groups.recorded_reads import recorded_reads
from procedures.groups.strategy import Finding, SelectionSettings, Strategy, TableFiles
from procedures.selection.merge_candidates import Limit
from procedures.selection.merge_choice import Budget, Choice, Merge, choose

NAME = "SortedRunCompaction"
BELOW_TARGET = "READ_COST_BELOW_TARGET"
UNPAID = "RECORDED_READS_TOO_FEW"
# A cost that is no more than this above a fresh layout's is within what an estimate can tell.
_AS_FRESH = 1.05


class SortedRunCompaction(Strategy):
    """Merges nothing below the target; above it, the cheapest groups that bring reads back to it."""

    name: ClassVar[str] = NAME
    findings_last: ClassVar[bool] = True
    doc: ClassVar[str] = (
        "Merges files that overlap within a part of the space and of the weights, where this saves reads the most per "
        f"byte, until reads cost {TARGET_READ_COST_KEY} times a fresh layout; a row is rewritten "
        f"{MAX_WRITE_AMPLIFICATION_KEY} times at most, on average."
    )

    def groups(self, table: TableFiles, settings: SelectionSettings) -> Iterator[Finding]:
        """See ``Strategy.groups``; the groups of one plan are chosen together."""
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
        target = float(TARGET_READ_COST.value(snapshot.configuration))
        most = float(MAX_WRITE_AMPLIFICATION.value(snapshot.configuration))
        regions = Regions.of(files)
        scans = table.scans(int(files.modification_time.min()))
        # Nobody has read a table that records reads and has none: nothing is worth a rewrite.
        recorded = None if scans is None else recorded_reads(scans, revision.columns, files, regions)
        if scans is not None and recorded is None:
            yield f"{NAME}: no read was recorded since the files were written"
            return
        judge = Judge(
            regions,
            float(configuration.target_file_bytes),
            fractions=configuration.sample_fractions,
            recorded=recorded,
        )
        budget = Budget(most, float((files.rewrites * files.size).sum()))
        choice = choose(judge, target, budget, Limit(settings.bytes_per_iter, MAX_FILES_PER_GROUP))
        yield from findings_of(choice, files, revision.revision_id, target, most)


def findings_of(choice: Choice, files: FileTable, revision_id: int, target: float, most: float) -> Iterator[Finding]:
    """Turns a choice into what the strategy finds; pure.

    Args:
        choice: what is to be merged.
        files: the files, in the order that the choice refers to.
        revision_id: their revision.
        target: what reads may cost, for people.
        most: how many times a row may be rewritten, for people.
    """
    allowed = f"{TARGET_READ_COST_KEY} = {target:g}"
    if choice.waiting is not None:
        merge = choice.waiting
        note = (
            f"reads cost {choice.cost:.2f} times a fresh layout, above {allowed}; rows were rewritten "
            f"{choice.rewrites:.2f} times, and {MAX_WRITE_AMPLIFICATION_KEY} = {most:g} allows the merge later"
        )
        yield SkippedGroup(NAME, "WRITE_AMPLIFICATION", len(merge.files), int(merge.size), note, round(choice.cost, 4))
    if choice.merges:
        because = f"above {allowed}" if choice.unpaid is None else "and recorded reads have paid for the group"
        yield from (_group(merge, files, revision_id, because) for merge in choice.merges)
    elif choice.unpaid is not None and choice.cost > _AS_FRESH:
        note = (
            f"recorded reads cost {choice.cost:.2f} times a fresh layout; since the files were written, they would "
            f"have saved {choice.unpaid:.0%} of the bytes that the best group rewrites"
        )
        yield SkippedGroup(NAME, UNPAID, len(files), int(files.size.sum()), note, round(choice.cost, 4))
    elif _AS_FRESH < choice.cost <= target:
        note = f"reads cost {choice.cost:.2f} times a fresh layout, which {allowed} allows"
        yield SkippedGroup(NAME, BELOW_TARGET, len(files), int(files.size.sum()), note, round(choice.cost, 4))
    else:
        yield f"{NAME}: reads of revision {revision_id} cost {choice.cost:.2f} times a fresh layout; nothing to merge"


def _group(merge: Merge, files: FileTable, revision_id: int, because: str) -> Relayout:
    taken = InputFile.of(files, merge.files)
    reason = f"WEIGHTS_{merge.first:g}_TO_{merge.end:g}_WRITES_{merge.writes}"
    note = (
        f"{len(merge.files)} files of {merge.writes} writes with weights from {merge.first:g} to {merge.end:g}: reads "
        f"cost {merge.before:.2f} times a fresh layout, {because}, and {merge.after:.2f} once {merge.size:.0f} bytes "
        "are rewritten"
    )
    cost = (round(merge.before, 4), round(merge.after, 4))
    return Relayout(NAME, revision_id, reason, taken, note, weight_span=merge.end - merge.first, read_cost=cost)


def _files_of(snapshot: TableSnapshot, revision: Revision) -> FileTable:
    """The files of a revision, with the ranges of its columns."""
    columns = snapshot.file_table.where(snapshot.file_table.revision == revision.revision_id)
    newest = snapshot.latest_revision
    if newest is not None and newest.columns == revision.columns:
        return columns
    low, high = snapshot.ranges_of(columns.path, [find_stored(snapshot.schema, name) for name in revision.columns])
    return replace(columns, low=low, high=high)
