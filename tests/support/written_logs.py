"""Delta tables whose log and files a test writes by hand, without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

FEATURES = ["columnMapping", "timestampNtz"]


def field(name: str, kind: Any, **metadata: Any) -> dict[str, Any]:
    """A field of a schema as the log has it."""
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def struct(*fields: Mapping[str, Any]) -> dict[str, Any]:
    """A type with fields as the log has it."""
    return {"type": "struct", "fields": list(fields)}


def write_delta_table(
    path: Path,
    fields: Sequence[Mapping[str, Any]],
    files: Mapping[str, pa.Table],
    configuration: Mapping[str, str] | None = None,
    tags: Mapping[str, Mapping[str, str]] | None = None,
) -> str:
    """Writes version 0 of a table.

    Args:
        path: folder, which does not exist.
        fields: of the schema.
        files: rows by the path of the file as the log has it.
        configuration: table properties.
        tags: by path.

    Returns:
        The path.
    """
    (path / "_delta_log").mkdir(parents=True)
    metadata = {
        "id": "made-by-hand",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(struct(*fields)),
        "partitionColumns": [],
        "configuration": dict(configuration or {}),
        "createdTime": 0,
    }
    actions: list[Mapping[str, Any]] = [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": FEATURES,
                "writerFeatures": FEATURES,
            }
        },
        {"metaData": metadata},
    ]
    for name, rows in files.items():
        target = path / unquote(name)
        pq.write_table(rows, target)
        add = {"path": name, "partitionValues": {}, "size": target.stat().st_size, "modificationTime": 0}
        actions.append({"add": {**add, "dataChange": True, "tags": dict((tags or {}).get(name, {}))}})
    lines = "\n".join(map(json.dumps, actions))
    (path / "_delta_log" / f"{0:020}.json").write_text(lines + "\n", encoding="utf-8")
    return str(path)
