"""Metadata of a domain in the Delta log, such as the columns of CLUSTER BY; deltalake does not return them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow.fs as pafs
import pyarrow.parquet as pq

from sql_ext.readers.log_segment import LogSegment, log_lines

_KEY = "domainMetadata"


def domain_metadata(files: pafs.FileSystem, version: int, domain: str) -> str | None:
    """Returns the configuration of a domain; None without one.

    Args:
        files: the table's folder.
        version: of the table.
        domain: such as ``delta.clustering``.
    """
    segment = LogSegment.of(files, version)
    found: str | None = None
    for name in (*segment.checkpoint_files, *segment.commits):
        for action in _of_file(files, name):
            if action["domain"] == domain:
                found = None if action.get("removed") else str(action["configuration"])
    return found


def _of_file(files: pafs.FileSystem, name: str) -> Iterator[Mapping[str, Any]]:
    if name.endswith(".json"):
        yield from (action[_KEY] for action in log_lines(files, name) if action.get(_KEY))
        return
    with files.open_input_file(name) as source:
        table = pq.ParquetFile(source)
        if _KEY in table.schema_arrow.names:
            yield from (action for action in table.read(columns=[_KEY]).column(0).to_pylist() if action is not None)
