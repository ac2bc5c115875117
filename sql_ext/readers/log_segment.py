"""The files of the Delta log from which a version is read: the newest checkpoint, and the commits after it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow.fs as pafs

LOG = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(
    r"(\d{20})\.checkpoint(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<id>[0-9a-f-]{36}))?\.(?:parquet|json)"
)


@dataclass(frozen=True)
class LogSegment:
    """The files of a version.

    Attributes:
        checkpoint: version of the newest complete checkpoint; -1 without one.
        checkpoint_files: its files, as paths in the table's folder.
        commits: those after it, in order, likewise.
        commit_bytes: their size.
    """

    checkpoint: int
    checkpoint_files: tuple[str, ...]
    commits: tuple[str, ...]
    commit_bytes: int

    @classmethod
    def of(cls, files: pafs.FileSystem, version: int) -> LogSegment:
        """Lists the log.

        Args:
            files: the table's folder.
            version: of the table.
        """
        sizes = {info.base_name: info.size for info in files.get_file_info(pafs.FileSelector(LOG)) if info.is_file}
        start, checkpoint = _newest_checkpoint(list(sizes), version)
        commits = sorted(name for name in sizes if (m := _COMMIT.fullmatch(name)) and start < int(m[1]) <= version)
        return cls(start, _below_log(checkpoint), _below_log(commits), sum(sizes[name] for name in commits))


def newest_version(files: pafs.FileSystem) -> int | None:
    """Returns the newest version of which the log has a file; None without any.

    Args:
        files: the table's folder.
    """
    names = [info.base_name for info in files.get_file_info(pafs.FileSelector(LOG, allow_not_found=True))]
    found = (_COMMIT.fullmatch(name) or _CHECKPOINT.fullmatch(name) for name in names)
    return max((int(match[1]) for match in found if match is not None), default=None)


def _below_log(names: list[str]) -> tuple[str, ...]:
    return tuple(f"{LOG}/{name}" for name in names)


def _newest_checkpoint(names: list[str], version: int) -> tuple[int, list[str]]:
    """The version and the files of the newest complete checkpoint; -1 and none without one."""
    found: dict[tuple[int, str], list[str]] = {}
    parts: dict[tuple[int, str], int] = {}
    for name in names:
        match = _CHECKPOINT.fullmatch(name)
        if match is not None and int(match[1]) <= version:
            key = (int(match[1]), match["parts"] or match["id"] or "")
            found.setdefault(key, []).append(name)
            parts[key] = int(match["parts"] or 1)
    complete = [key for key, of_key in found.items() if len(of_key) == parts[key]]
    if not complete:
        return -1, []
    newest = max(complete)
    return newest[0], found[newest]


def log_lines(files: pafs.FileSystem, name: str) -> Iterator[dict[str, Any]]:
    """Yields the actions of a file of JSON lines.

    Args:
        files: the table's folder.
        name: path of the file in it.
    """
    with files.open_input_stream(name) as source:
        text = source.read().decode("utf-8")
    for line in text.split("\n"):
        if line.strip():
            yield json.loads(line)
