"""The rows of ``<table>.ingestion``: one per commit, as values and as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import Any

from catalog.epoch_millis import moment
from catalog.state.line_folder import MergedLines
from catalog.state.state_files import Fields, Unreadable, parse

INGESTION_SCHEMA = (
    "version bigint, time timestamp_ltz, writer string, user_name string, operation string, data_change boolean, "
    "files_added bigint, bytes_added bigint, rows_added bigint, small_files bigint, unindexed_share double, "
    "blocks_added bigint, cubes_touched bigint, blocks_per_cube double, overlap_share double, interval_ms bigint"
)
_MOST = 2**63 - 1


@dataclass(frozen=True)
class CommitRow:
    """A commit of a table.

    Attributes:
        version: version that it made.
        time: epoch milliseconds.
        writer: engine and its version.
        user_name: the user, where the engine records one.
        operation: such as ``WRITE``.
        data_change: whether it changes rows; rewrites do not.
        files_added: new files.
        bytes_added: their bytes.
        rows_added: their rows; None if a file lacks statistics.
        small_files: those below half the target file size.
        unindexed_bytes: bytes of those without blocks of the index.
        blocks_added: their blocks.
        cubes_touched: the cubes of these blocks.
        overlap_share: share of the new files whose ranges overlap earlier files; None if unknown.
        interval_ms: milliseconds since the commit before; None if unknown.
    """

    version: int
    time: int
    writer: str | None
    user_name: str | None
    operation: str | None
    data_change: bool
    files_added: int
    bytes_added: int
    rows_added: int | None
    small_files: int
    unindexed_bytes: int
    blocks_added: int
    cubes_touched: int
    overlap_share: float | None = None
    interval_ms: int | None = None

    @property
    def unindexed_share(self) -> float | None:
        """Share of the new bytes that are not indexed; None without new bytes."""
        return self.unindexed_bytes / self.bytes_added if self.bytes_added > 0 else None

    @property
    def blocks_per_cube(self) -> float | None:
        """New blocks per cube; None without new blocks."""
        return self.blocks_added / self.cubes_touched if self.cubes_touched > 0 else None

    @property
    def shown(self) -> Mapping[str, Any]:
        """Its values by the columns of ``INGESTION_SCHEMA``."""
        values = {**asdict(self), "time": moment(self.time)}
        values |= {"unindexed_share": self.unindexed_share, "blocks_per_cube": self.blocks_per_cube}
        return {name: values[name] for name in COLUMNS}

    def filled_from(self, other: CommitRow) -> CommitRow:
        """Returns the row with values of another one in place of those that are None."""
        missing = {f.name: getattr(other, f.name) for f in fields(self) if getattr(self, f.name) is None}
        return replace(self, **missing)


COLUMNS = tuple(column.split()[0] for column in INGESTION_SCHEMA.split(", "))


@dataclass(frozen=True)
class StoredCommit:
    """One line of a file below ``_use/ingestion``.

    Attributes:
        line: the line as it is written.
        table_id: Delta's metadata id.
        row: the commit.
    """

    line: str
    table_id: str
    row: CommitRow

    @classmethod
    def of(cls, table_id: str, row: CommitRow) -> StoredCommit:
        """Makes the line of a row."""
        return cls(json.dumps({"table_id": table_id, **asdict(row)}, separators=(",", ":")), table_id, row)


def parse_commits(text: str) -> list[StoredCommit] | Unreadable:
    """Parses a file; an invalid line makes it unreadable, because the file may be incomplete."""
    commits = []
    for number, line in enumerate(text.split("\n"), start=1):
        commit = parse(line, partial(_stored_commit, line))
        if isinstance(commit, Unreadable):
            return Unreadable(commit.code, f"line {number}: {commit.detail}")
        commits.append(commit)
    return commits


def merged_lines(commits: Iterable[StoredCommit], not_before: int = 0) -> MergedLines:
    """Returns one line per table and version, with the time of the newest commit as the number of their file.

    Args:
        commits: at least one.
        not_before: leaves out earlier commits, epoch milliseconds; the newest one stays.
    """
    by_key = {(commit.table_id, commit.row.version): commit for commit in commits}
    ordered = sorted(by_key.values(), key=lambda commit: (commit.row.time, commit.row.version))
    kept = [commit for commit in ordered if commit.row.time >= not_before] or ordered[-1:]
    return MergedLines(kept[-1].row.time, [commit.line for commit in kept])


def with_intervals(rows: Iterable[CommitRow]) -> list[CommitRow]:
    """Returns the rows by version, with the time since the version before where both are known."""
    ordered = sorted(rows, key=lambda row: row.version)
    known = {row.version: row.time for row in ordered}
    return [
        row
        if row.interval_ms is not None or row.version - 1 not in known
        else replace(row, interval_ms=row.time - known[row.version - 1])
        for row in ordered
    ]


def _stored_commit(line: str, node: Fields) -> StoredCommit:
    return StoredCommit(line, node.text("table_id"), _row(node))


def _row(node: Fields) -> CommitRow:
    return CommitRow(
        version=node.whole_number("version", most=_MOST),
        time=node.whole_number("time"),
        writer=node.text_or_none("writer"),
        user_name=node.text_or_none("user_name"),
        operation=node.text_or_none("operation"),
        data_change=node.flag("data_change"),
        files_added=node.whole_number("files_added", most=_MOST),
        bytes_added=node.whole_number("bytes_added", most=_MOST),
        rows_added=node.whole_or_none("rows_added", _MOST),
        small_files=node.whole_number("small_files", most=_MOST),
        unindexed_bytes=node.whole_number("unindexed_bytes", most=_MOST),
        blocks_added=node.whole_number("blocks_added", most=_MOST),
        cubes_touched=node.whole_number("cubes_touched", most=_MOST),
        overlap_share=node.share_or_none("overlap_share"),
        interval_ms=node.whole_or_none("interval_ms"),
    )
