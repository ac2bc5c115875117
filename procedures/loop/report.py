"""The rows that ``optimize`` answers with: one per group and outcome, counted and never derived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from catalog.errors import UseError
from procedures.declare.result_rows import INT, ShownRow
from procedures.groups.group import Group, SkippedGroup
from procedures.rewrite.results import RewriteResult

PLANNED, COMMITTED, SKIPPED, FAILED = "planned", "committed", "skipped", "failed"
_NAMED_FILES = 3
LEASE_HELD = "LEASE_HELD"
"""The reason of a run that does nothing because another run holds the lease of the table."""


@dataclass(frozen=True)
class OptimizeRow(ShownRow):
    """One group of an optimization, or the reason why there is none.

    Attributes:
        iteration: number of the plan.
        strategy: strategy that chose the group; None if none did.
        reason: code, such as ``UNINDEXED`` or ``NOTHING_TO_DO``; for a failed group, the code of its error.
        state: ``planned``, ``committed``, ``skipped`` or ``failed``.
        input_files: files that the group reads.
        input_bytes: their bytes.
        output_files: files written.
        output_bytes: their bytes.
        rows: rows rewritten or to rewrite; None if the log does not record it.
        version: version committed, else the version planned on; None if there was no plan.
        duration_ms: time taken.
        message: one-sentence summary.
        read_cost_before: what reads cost before the group is rewritten, in proportion to a fresh layout; None if nobody
            judged the group.
        read_cost_after: what they are expected to cost afterwards.
    """

    iteration: int = field(metadata=INT)
    strategy: str | None
    reason: str
    state: str
    input_files: int
    input_bytes: int
    output_files: int
    output_bytes: int
    rows: int | None
    version: int | None
    duration_ms: int
    message: str
    read_cost_before: float | None = None
    read_cost_after: float | None = None


def with_warnings(rows: Sequence[OptimizeRow], warnings: Sequence[str]) -> list[OptimizeRow]:
    """The rows, with warnings about the table in the message of the first."""
    if not rows or not warnings:
        return list(rows)
    return [replace(rows[0], message="; ".join([part for part in (rows[0].message, *warnings) if part])), *rows[1:]]


def nothing_row(iteration: int, reason: str, version: int | None, message: str) -> OptimizeRow:
    """A row that stands for no group: why a run has nothing to do, or ends here."""
    return OptimizeRow(iteration, None, reason, SKIPPED, 0, 0, 0, 0, 0, version, 0, message)


def skipped_row(iteration: int, group: SkippedGroup, version: int) -> OptimizeRow:
    """A group that qualified and was passed over."""
    return OptimizeRow(
        iteration,
        group.strategy or None,
        group.reason,
        SKIPPED,
        group.files,
        group.bytes,
        0,
        0,
        0,
        version,
        0,
        group.note,
        group.read_cost,
    )


def planned_row(iteration: int, group: Group, version: int) -> OptimizeRow:
    """A group of a dry run."""
    names = ", ".join(f.path for f in group.files[:_NAMED_FILES])
    if len(group.files) > _NAMED_FILES:
        names += f" and {len(group.files) - _NAMED_FILES:,} more"
    return OptimizeRow(
        iteration,
        group.strategy,
        group.reason,
        PLANNED,
        len(group.files),
        group.bytes,
        0,
        0,
        group.rows,
        version,
        0,
        f"{group.note}: {names}",
        *(group.read_cost or (None, None)),
    )


def failed_row(iteration: int, group: Group, milliseconds: int, error: UseError) -> OptimizeRow:
    """A group of which nothing was committed, or nobody knows."""
    files, size = len(group.files), group.bytes
    return OptimizeRow(
        iteration, group.strategy, error.code, FAILED, files, size, 0, 0, 0, None, milliseconds, error.message
    )


@dataclass(frozen=True)
class PassedOver:
    """Work that a run left alone, and why; equal reasons of one strategy are one.

    Attributes:
        strategy: None where a run did not get as far as a strategy.
        reason: reason code.
        groups: how many.
        files: in these groups.
        bytes: of these files.
        note: one sentence for people, of the first group.
    """

    strategy: str | None
    reason: str
    groups: int
    files: int
    bytes: int
    note: str

    @property
    def text(self) -> str:
        """The same for people, in one line."""
        named = f"{self.strategy}: {self.reason}" if self.strategy else self.reason
        more = f", and {self.groups - 1} more" if self.groups > 1 else ""
        return f"{named}{more}" + (f" ({self.note})" if self.note else "")


def passed_over(rows: Sequence[OptimizeRow]) -> list[PassedOver]:
    """What a run left alone, by strategy and reason, in the order of its report.

    Args:
        rows: the report.
    """
    by_reason: dict[tuple[str | None, str], PassedOver] = {}
    for row in rows:
        if row.state == SKIPPED:
            key = row.strategy, row.reason
            same = by_reason.get(key, PassedOver(*key, 0, 0, 0, row.message))
            by_reason[key] = replace(
                same,
                groups=same.groups + 1,
                files=same.files + row.input_files,
                bytes=same.bytes + row.input_bytes,
            )
    return list(by_reason.values())


def committed_row(iteration: int, group: Group, milliseconds: int, result: RewriteResult) -> OptimizeRow:
    """A group whose commit is in the log."""
    # A new revision changes the table's metadata: never silently.
    new = [f"made revision {result.new_revision}"] if result.new_revision else []
    warning = [result.warning] if result.warning else []
    return OptimizeRow(
        iteration,
        group.strategy,
        group.reason,
        COMMITTED,
        len(group.files),
        group.bytes,
        result.output_files,
        result.output_bytes,
        result.rows,
        result.version,
        milliseconds,
        "; ".join([group.note, *new, *warning]),
        *(group.read_cost or (None, None)),
    )
