"""The advice of ``doctor``, ``health``, ``recommend`` and ``explain_skipping``: steps in order; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from catalog.counted_nouns import agreeing, counted
from catalog.files.arrays import UNKNOWN
from catalog.properties.target_file_size import TARGET_FILE_BYTES_KEY
from otree.revision import Revision
from procedures.insight.health.health_parts import HealthFacts
from procedures.insight.health.reads import OPEN_COST, fresh_costs
from procedures.insight.health.remedy import Advice, AdviceStep, Remedy, sql_text
from procedures.insight.health.score import Part

NOTHING_TO_DO = "Nothing to do: no step would lower what reads cost."

# A smaller size of files is advised if it saves this share of the cost of an average read.
_WORTHWHILE = 0.3
_SMALLEST_TARGET = 8 * 1024 * 1024
# These lay out all files again; measured index columns come before them, and their rewrite includes the rest.
_OF_THE_LAYOUT = frozenset({Remedy.OPTIMIZE, Remedy.SPLIT, Remedy.REWRITE, Remedy.MERGE, Remedy.SMALLER_FILES})
# Without these lost points, a default optimization finds nothing in indexed files that it could improve.
_FOR_OPTIMIZE = frozenset({"unindexed_share", "fragmentation", "small_files"})
_REASONS: Mapping[Remedy, str] = {
    Remedy.FAILURES: "Groups of optimizations have failed within a week.",
    Remedy.OPTIMIZE: "Files are not indexed yet, or lie in more pieces than reads need.",
    Remedy.SPLIT: "Cubes hold so many rows that samples read more than they need.",
    Remedy.REWRITE: "Reads cost more than those of a fresh index.",
    Remedy.MERGE: "Reads open more files than the rows need.",
    Remedy.DELETES: "Reads load rows that are deleted.",
    Remedy.LOG: "Readers load many commits after the last checkpoint.",
}


@dataclass(frozen=True)
class MeasuredIndex:
    """Index columns that were measured with the queries of the table.

    Attributes:
        columns: as ``use.index`` takes them.
        saved_bytes: bytes that an average query saves.
    """

    columns: str
    saved_bytes: int


def steps_of(
    facts: HealthFacts, parts: Sequence[Part], measured: MeasuredIndex | None = None
) -> tuple[AdviceStep, ...]:
    """Returns the steps, each statement once: those without which others fail, then those that save the most bytes.

    Args:
        facts: about the table.
        parts: of its health, from the same facts.
        measured: an index that was measured to save bytes, if any.

    Returns:
        The steps; none if nothing would lower the cost of reads.
    """
    steps = [*_of_parts(facts, parts), *_of_files(facts)]
    if measured is not None:
        steps = [step for step in steps if step.advice.remedy not in _OF_THE_LAYOUT]
        advice = Advice(Remedy.INDEX, index_statement(facts.name, measured.columns))
        steps.append(AdviceStep(advice, measured.saved_bytes, "The measured queries read fewer bytes with this index."))
    return tuple(sorted(steps, key=_order))


def index_statement(table: str, columns: str) -> str:
    """Returns the statement that declares index columns.

    Args:
        table: its name.
        columns: as ``use.index`` takes them.
    """
    return f"CALL use.index(table => {sql_text(table)}, columns => {sql_text(columns)})"


def _order(step: AdviceStep) -> tuple[bool, bool, int]:
    """Unknown savings come last, except for states that make the other steps fail or undo them."""
    blocks = step.advice.remedy in (Remedy.FAILURES, Remedy.CLUSTERING)
    return not blocks, step.saved_bytes is None, -(step.saved_bytes or 0)


def advice_on(facts: HealthFacts, parts: Sequence[Part], part: Part) -> Advice | None:
    """Returns the step that improves a part; None if no step is worth its cost.

    Args:
        facts: about the table.
        parts: all of them.
        part: one that loses points.
    """
    if part.advice.remedy is Remedy.SPLIT and not facts.can_split_cubes:
        return None
    if part.advice.remedy is Remedy.OPTIMIZE and not any(_is_for_optimize(facts, other) for other in parts):
        # Of a few small files, the costs of a fresh index are too rough an estimate to rewrite them for.
        is_worthwhile = facts.newest is not None and (part.cost_bytes or 0) >= OPEN_COST
        return _rewrite_of_newest(facts, facts.newest) if is_worthwhile and facts.newest else None
    if part.advice.remedy is Remedy.MERGE and facts.clustering:
        return Advice(Remedy.MERGE, f"OPTIMIZE {facts.name}")
    return part.advice


def _is_for_optimize(facts: HealthFacts, part: Part) -> bool:
    """Whether a part loses points that a default optimization gains: it merges nothing if reads cost little."""
    is_for = bool(part.lost) and part.name in _FOR_OPTIMIZE
    return is_for and (part.name != "fragmentation" or facts.has_costly_reads)


def _of_parts(facts: HealthFacts, parts: Sequence[Part]) -> Iterator[AdviceStep]:
    saved: dict[Advice, list[int]] = {}
    for part in (part for part in parts if part.lost):
        advice = advice_on(facts, parts, part)
        if advice is not None:
            saved.setdefault(advice, []).extend([] if part.cost_bytes is None else [part.cost_bytes])
    for advice, costs in saved.items():
        # The parts of one step measure the same bytes from several sides.
        yield AdviceStep(advice, max(costs, default=None), _REASONS[advice.remedy])


def _rewrite_of_newest(facts: HealthFacts, newest: Revision) -> Advice:
    options = f"revision_id => {newest.revision_id}, revision_rewrite => true"
    return Advice(Remedy.REWRITE, f"CALL use.optimize({sql_text(facts.name)}, {options})")


def _of_files(facts: HealthFacts) -> Iterator[AdviceStep]:
    files = facts.files
    if facts.clustering and facts.has_index_columns:
        reason = f"Delta's OPTIMIZE clusters by {', '.join(facts.clustering)}, and such files have no index."
        yield AdviceStep(facts.advice(Remedy.CLUSTERING), None, reason)
    if facts.is_outdated:
        reason = "Files are indexed by other columns than the table's properties name."
        yield AdviceStep(facts.advice(Remedy.REWRITE), None, reason)
    unknown = files.rows == UNKNOWN
    if unknown.any():
        number = int(unknown.sum())
        have = agreeing(number, "has", "have")
        reason = f"{counted(number, 'file')} {have} no statistics, so reads skip none of them."
        yield AdviceStep(facts.advice(Remedy.STATISTICS), int(files.size[unknown].sum()), reason)
    yield from _smaller_files(facts)


def _smaller_files(facts: HealthFacts) -> Iterator[AdviceStep]:
    """A size of files at which a fresh index costs reads much less, opened files included."""
    if facts.newest is None or not facts.is_indexed.all() or not len(facts.files):
        return
    targets = [facts.target_bytes]
    while targets[-1] // 2 >= _SMALLEST_TARGET:
        targets.append(targets[-1] // 2)
    costs = [fresh_costs(facts.files, target, facts.fractions) for target in targets]
    best = int(np.argmin(costs))
    saved = costs[0] - costs[best]
    if not best or saved < _WORTHWHILE * costs[0]:
        return
    statement = f"ALTER TABLE {facts.name} SET TBLPROPERTIES ('{TARGET_FILE_BYTES_KEY}' = '{targets[best]}')"
    reason = "Selective reads load less of smaller files once these are rewritten."
    yield AdviceStep(Advice(Remedy.SMALLER_FILES, statement), int(saved), reason)
