"""What the rewrites of a table are worth, and what they cost; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from procedures.fleet.reads import ReadRate
from procedures.groups.group import Concatenate, Group
from procedures.groups.read_costs import OPENING

# The share of the rows that concern a scan which a fresh layout is expected to read.
FRESH_SHARE = 0.1
# A file is rewritten for its deleted rows once these are at least so large a share, by default.
DELETED_SHARE = 0.05
# Bytes are worth rewriting if reads are expected to save a fifth of them per day: as many within five days.
LEAST_SAVING_PER_BYTE = 0.2
NOT_READ, TOO_LITTLE = "NOT_READ_SINCE_LAST_TURN", "SAVES_TOO_LITTLE"
"""Reason codes of offers that are not worthwhile."""


@dataclass(frozen=True)
class Offer:
    """What a table offers for a share of the budget.

    Attributes:
        saving: bytes that reads are expected not to read, per day, once the groups are rewritten.
        cost: bytes to rewrite.
        is_recorded: whether recorded reads say so; otherwise it is an assumption.
        is_read: whether a scan has read the table since its last rewrite; True if there was none, or if nobody knows.
        is_asked: whether the owner asks for the rewrite, whatever reads save.
    """

    saving: float
    cost: int
    is_recorded: bool
    is_read: bool = True
    is_asked: bool = False

    @classmethod
    def asked(cls, cost: int) -> Offer:
        """A rewrite that the owner asks for, and that nobody has planned.

        Args:
            cost: bytes to rewrite at most.
        """
        return cls(0.0, cost, is_recorded=False, is_asked=True)

    @classmethod
    def of(
        cls,
        groups: Sequence[Group],
        rate: ReadRate,
        table_bytes: int,
        target_bytes: int,
        correction: float = 1.0,
        is_read: bool = True,
    ) -> Offer:
        """Appraises the groups of a plan.

        Args:
            groups: the groups.
            rate: how the table is read.
            table_bytes: bytes of all of its files.
            target_bytes: size that its files should have.
            correction: by how much predictions for this table were wrong; see ``outcomes.correction``.
            is_read: whether a scan has read the table since its last rewrite; True if there was none.
        """
        saved = saved_per_scan(groups, rate.share_read, table_bytes, target_bytes)
        saving = saved * rate.scans_per_day * correction
        is_asked = any(isinstance(group, Concatenate) and group.removal is not None for group in groups)
        return cls(saving, sum(group.bytes for group in groups), rate.is_recorded, is_read, is_asked)

    @property
    def saving_per_byte(self) -> float:
        """Bytes that reads are expected to save per day, for each byte that is rewritten."""
        return self.saving / max(self.cost, 1)

    @property
    def is_worthwhile(self) -> bool:
        """Whether the rewrite is worth its bytes, now.

        A table that nobody has read since its last rewrite can wait until somebody does: until then, nothing is lost,
        and its next rewrite covers all that arrives meanwhile.
        """
        return self.objection is None

    @property
    def objection(self) -> str | None:
        """Why the rewrite is not worth its bytes: a reason code, and the same for people; None if it is."""
        if self.is_asked:
            return None
        if not self.is_read:
            return f"{NOT_READ}: no read was recorded yet, or since the last turn"
        if self.saving_per_byte < LEAST_SAVING_PER_BYTE:
            saved = f"reads would save {self.saving_per_byte:.2g} bytes per day for each byte rewritten"
            return f"{TOO_LITTLE}: {saved}, and a turn needs {LEAST_SAVING_PER_BYTE:g}"
        return None


def saved_per_scan(groups: Sequence[Group], share_read: float, table_bytes: int, target_bytes: int) -> float:
    """The bytes that a scan will not read once some groups are rewritten; opened files count as bytes.

    Files without an index are read whole, unless the records show that scans skip them by other means. Groups that the
    judge has chosen say by how much reads become cheaper. Files that are only concatenated are opened less often. A
    scan saves no more bytes than it reads.

    Args:
        groups: the groups.
        share_read: share of the table's bytes that a scan reads today.
        table_bytes: bytes of the table.
        target_bytes: size that files should have.
    """
    read = share_read * table_bytes
    unindexed = sum(group.bytes for group in groups if not isinstance(group, Concatenate) and not group.revision_id)
    judged = [group.read_cost for group in groups if group.read_cost is not None]
    saved = min(read, unindexed) * (1 - FRESH_SHARE)
    openings = 0.0
    if judged:
        saved += read * max(0.0, judged[0][0] - judged[-1][1]) / max(judged[0][0], 1e-9)
    for group in groups:
        if group.read_cost is None and (isinstance(group, Concatenate) or group.revision_id):
            openings += max(0, len(group.files) - _files_after(group, target_bytes)) * OPENING * target_bytes
            saved += share_read * DELETED_SHARE * group.bytes
    return min(read, saved) + share_read * openings


def _files_after(group: Group, target_bytes: int) -> int:
    return len(group.runs) if isinstance(group, Concatenate) else -(-group.bytes // max(target_bytes, 1))
