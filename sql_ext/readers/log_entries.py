"""The tags and deletion vectors of live files, read from the Delta log: deltalake does not return them.

A file whose tags are not found, for any reason, counts as unindexed: it is read whole, which costs bytes and never
rows. Without its deletion vector, no file is read: ``DeltaFiles`` sees to it.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

logger = logging.getLogger(__name__)

Tags = Mapping[str, str]


@dataclass(frozen=True)
class LogEntry:
    """What the log says of a live file, and deltalake does not.

    Attributes:
        tags: of the index.
        deletion_vector: its descriptor; None without deleted rows.
        times_are_known: False if deltalake may return other times than its statistics have.
    """

    tags: Tags
    deletion_vector: Mapping[str, Any] | None
    times_are_known: bool


LOG_FOLDER = "_delta_log"
"""Folder of the log below a table."""
_STATISTICS = "add.stats_parsed."
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(
    r"(\d{20})\.checkpoint(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<id>[0-9a-f-]{36}))?\.(?:parquet|json)"
)


def entries_of_files(files: pafs.FileSystem, version: int) -> dict[str, LogEntry]:
    """Returns the entries of the files of a version by path, as in the log; none if the log cannot be read.

    Args:
        files: the table's folder as a file system.
        version: version of the table.
    """
    try:
        return _entries(files, version)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        logger.warning("The index of the table cannot be read, so every file is read: %s", error)
        return {}


def _entries(files: pafs.FileSystem, version: int) -> dict[str, LogEntry]:
    names = [info.base_name for info in files.get_file_info(pafs.FileSelector(LOG_FOLDER)) if info.is_file]
    start, checkpoint = _newest_checkpoint(names, version)
    entries: dict[str, LogEntry] = {}
    for name in checkpoint:
        entries.update(_of_checkpoint(files, f"{LOG_FOLDER}/{name}"))
    commits = sorted(name for name in names if (m := _COMMIT.fullmatch(name)) and start < int(m[1]) <= version)
    for name in commits:
        _apply(entries, list(_lines(files, f"{LOG_FOLDER}/{name}")))
    return entries


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


def _of_checkpoint(files: pafs.FileSystem, name: str) -> Iterator[tuple[str, LogEntry]]:
    if name.endswith(".json"):
        actions = list(_lines(files, name))
        sidecars = [action["sidecar"]["path"] for action in actions if action.get("sidecar")]
        for action in actions:
            yield from _added(action.get("add"), times_are_known=True)
    else:
        with files.open_input_file(name) as source:
            table = pq.ParquetFile(source)
            columns = set(table.schema_arrow.names)
            yield from _rows(table, columns)
            sidecars = _sidecars(table) if "sidecar" in columns else []
    for sidecar in sidecars:
        path = sidecar if "/" in sidecar else f"{LOG_FOLDER}/_sidecars/{sidecar}"
        with files.open_input_file(path) as source:
            part = pq.ParquetFile(source)
            yield from _rows(part, set(part.schema_arrow.names))


def _rows(table: pq.ParquetFile, columns: set[str]) -> Iterator[tuple[str, LogEntry]]:
    if "add" not in columns:
        return
    # deltalake reads INT96 as nanoseconds, which end in 2262, and returns other times for those beyond.
    leaves = [table.schema.column(number) for number in range(len(table.schema))]
    is_known = not any(leaf.physical_type == "INT96" and leaf.path.startswith(_STATISTICS) for leaf in leaves)
    for batch in table.iter_batches(columns=["add.path", "add.tags", "add.deletionVector"]):
        for add in batch.column(0).to_pylist():
            yield from _added(add, times_are_known=is_known)


def _sidecars(table: pq.ParquetFile) -> list[str]:
    found = table.read(columns=["sidecar.path"]).column(0).to_pylist()
    return [sidecar["path"] for sidecar in found if sidecar is not None and sidecar.get("path")]


def _added(add: Mapping[str, Any] | None, *, times_are_known: bool) -> Iterator[tuple[str, LogEntry]]:
    if add is not None and add.get("path"):
        # Arrow reads a map as a list of pairs.
        yield add["path"], LogEntry(dict(add.get("tags") or {}), add.get("deletionVector"), times_are_known)


def _lines(files: pafs.FileSystem, name: str) -> Iterator[dict[str, Any]]:
    with files.open_input_stream(name) as source:
        text = source.read().decode("utf-8")
    for line in text.split("\n"):
        if line.strip():
            yield json.loads(line)


def _apply(entries: dict[str, LogEntry], actions: Sequence[Mapping[str, Any]]) -> None:
    # One commit removes a file and adds it with another deletion vector, in any order.
    for action in actions:
        if action.get("remove") is not None:
            entries.pop(action["remove"]["path"], None)
    for action in actions:
        entries.update(_added(action.get("add"), times_are_known=True))
