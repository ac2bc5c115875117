"""The tags and deletion vectors of live files, read from the Delta log: deltalake does not return them.

A file whose tags are not found, for any reason, counts as unindexed: it is read whole, which costs bytes and never
rows. Without its deletion vector, no file is read: ``DeltaFiles`` sees to it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from sys import intern
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from sql_ext.readers.log_segment import LOG, LogSegment, log_lines

logger = logging.getLogger(__name__)

Tags = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LogEntry:
    """What the log says of a live file, and deltalake does not.

    Attributes:
        tags: of the index.
        deletion_vector: its descriptor; None without deleted rows.
        times_are_known: False if deltalake returns other times than its statistics have.
    """

    tags: Tags
    deletion_vector: Mapping[str, Any] | None
    times_are_known: bool


_STATISTICS = "add.stats_parsed."
_FIELDS = ("path", "tags", "deletionVector")
# deltalake reads INT96 as nanoseconds, which end in 2262, and returns other times for those beyond.
_MOST_MILLIS = (2**63 - 1) // 1_000_000 - 1
# Objects of Python take several times the memory of the rows that they are made of.
_ROWS_AT_ONCE = 5_000


def entries_of_files(files: pafs.FileSystem, version: int) -> dict[str, LogEntry]:
    """Returns the entries of the files of a version by path, as in the log; none if the log cannot be read.

    Args:
        files: the table's folder as a file system.
        version: version of the table.
    """
    try:
        return _entries(files, version)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, pa.ArrowException) as error:
        logger.warning("The index of the table cannot be read, so every file is read: %s", error)
        return {}


def _entries(files: pafs.FileSystem, version: int) -> dict[str, LogEntry]:
    segment = LogSegment.of(files, version)
    entries: dict[str, LogEntry] = {}
    for name in segment.checkpoint_files:
        entries.update(_of_checkpoint(files, name))
    for name in segment.commits:
        _apply(entries, list(log_lines(files, name)))
    return entries


def _of_checkpoint(files: pafs.FileSystem, name: str) -> Iterator[tuple[str, LogEntry]]:
    if name.endswith(".json"):
        actions = list(log_lines(files, name))
        sidecars = [action["sidecar"]["path"] for action in actions if action.get("sidecar")]
        for action in actions:
            yield from _added(action.get("add"), times_are_known=True)
    else:
        with files.open_input_file(name) as source:
            table = _parquet(source)
            columns = set(table.schema_arrow.names)
            yield from _rows(table, columns)
            sidecars = _sidecars(table) if "sidecar" in columns else []
    for sidecar in sidecars:
        path = sidecar if "/" in sidecar else f"{LOG}/_sidecars/{sidecar}"
        with files.open_input_file(path) as source:
            part = _parquet(source)
            yield from _rows(part, set(part.schema_arrow.names))


def _rows(table: pq.ParquetFile, columns: set[str]) -> Iterator[tuple[str, LogEntry]]:
    if "add" not in columns:
        return
    leaves = [table.schema.column(number) for number in range(len(table.schema))]
    times = [leaf.path for leaf in leaves if leaf.physical_type == "INT96" and leaf.path.startswith(_STATISTICS)]
    for batch in table.iter_batches(_ROWS_AT_ONCE, columns=[*(f"add.{name}" for name in _FIELDS), *times]):
        adds = batch.column(0)
        fields = {field.name: values for field, values in zip(adds.type, adds.flatten(), strict=True)}
        names = [name for name in _FIELDS if name in fields]
        rows = zip(*(fields[name].to_pylist() for name in names), strict=True)
        for row, is_known in zip(rows, _are_in_nanoseconds(fields.get("stats_parsed"), len(adds)), strict=True):
            yield from _added(dict(zip(names, row, strict=True)), times_are_known=is_known)


def _parquet(source: pa.NativeFile) -> pq.ParquetFile:
    # All days of INT96 fit into milliseconds. As microseconds, those before -4712 wrap around, some to present days.
    return pq.ParquetFile(source, coerce_int96_timestamp_unit="ms")


def _are_in_nanoseconds(statistics: pa.StructArray | None, count: int) -> list[bool]:
    """Whether all times of a row can be told in nanoseconds.

    Args:
        statistics: structs of milliseconds; None without any.
        count: of rows.
    """
    found = np.ones(count, bool)
    todo = [] if statistics is None else [statistics]
    while todo:
        values = todo.pop()
        if pa.types.is_struct(values.type):
            todo += values.flatten()
        else:
            millis = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
            found &= (millis >= -_MOST_MILLIS) & (millis <= _MOST_MILLIS)
    answers: list[bool] = found.tolist()
    return answers


def _sidecars(table: pq.ParquetFile) -> list[str]:
    found = table.read(columns=["sidecar.path"]).column(0).to_pylist()
    return [sidecar["path"] for sidecar in found if sidecar is not None and sidecar.get("path")]


def _added(add: Mapping[str, Any] | None, *, times_are_known: bool) -> Iterator[tuple[str, LogEntry]]:
    if add is not None and add.get("path"):
        # Arrow reads a map as a list of pairs, and makes each name of a tag anew.
        tags = {intern(name): value for name, value in dict(add.get("tags") or {}).items()}
        yield add["path"], LogEntry(tags, _vector(add.get("deletionVector")), times_are_known)


def _vector(descriptor: Any) -> Mapping[str, Any] | None:
    if descriptor is None:
        return None
    texts = (descriptor["storageType"], descriptor["pathOrInlineDv"])
    numbers = (descriptor["sizeInBytes"], descriptor["cardinality"], descriptor.get("offset") or 0)
    if not all(isinstance(t, str) for t in texts) or not all(isinstance(n, int) and 0 <= n < 2**63 for n in numbers):
        raise ValueError(f"the deletion vector {descriptor!r:.200} has a wrong field")
    found: Mapping[str, Any] = descriptor
    return found


def _apply(entries: dict[str, LogEntry], actions: Sequence[Mapping[str, Any]]) -> None:
    # One commit removes a file and adds it with another deletion vector, in any order.
    for action in actions:
        if action.get("remove") is not None:
            entries.pop(action["remove"]["path"], None)
    for action in actions:
        entries.update(_added(action.get("add"), times_are_known=True))
