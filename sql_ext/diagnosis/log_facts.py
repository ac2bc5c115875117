"""What the log itself tells: its length, tiny commits, and deleted rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow.fs as pafs

from sql_ext.readers.delta_files import DeltaFiles, reading
from sql_ext.readers.log_segment import LOG, LogSegment

_COMMIT = re.compile(r"(\d{20})\.json")
_LOOKED_AT = 20
_TINY = 1_000_000
# The bodies of larger commits are not read: they are no tiny ones.
_LONGEST_BODY = 256_000
_THREADS = 8


@dataclass(frozen=True)
class LogFacts:
    """The log of a version.

    Attributes:
        commits: number of commits that the folder still has.
        since_checkpoint: commits after the newest checkpoint, which every reader loads one by one.
        bytes: size of the folder's files, without those in folders of it.
        tiny_commits: commits among the last ones that added files with less than 1 MB together.
        looked_at: how many of the last commits were read.
    """

    commits: int
    since_checkpoint: int
    bytes: int
    tiny_commits: int
    looked_at: int


def log_facts(table: DeltaFiles) -> LogFacts:
    """Lists the log and reads the last commits.

    Args:
        table: a version.

    Raises:
        FileSystemError: the log cannot be read.
    """
    files = table.file_system
    with reading(table.location):
        found = files.get_file_info(pafs.FileSelector(LOG))
        commits = {int(m[1]): info for info in found if (m := _COMMIT.fullmatch(info.base_name))}
        segment = LogSegment.of(files, table.version)
        last = sorted(version for version in commits if version <= table.version)[-_LOOKED_AT:]
        with ThreadPoolExecutor(_THREADS) as pool:
            added = list(pool.map(lambda version: _added_bytes(files, commits[version]), last))
    return LogFacts(
        len(commits),
        len(segment.commits),
        sum(info.size or 0 for info in found if info.is_file),
        sum(size is not None and 0 < size < _TINY for size in added),
        len(last),
    )


def _added_bytes(files: pafs.FileSystem, commit: pafs.FileInfo) -> int | None:
    """Bytes of the files that a commit added; None if its body is long."""
    if (commit.size or 0) > _LONGEST_BODY:
        return None
    with files.open_input_stream(commit.path) as source:
        lines = source.read().decode("utf-8").split("\n")
    actions = (json.loads(line) for line in lines if '"add"' in line)
    return sum(int(action["add"].get("size", 0)) for action in actions if action.get("add"))


def deleted_rows(table: DeltaFiles, paths: Iterable[str]) -> tuple[int, int]:
    """Returns the number of rows that deletion vectors mark as deleted, and that of their files.

    Args:
        table: a version.
        paths: of its live files, as in the log.

    Raises:
        FileSystemError: the log does not say which rows of a file are deleted.
    """
    if "deletionVectors" not in (table.table.protocol().reader_features or ()):
        return 0, 0
    entries = (table.entry(path) for path in paths)
    counts = [int(entry.deletion_vector["cardinality"]) for entry in entries if entry and entry.deletion_vector]
    return sum(counts), len(counts)
