"""The size of a table, known before Spark starts."""

from __future__ import annotations

import os
from pathlib import Path

from catalog.locations import local_path
from catalog.sql_names import name_parts

_SMALL_BYTES = 200_000_000
_MOST_FILES = 10_000


def is_small(name: str, warehouse: Path | None) -> bool:
    """Returns whether a table is on this machine and so small that compilation takes longer than it saves.

    Args:
        name: name or path of the table, as users write it.
        warehouse: folder of named tables, if there is one.
    """
    folder = _folder(name, warehouse)
    if folder is None or not folder.is_dir():
        return False
    files = size = 0
    for place, _, names in os.walk(folder):
        for file in names:
            files += 1
            try:
                size += (Path(place) / file).stat().st_size
            except OSError:
                return False
            if size > _SMALL_BYTES or files > _MOST_FILES:
                return False
    return True


def _folder(name: str, warehouse: Path | None) -> Path | None:
    """Returns the folder where a table is, if it is on this machine; a table may have another one."""
    parts = name_parts(name) if not name.startswith(("/", "file:")) else [name]
    if len(parts) == 2 and parts[0].lower() == "delta":
        parts = parts[1:]
    path = parts[-1] if parts else ""
    local = local_path(path)
    if local is not None:
        return Path(local)
    if path.startswith("/"):
        return Path(path)
    if warehouse is None or not parts or len(parts) > 2:
        return None
    schema = [] if len(parts) == 1 or parts[0].lower() == "default" else [f"{parts[0].lower()}.db"]
    return warehouse.joinpath(*schema, parts[-1].lower())
