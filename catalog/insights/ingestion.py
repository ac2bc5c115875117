"""The commits of a table as rows: those in the log, and those that the service has kept below ``_use/ingestion``."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import partial

from pyspark.sql import Row

from catalog.epoch_millis import LAST_MILLIS
from catalog.insights.box_overlap import overlap_shares
from catalog.insights.commit_facts import commit_facts, file_lives
from catalog.insights.commit_rows import CommitRow, StoredCommit, merged_lines, parse_commits, with_intervals
from catalog.jvm.session import described_jobs
from catalog.jvm.vanished_files import read_again
from catalog.state.line_folder import FILE_NAME, LineFolder
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot

INGESTION_FOLDER = "ingestion"
# If there are more files than this, they are merged into one.
MOST_FILES = 100
# Without more files than these in the commits, their ranges are compared.
MAX_FILE_ACTIONS = 1_000_000
_ADVICE = "Its rows are left out. Delete the file, unless it is being written just now."


def ingestion_rows(table: ManagedTable) -> list[CommitRow]:
    """Returns a row per commit in the log or in the store, newest first; at most three Spark jobs."""
    snapshot = table.snapshot()
    kept = {commit.row.version: commit.row for commit in _stored(table) if commit.table_id == snapshot.table_id}
    logged = {row.version: row for row in logged_rows(snapshot)}
    both = {version: row.filled_from(kept[version]) if version in kept else row for version, row in logged.items()}
    return with_intervals({**kept, **both}.values())[::-1]


def record_commits(table: ManagedTable, keep_millis: int, now: int) -> int:
    """Keeps the rows of the commits since the last call, and deletes old files.

    Args:
        table: the table.
        keep_millis: how long rows are kept, in milliseconds.
        now: epoch milliseconds.

    Returns:
        The number of new rows.
    """
    snapshot, not_before = table.snapshot(), now - keep_millis
    newest = _newest_kept(table, snapshot.table_id)
    first = 0 if newest is None else newest.version + 1
    # Without a commit that is to be kept, the log is not read: it may be long, and would be read with every call.
    is_idle = first > snapshot.version or 0 < snapshot.committed_at < not_before
    rows = [] if is_idle else logged_rows(snapshot, first)
    before = [newest] if newest is not None and newest.version == first - 1 else []
    rows = [row for row in with_intervals([*before, *rows]) if row.version >= first and row.time >= not_before]
    if rows:
        number, lines = merged_lines([StoredCommit.of(snapshot.table_id, row) for row in rows])
        table.write_state(f"{INGESTION_FOLDER}/{number}-{uuid.uuid4().hex}.json", "\n".join(lines))
    _folder(table, not_before).merge(now, MOST_FILES)
    for name in table.list_state(INGESTION_FOLDER):
        match = FILE_NAME.fullmatch(name)
        if match is not None and int(match[1]) < not_before:
            table.delete_state(f"{INGESTION_FOLDER}/{name}")
    return len(rows)


def logged_rows(snapshot: TableSnapshot, first: int = 0) -> list[CommitRow]:
    """Returns a row per commit in the log, oldest first, without intervals.

    Args:
        snapshot: the newest version.
        first: leaves out earlier versions.
    """
    with described_jobs(snapshot.spark, f"USE ingestion: commits of {snapshot.location}"):
        found = read_again(lambda: commit_facts(snapshot, first).collect())
        facts = sorted(found, key=lambda fact: fact.version)
        if not facts:
            return []
        shares = _overlap(snapshot, facts)
    return [_row(fact, shares.get(fact.version)) for fact in facts]


def _overlap(snapshot: TableSnapshot, facts: list[Row]) -> Mapping[int, float]:
    """The shares of overlapping files by version, as far as the files before a version are known."""
    if snapshot.latest_revision is None:
        return {}
    actions, oldest = 0, facts[-1].version + 1
    for fact in reversed(facts):
        actions += fact.file_actions
        if actions > MAX_FILE_ACTIONS:
            break
        oldest = fact.version
    lives, incomplete_until = file_lives(snapshot, oldest)
    return {v: share for v, share in overlap_shares(lives).items() if v >= max(oldest, incomplete_until)}


def _row(fact: Row, overlap_share: float | None) -> CommitRow:
    names = (
        *("version", "writer", "user_name", "operation", "data_change", "files_added", "bytes_added", "rows_added"),
        *("small_files", "unindexed_bytes", "blocks_added", "cubes_touched"),
    )
    time = min(max(fact.time, 0), LAST_MILLIS)
    return CommitRow(time=time, overlap_share=overlap_share, **{name: fact[name] for name in names})


def _folder(table: ManagedTable, not_before: int = 0) -> LineFolder[StoredCommit]:
    return LineFolder(table, INGESTION_FOLDER, parse_commits, partial(merged_lines, not_before=not_before), _ADVICE)


def _stored(table: ManagedTable) -> list[StoredCommit]:
    folder = _folder(table)
    return [commit for name in folder.names() if FILE_NAME.fullmatch(name) for commit in folder.read(name) or ()]


def _newest_kept(table: ManagedTable, table_id: str) -> CommitRow | None:
    """The newest kept row of a table; files of an earlier table at the place may be there too."""
    folder = _folder(table)
    numbered = [(int(match[1]), name) for name in folder.names() if (match := FILE_NAME.fullmatch(name))]
    for _, name in sorted(numbered, reverse=True):
        rows = [commit.row for commit in folder.read(name) or () if commit.table_id == table_id]
        if rows:
            return max(rows, key=lambda row: row.version)
    return None
