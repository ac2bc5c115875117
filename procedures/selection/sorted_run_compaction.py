"""SortedRunCompaction: merges files that overlap, so that reads cost no more than a target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from catalog.columns.column_names import find_stored
from catalog.files.arrays import Integers
from catalog.files.file_table import FileTable
from catalog.properties.optimization_properties import (
    MAX_WRITE_AMPLIFICATION,
    MAX_WRITE_AMPLIFICATION_KEY,
    TARGET_READ_COST,
    TARGET_READ_COST_KEY,
)
from catalog.quantities import share_text
from catalog.table.snapshot import TableSnapshot
from otree.revision import Revision
from procedures.groups.block_groups import indexed_revision
from procedures.groups.cutter import Limits
from procedures.groups.group import InputFile, Relayout, SkippedGroup
from procedures.groups.judge import Judge
from procedures.groups.read_costs import Regions
from procedures.groups.recorded_reads import recorded_reads
from procedures.groups.strategy import Finding, SelectionSettings, Strategy, TableFiles
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
        target = float(TARGET_READ_COST.value(snapshot.settings))
        most = float(MAX_WRITE_AMPLIFICATION.value(snapshot.settings))
        regions = Regions.of(files)
        scans = table.scans(int(files.modification_time.min()))
        if scans is not None and not scans.scans:
            note = "no read was recorded since the files were written"
            if _are_of_several_writes(files):
                yield SkippedGroup(NAME, UNPAID, len(files), int(files.size.sum()), note)
            yield f"{NAME}: {note}"
            return
        judge = Judge(
            regions,
            float(configuration.target_file_bytes),
            fractions=configuration.sample_fractions,
            recorded=None if scans is None else recorded_reads(scans, revision.columns, files, regions),
        )
        budget = Budget(most, float((files.rewrites * files.size).sum()))
        choice = choose(judge, target, budget, Limits(settings.bytes_per_iter))
        is_again = table.run.first is not None
        yield from findings_of(choice, files, revision.revision_id, target, most, is_again=is_again)


def findings_of(
    choice: Choice, files: FileTable, revision_id: int, target: float, most: float, *, is_again: bool = False
) -> Iterator[Finding]:
    """Turns a choice into what the strategy finds; pure.

    Args:
        choice: what is to be merged.
        files: the files, in the order that the choice refers to.
        revision_id: their revision.
        target: what reads may cost, for people.
        most: how many times a row may be rewritten, for people.
        is_again: whether the run has asked before. Then the report shows what reads cost after its merges.
    """
    allowed, is_recorded = f"{TARGET_READ_COST_KEY} = {target:g}", choice.unpaid is not None
    cost = f"{'recorded reads' if is_recorded else 'reads'} cost {choice.cost:.2f} times a fresh layout"
    because = "and have paid for the group" if is_recorded else f"above {allowed}"
    if choice.waiting is not None:
        note = (
            f"{cost}, {because}; rows were rewritten {choice.rewrites:.2f} times, and {MAX_WRITE_AMPLIFICATION_KEY} = "
            f"{most:g} allows the merge later"
        )
        taken = choice.waiting.files
        yield _skipped("WRITE_AMPLIFICATION", files.size[taken], note, choice.cost)
    if choice.merges:
        yield from (_group(merge, files, revision_id, because) for merge in choice.merges)
        return
    # Files of a single write cannot be merged, whatever they cost.
    could_merge = choice.cost > _AS_FRESH and _are_of_several_writes(files)
    if choice.waiting is None and (is_again or could_merge):
        if is_recorded:
            paid = share_text(choice.unpaid or 0.0, 0)
            note = f"{cost}; they have paid {paid} of the bytes that the best group rewrites"
            yield _skipped(UNPAID, files.size, note, choice.cost)
        elif choice.cost <= target:
            yield _skipped(BELOW_TARGET, files.size, f"{cost}, which {allowed} allows", choice.cost)
    yield f"{NAME}: {cost} in revision {revision_id}; nothing to merge"


def _are_of_several_writes(files: FileTable) -> bool:
    return bool(files.write.max() > files.write.min())


def _skipped(reason: str, size: Integers, note: str, cost: float) -> SkippedGroup:
    return SkippedGroup(NAME, reason, len(size), int(size.sum()), note, round(cost, 4))


def _group(merge: Merge, files: FileTable, revision_id: int, because: str) -> Relayout:
    taken = InputFile.of(files, merge.files)
    # Of a band, with the weights that its rows happen to have.
    first, end = "0" if merge.first < merge.end / 1000 else f"{merge.first:.3g}", f"{merge.end:.3g}"
    reason = f"WEIGHTS_{first}_TO_{end}_WRITES_{merge.writes}"
    note = (
        f"{len(merge.files)} files of {merge.writes} writes with weights from {first} to {end}: reads "
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
