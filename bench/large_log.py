"""An indexed table of many files: its log, and on request small files. Needs no Spark.

The index has two columns and a full tree of cubes. A file holds neighbouring cubes of one level, and with them one band
of weights. One file in a hundred is unindexed. The log has a checkpoint in parts, and five commits after it.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from otree.block import BAND_TAG, BLOCKS_TAG, REVISION_TAG, TIME_RANGE_TAG, WRITE_TAG
from otree.revision import Revision, configuration_of
from otree.transformation import LinearTransformation
from otree.transformer import Transformer
from otree.weight import MAX_WEIGHT, MIN_WEIGHT

CHECKPOINT, COMMITS, FILES_PER_COMMIT = 10, 5, 20
# A file system allows no more links to a file than some 65,000.
PART_FILES = 50_000
_ROWS_PER_FILE = 200
FILES_PER_WRITE = 500
CUBE_ROWS = 100_000
_CODES = "AQgw"  # the four children of a cube in two dimensions
_HALF = 5
_TEXTS = [[""]]
for _ in range(_HALF):
    _TEXTS.append([text + code for text in _TEXTS[-1] for code in _CODES])
_START = 1_760_000_000_000
_TYPES = {"id": "long", "x": "double", "y": "double", "at": "timestamp", "city": "string"}
_TEXT_MAP = pa.map_(pa.string(), pa.string())
_ADD = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", _TEXT_MAP),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
        ("tags", _TEXT_MAP),
    ]
)
_FORMAT = pa.struct([("provider", pa.string()), ("options", _TEXT_MAP)])
_METADATA = pa.struct(
    [
        ("id", pa.string()),
        ("format", _FORMAT),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("configuration", _TEXT_MAP),
        ("createdTime", pa.int64()),
    ]
)
_PROTOCOL = pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])
_REMOVE = pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())])
_TXN = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
_SCHEMA = pa.schema(
    [("txn", _TXN), ("add", _ADD), ("remove", _REMOVE), ("metaData", _METADATA), ("protocol", _PROTOCOL)]
)

Add = dict[str, Any]


@dataclass(frozen=True)
class Level:
    """The cubes of one depth of the tree.

    Attributes:
        depth: 0 is the root.
        files: number of files that hold them.
        first: the smallest weight of their rows.
        end: the first weight above.
    """

    depth: int
    files: int
    first: int
    end: int


def levels_of(files: int) -> list[Level]:
    """Spreads files over the smallest full tree with a cube for each of them."""
    depth = 0
    while _cubes_above(depth + 1) < files:
        depth += 1
    cubes = _cubes_above(depth + 1)
    limits = [MIN_WEIGHT + (_cubes_above(d) << 32) // cubes for d in range(depth + 1)] + [MAX_WEIGHT + 1]
    counts = [max(1, 4**d * files // cubes) for d in range(depth)]
    counts.append(files - sum(counts))
    return [Level(d, counts[d], limits[d], limits[d + 1]) for d in range(depth + 1)]


def _cubes_above(depth: int) -> int:
    return ((1 << 2 * depth) - 1) // 3


def indexed_files(files: int, seed: int = 1) -> Iterator[Add]:
    """The indexed files of a table, as actions of its log."""
    chance = random.Random(seed)
    number = 0
    for level in levels_of(files):
        cells, side = 4**level.depth, 0.5**level.depth
        band = f"{level.first},{level.end}"
        for position in range(level.files):
            first, end = position * cells // level.files, (position + 1) * cells // level.files
            rows = [CUBE_ROWS - (cell * 7919) % 10_000 for cell in range(first, end)]
            blocks = ",".join(
                f'{{"cubeId":"{_cube_text(cell, level.depth)}","minWeight":{level.first},'
                f'"maxWeight":{level.end - 1},"elementCount":{count}}}'
                for cell, count in zip(range(first, end), rows, strict=True)
            )
            corners = [_corner(cell, level.depth) for cell in range(first, end)]
            low = (min(x for x, _ in corners), min(y for _, y in corners))
            high = (max(x for x, _ in corners) + side, max(y for _, y in corners) + side)
            write, number = number // FILES_PER_WRITE, number + 1
            time = _START + write * 60_000
            tags = {
                REVISION_TAG: "1",
                BLOCKS_TAG: f"[{blocks}]",
                WRITE_TAG: f"{write:032x}",
                BAND_TAG: band,
                TIME_RANGE_TAG: f"{time - 60_000},{time}",
            }
            yield _add(chance, sum(rows), chance.randrange(100_000_000, 134_000_000), time, (low, high), tags)


def unindexed_files(files: int, seed: int = 2) -> Iterator[Add]:
    """Files without an index, as actions of the log."""
    chance = random.Random(seed)
    for number in range(files):
        yield _add(chance, 10_000, 8_000_000, _START + number * 1000, ((0.0, 0.0), (1.0, 1.0)), None)


def _add(
    chance: random.Random,
    rows: int,
    size: int,
    time: int,
    box: tuple[tuple[float, float], tuple[float, float]],
    tags: dict[str, str] | None,
) -> Add:
    (x, y), (to_x, to_y) = box
    name = f"{chance.getrandbits(128):032x}"
    first = chance.randrange(10**12)
    day = 1 + first % 28
    stats = (
        f'{{"numRecords":{rows},"minValues":{{"id":{first},"x":{x},"y":{y},"at":"2025-0{1 + day % 9}-{day:02}T00:00:'
        f'{day:02}.000Z","city":"Aachen {day}"}},"maxValues":{{"id":{first + rows * 1000},"x":{to_x},"y":{to_y},'
        f'"at":"2025-1{day % 3}-{day:02}T23:59:59.999Z","city":"Zwickau {day}"}},"nullCount":{{"id":0,"x":0,"y":0,'
        f'"at":0,"city":0}}}}'
    )
    return {
        "path": f"part-00000-{name[:8]}-{name[8:12]}-{name[12:16]}-{name[16:20]}-{name[20:]}-c000.snappy.parquet",
        "partitionValues": {},
        "size": size,
        "modificationTime": time,
        "dataChange": False,
        "stats": stats,
        "tags": tags,
    }


def _cube_text(cell: int, depth: int) -> str:
    if depth <= _HALF:
        return _TEXTS[depth][cell]
    return _cube_text(cell >> 2 * _HALF, depth - _HALF) + _TEXTS[_HALF][cell & 4**_HALF - 1]


def _corner(cell: int, depth: int) -> tuple[float, float]:
    x = y = 0
    for level in range(depth):
        code = cell >> 2 * (depth - 1 - level) & 3
        x, y = 2 * x + (code >> 1), 2 * y + (code & 1)
    return x / 2**depth, y / 2**depth


# ------------------------------------------------------------------------------------------------------------- the log


def write_table(folder: Path, files: int, *, with_files: bool = False) -> None:
    """Writes the log of a table.

    Args:
        folder: of the table; it must not exist.
        files: number of live files.
        with_files: creates each file, with a few rows, and one in a hundred more that the log does not name.
    """
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    late = COMMITS * FILES_PER_COMMIT
    unindexed = max(files // 100, late)
    later = list(unindexed_files(late, seed=3))
    adds = _chained(indexed_files(files - unindexed), unindexed_files(unindexed - late))
    parts = -(-(files - late) // PART_FILES)
    total = sum(add["size"] for add in later)
    for part in range(1, parts + 1):
        rows = [add for _, add in zip(range(PART_FILES), adds, strict=False)]
        total += sum(add["size"] for add in rows)
        _write_part(log, rows, part, parts, folder)
        if with_files:
            _create(folder, [add["path"] for add in rows])
    last = {"version": CHECKPOINT, "size": files - late + 2, "parts": parts}
    (log / "_last_checkpoint").write_text(json.dumps(last))
    _write_commit(log, CHECKPOINT, [])
    for number in range(COMMITS):
        of_commit = later[number * FILES_PER_COMMIT : (number + 1) * FILES_PER_COMMIT]
        _write_commit(log, CHECKPOINT + number + 1, of_commit)
    _write_checksum(log, files, total, folder)
    if with_files:
        chance = random.Random(4)
        _create(folder, [add["path"] for add in later])
        _create(folder, [f"part-{chance.getrandbits(128):032x}.snappy.parquet" for _ in range(files // 100)])


def append_commit(folder: Path) -> None:
    """Adds a commit with a few unindexed files, which are created, to a table."""
    log = folder / "_delta_log"
    version = max(int(path.stem) for path in log.glob("*.json")) + 1
    adds = list(unindexed_files(FILES_PER_COMMIT, seed=version))
    _write_commit(log, version, adds)
    former = json.loads((log / f"{version - 1:020d}.crc").read_text())
    size = former["tableSizeBytes"] + sum(add["size"] for add in adds)
    changed = {**former, "numFiles": former["numFiles"] + len(adds), "tableSizeBytes": size}
    (log / f"{version:020d}.crc").write_text(json.dumps(changed))
    _create(folder, [add["path"] for add in adds])


def _write_commit(log: Path, version: int, adds: Sequence[Add]) -> None:
    info = {"timestamp": _START, "operation": "WRITE", "operationParameters": {"mode": "Append"}}
    lines = [{"commitInfo": info}, *({"add": {**add, "dataChange": True}} for add in adds)]
    (log / f"{version:020d}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))


def _chained(*lists: Iterator[Add]) -> Iterator[Add]:
    for one in lists:
        yield from one


def _metadata(folder: Path) -> dict[str, Any]:
    transformers = tuple(Transformer("linear", name, "DoubleDataType") for name in ("x", "y"))
    spaces = tuple(LinearTransformation(0.0, 1.0, 0.0, "DoubleDataType") for _ in transformers)
    revision = Revision(1, _START, str(folder), CUBE_ROWS, transformers, spaces)
    columns = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in _TYPES.items()]
    return {
        "id": "5e0f3a70-0000-4000-8000-000000000001",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": columns}),
        "partitionColumns": [],
        "configuration": {
            **configuration_of([revision]),
            "use.index.columns": "x,y",
            "use.index.hashTypes.1": "double;double",
        },
        "createdTime": _START,
    }


def _write_part(log: Path, adds: Sequence[Add], part: int, parts: int, folder: Path) -> None:
    rows: list[dict[str, Any]] = [{"add": add} for add in adds]
    if part == 1:
        rows += [{"metaData": _metadata(folder)}, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}]
    name = f"{CHECKPOINT:020d}.checkpoint.{part:010d}.{parts:010d}.parquet"
    pq.write_table(pa.Table.from_pylist(rows, _SCHEMA), log / name, compression="snappy")


def _write_checksum(log: Path, files: int, size: int, folder: Path) -> None:
    checksum = {
        "tableSizeBytes": size,
        "numFiles": files,
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": [],
        "domainMetadata": [],
        "metadata": _metadata(folder),
        "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
    }
    (log / f"{CHECKPOINT + COMMITS:020d}.crc").write_text(json.dumps(checksum))


def _create(folder: Path, names: Sequence[str]) -> None:
    """Creates files that are as old as the table: one that has a few rows, and links to it."""
    chance = random.Random(5)
    at = [_START * 1000 + chance.randrange(10**12) for _ in range(_ROWS_PER_FILE)]
    columns = {
        "id": pa.array([chance.randrange(10**12) for _ in range(_ROWS_PER_FILE)]),
        "x": pa.array([chance.random() for _ in range(_ROWS_PER_FILE)]),
        "y": pa.array([chance.random() for _ in range(_ROWS_PER_FILE)]),
        "at": pa.array(at, pa.timestamp("us", "UTC")),
        "city": pa.array([f"city {chance.randrange(100)}" for _ in range(_ROWS_PER_FILE)]),
    }
    first, *others = names
    pq.write_table(pa.table(columns), folder / first)
    os.utime(folder / first, (_START / 1000, _START / 1000))
    for name in others:
        os.link(folder / first, folder / name)
