"""A plan as a value: what would be rewritten and why. A dry run prints it, and the loop rewrites its groups."""

from __future__ import annotations

from dataclasses import dataclass, field

from catalog.counted_nouns import agreeing, counted
from procedures.groups.group import Group, SkippedGroup

# Reason code of files that a run leaves to the next one.
ARRIVED = "ARRIVED_DURING_RUN"
# Reason code of files that a run leaves alone because statements of other sessions may be reading them.
CHANGED = "CHANGED_RECENTLY"


@dataclass(frozen=True)
class Arrivals:
    """Which unindexed files a run leaves to the next one.

    Attributes:
        since: when the table's version was committed that the run began with, or planned with after its last conflict;
            epoch milliseconds by the clock of the table's storage, as the times of files are.
        worth_bytes: a group of files that all arrived later is left unless it has so many bytes.
    """

    since: int
    worth_bytes: int

    def left(self, group: Group) -> SkippedGroup | None:
        """The group as one that is left to the next run; None when it is to be rewritten in this one.

        Args:
            group: the unindexed files that would be rewritten next, oldest first.
        """
        if group.bytes >= self.worth_bytes or any(file.first_time <= self.since for file in group.files):
            return None
        count = len(group.files)
        note = f"{counted(count, 'file')} arrived during the run; the next run indexes {agreeing(count, 'it', 'them')}"
        return SkippedGroup(group.strategy, ARRIVED, len(group.files), group.bytes, note)


@dataclass(frozen=True)
class Plan:
    """One iteration of an optimization.

    Attributes:
        version: version of the table that it was made for.
        groups: groups of one strategy that share no file, to be rewritten in any order or at the same time.
        skipped: groups that qualified and were passed over.
        notes: why strategies found nothing.
        warnings: mistakes in the table's properties.
        arrived: unindexed files that are left to the next run; None when there are none.
        committed_at: when the version was committed, in epoch milliseconds by the clock of the table's storage.
        changed: files that are left alone because of recent statements; None when there are none.
        strategy: name of the strategy that was asked for the groups, which may name another one; '' for a stored plan.
    """

    version: int
    groups: tuple[Group, ...]
    skipped: tuple[SkippedGroup, ...] = ()
    notes: tuple[str, ...] = field(default=())
    warnings: tuple[str, ...] = ()
    arrived: SkippedGroup | None = None
    committed_at: int = 0
    changed: SkippedGroup | None = None
    strategy: str = ""
