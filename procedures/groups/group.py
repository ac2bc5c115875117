"""A group: files that one commit replaces, and what becomes of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from pyspark.sql import DataFrame

from catalog.columns.key_columns import KeyOrder
from catalog.files.arrays import UNKNOWN, Integers
from catalog.files.file_table import FileTable


@dataclass(frozen=True, slots=True)
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

    @classmethod
    def of(cls, files: FileTable, positions: Sequence[int] | Integers) -> tuple[InputFile, ...]:
        """Some files of a table.

        Args:
            files: the table.
            positions: of the files, in the order wanted.
        """
        at = np.asarray(positions, np.int64)
        is_indexed = (files.revision[at] != 0).tolist()
        columns = (
            files.path[at],
            files.deletion_vector[at],
            files.size[at].tolist(),
            files.rows[at].tolist(),
            np.maximum(files.levels[at], 0).tolist(),
            files.first_time[at].tolist(),
            files.last_time[at].tolist(),
            files.rewrites[at].tolist(),
        )
        return tuple(
            cls(
                path,
                vector,
                size,
                None if rows == UNKNOWN else rows,
                level if indexed else -1,
                first_time,
                last_time,
                None if indexed else rewrites,
            )
            for indexed, path, vector, size, rows, level, first_time, last_time, rewrites in zip(
                is_indexed, *columns, strict=True
            )
        )


@dataclass(frozen=True)
class FileRun:
    """Files of one table partition that become one file; their rows stay in their order.

    Attributes:
        paths: of the files, as in the log, in their order.
        tier: size tier of the file that they become, whatever its size; None where tiers do not count.
    """

    paths: tuple[str, ...]
    tier: int | None = None

    @classmethod
    def of(cls, files: FileTable, positions: Sequence[int] | Integers) -> FileRun:
        """A run of some files of a table, which has the largest of their tiers.

        Args:
            files: the table.
            positions: of the files, in the order wanted; at least one.
        """
        at = np.asarray(positions, np.int64)
        return cls(tuple(files.path[at].tolist()), int(files.tier[at].max()) or None)


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
class Expectation:
    """What a consolidation plan says of a group beside its files, for people.

    Attributes:
        partition: values of the partition columns of the files, '' without any.
        files: how many files are expected instead.
        depth_before: how many files of the set that the group is a part of a point lies in, at most.
        depth_after: the same when all groups of the set are rewritten.
    """

    partition: str
    files: int
    depth_before: int
    depth_after: int


@dataclass(frozen=True)
class Group:
    """Files that are rewritten together, in one commit: a ``Relayout`` or a ``Concatenate``. It costs ``bytes``.

    Attributes:
        strategy: name of the strategy that chose them.
        revision_id: number of a revision; each kind of group says which.
        reason: code and values, e.g. ``LEVEL_0_CUBE_A_BLOCKS_3``.
        files: what is read and removed, exactly.
        note: one sentence for people.
        read_cost: what reads cost before the group is rewritten and are expected to cost afterwards, in proportion to a
            fresh layout, once the groups before it in the plan are rewritten; None where nobody judged the group.
    """

    strategy: str
    revision_id: int
    reason: str
    files: tuple[InputFile, ...]
    note: str = ""
    read_cost: tuple[float, float] | None = field(default=None, kw_only=True)

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
class Relayout(Group):
    """Files whose rows are placed anew: by the tree of revision ``revision_id``; 0 = the newest, made if need be.

    Attributes:
        weight_span: length of the range of weights that the rows come from, as a share of all weights.
    """

    weight_span: float = 1.0


@dataclass(frozen=True)
class Concatenate(Group):
    """Runs of files each of which becomes files with the same rows in their order; all are of one revision.

    Attributes:
        runs: each run becomes a file. Files in no run have no rows left.
        removal: live rows that are left out; None if all stay.
        rows_per_file: rows of a file at most, so that a run becomes several files; None = each run becomes one.
        plan_group: number of the group in a consolidation plan; None for what a strategy has chosen.
        expected: what that plan says of the group; None for what a strategy has chosen.

    Raises:
        ValueError: a run has a file that is not among the files, or a file with rows is in no run.
    """

    runs: tuple[FileRun, ...] = field(kw_only=True)
    removal: RowRemoval | None = None
    rows_per_file: int | None = None
    plan_group: int | None = None
    expected: Expectation | None = None

    def __post_init__(self) -> None:
        in_runs = [path for run in self.runs for path in run.paths]
        kept = frozenset(in_runs)
        if len(kept) < len(in_runs) or not kept <= {file.path for file in self.files}:
            raise ValueError("Each file of a run has to be one of the files of the group, and in one run only.")
        lost = [file.path for file in self.files if file.path not in kept and file.rows != 0]
        if lost and self.removal is None:
            raise ValueError(f"{len(lost)} files that may have rows are in no run, such as {lost[0]}.")


@dataclass(frozen=True)
class SkippedGroup:
    """A group that qualified and was passed over, with the reason.

    Attributes:
        strategy: name of the strategy that passed it over; '' if it is left alone whatever strategies choose.
        reason: code.
        files: how many.
        bytes: of these files.
        note: one sentence for people.
        read_cost: what reads cost, in proportion to a fresh layout; None where nobody judged it.
    """

    strategy: str
    reason: str
    files: int
    bytes: int
    note: str
    read_cost: float | None = None
