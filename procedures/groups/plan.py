"""A plan as a value: what would be rewritten and why. A dry run prints it, and the runner takes it as it is."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from catalog.columns.key_columns import KeyOrder
from catalog.counted_nouns import agreeing, counted

# Reason code of files that a run leaves to the next one.
ARRIVED = "ARRIVED_DURING_RUN"


@dataclass(frozen=True)
class InputFile:
    """A file to rewrite, identified by path and deletion vector together.

    Attributes:
        path: as in the log.
        deletion_vector: unique id of its deletion vector, '' without one.
        size: bytes.
        rows: live rows, None when the log does not tell.
        level: level of its largest block; -1 when unindexed.
        first_time: first modification time (epoch ms) of the files its rows came from.
        last_time: last one.
        rewrites: how many times optimizations have written the rows of an unindexed file, on average; None = the log
            tells.
    """

    path: str
    deletion_vector: str
    size: int
    rows: int | None
    level: int
    first_time: int
    last_time: int
    rewrites: float | None = None


@dataclass(frozen=True)
class FileRun:
    """Files of one table partition that become one file; their rows stay in their order.

    Attributes:
        paths: of the files, as in the log, in their order.
        tier: size tier of the file that they become, whatever its size; None where tiers do not count.
    """

    paths: tuple[str, ...]
    tier: int | None = None


@dataclass(frozen=True)
class RowRemoval:
    """Live rows that a rewrite leaves out, because a later row of their key exists.

    Attributes:
        rows: ``file`` and ``position`` BIGINT of each; see ``outdated_rows``.
        count: how many.
        order: the key, and what orders its rows.
        dependencies: path, and deletion vector or '', of the other files that have later rows. The rewrite is valid
            as long as they are unchanged.
    """

    rows: DataFrame
    count: int
    order: KeyOrder
    dependencies: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class FileGroup:
    """Files that are rewritten together, in one commit.

    Attributes:
        strategy: name of the strategy that chose them.
        revision_id: revision whose tree they join; 0 = the newest, made or extended if need be.
        reason: code and values, e.g. ``LEVEL_0_CUBE_A_BLOCKS_3``.
        files: what is read and removed, exactly.
        note: one sentence for people.
        weight_span: length of the range of weights that the rows come from, as a share of all weights.
        runs: where rows are not laid out anew: each run becomes a file, and files in no run have no rows left. The
            revision is then that of the files, 0 for unindexed ones.
        removal: live rows that are left out; None if all stay. Only with ``runs``.
        rows_per_file: rows of a file at most, so that a run becomes several files; None = each run becomes one. Only
            with ``runs``.
        plan_group: number of the group in a stored plan; None for what a strategy has chosen.
    """

    strategy: str
    revision_id: int
    reason: str
    files: tuple[InputFile, ...]
    note: str = ""
    weight_span: float = 1.0
    runs: tuple[FileRun, ...] | None = None
    removal: RowRemoval | None = None
    rows_per_file: int | None = None
    plan_group: int | None = None

    @property
    def bytes(self) -> int:
        """Bytes to read."""
        return sum(f.size for f in self.files)

    @property
    def rows(self) -> int | None:
        """Rows to read; None when the log does not tell."""
        rows = [f.rows for f in self.files]
        return None if any(r is None for r in rows) else sum(r or 0 for r in rows)


@dataclass(frozen=True)
class SkippedGroup:
    """A group that qualified and was passed over, with the reason."""

    strategy: str
    reason: str
    files: int
    bytes: int
    note: str


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

    def left(self, group: FileGroup) -> SkippedGroup | None:
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
class Selection:
    """What one strategy finds: at most one group, and what it passed over on the way."""

    group: FileGroup | None = None
    skipped: tuple[SkippedGroup, ...] = ()
    note: str = ""


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
    """

    version: int
    groups: tuple[FileGroup, ...]
    skipped: tuple[SkippedGroup, ...] = ()
    notes: tuple[str, ...] = field(default=())
    warnings: tuple[str, ...] = ()
    arrived: SkippedGroup | None = None
    committed_at: int = 0
