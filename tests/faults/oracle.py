"""What a table holds, read without Spark and without code of the product: by delta-rs, and from the log's files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder

LOG = "_delta_log"
# Characters of the id of a deletion vector file in the log, after a random prefix.
_ID_CHARACTERS = 20


def ids(path: Path) -> list[int]:
    """The ids of all live rows, sorted; of Parquet files where there is no Delta table yet."""
    return [row["id"] for row in _rows(path)]


def checksum(path: Path) -> str:
    """A checksum of all live rows with all their columns, in whatever files they are."""
    return hashlib.sha256(json.dumps(_rows(path), default=str).encode()).hexdigest()


def checksum_of(ids: list[int]) -> str:
    """The checksum of the rows with these ids, whose values follow from the id."""
    rows = [{"id": n, "x": (n * 7919 % 1009) / 1009, "y": n * 31 % 1000} for n in sorted(ids)]
    return hashlib.sha256(json.dumps(rows, default=str).encode()).hexdigest()


def _rows(path: Path) -> list[dict[str, Any]]:
    if not list((path / LOG).glob("*.json")) and not list((path / LOG).glob("*.parquet")):
        files = sorted(f for f in path.glob("*.parquet"))
        rows = pa.concat_tables([pq.read_table(f) for f in files]).to_pylist()
    else:
        query = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT * FROM t")
        rows = pa.table(query.read_all()).to_pylist()
    return sorted(rows, key=lambda row: (row["id"], str(row)))


# --------------------------------------------------------------------------------------------------------------- files


def live_files(path: Path) -> dict[str, str | None]:
    """The files of the newest version below the table, each with its deletion vector's file as the log names it."""
    live: dict[str, str | None] = {}
    for action in _actions(path / LOG):
        add, remove = action.get("add"), action.get("remove")
        if remove is not None and remove.get("path") is not None:
            live.pop(unquote(remove["path"]), None)
        if add is not None and add.get("path") is not None:
            live[unquote(add["path"])] = _vector(add.get("deletionVector"))
    return live


def _vector(vector: dict[str, Any] | None) -> str | None:
    if vector is None or vector.get("storageType") != "u":
        return None
    return str(vector["pathOrInlineDv"])


def _actions(log: Path) -> Iterator[dict[str, Any]]:
    """The actions of the newest checkpoint, and those of the commits after it: in each commit, removals come first."""
    checkpoints = sorted(log.glob("*.checkpoint*.parquet"))
    first = 0
    if checkpoints:
        newest = checkpoints[-1].name.split(".")[0]
        first = int(newest) + 1
        for file in sorted(log.glob(f"{newest}.checkpoint*.parquet")):
            yield from pq.read_table(file, columns=["add"]).to_pylist()
    commits = sorted((int(f.stem), f) for f in log.glob("*.json") if f.stem.isdigit())
    for version, file in commits:
        if version >= first:
            actions = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
            yield from sorted(actions, key=lambda action: "add" in action)


def missing(path: Path) -> list[str]:
    """The files of the newest version that are not on disk."""
    return sorted(file for file in live_files(path) if not (path / file).exists())


def orphans(path: Path) -> list[str]:
    """The data files and deletion vectors on disk that the newest version does not need."""
    live = live_files(path)
    data = {str(f.relative_to(path)) for f in _visible(path, "*.parquet")}
    left = sorted(data - set(live))
    vectors = {vector[-_ID_CHARACTERS:] for vector in live.values() if vector is not None}
    on_disk = [str(f.relative_to(path)) for f in _visible(path, "deletion_vector*.bin")]
    # Several vectors may be in one file, never one in several.
    return left + (sorted(on_disk) if len(on_disk) > len(vectors) else [])


def write_records(path: Path) -> list[str]:
    """The records of rewrites that are writing files, which a vacuum removes with the files."""
    return sorted(f.name for f in (path / "_use" / "writes").glob("*.json"))


def _visible(path: Path, pattern: str) -> Iterator[Path]:
    for file in path.rglob(pattern):
        parts = file.relative_to(path).parts
        if not any(part.startswith(("_", ".")) for part in parts):
            yield file
