"""The live files of a table as a ``FileTable``, from deltalake's list and the tags in the log.

The columns have the same values as those that Spark computes with ``catalog.files.file_rows``; a test compares them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.columns.column_names import FoundColumn
from catalog.errors import NotSupportedError
from catalog.files.arrays import Floats
from catalog.files.file_table import FileTable
from otree.block import (
    BAND_TAG,
    BLOCKS_TAG,
    REVISION_TAG,
    REWRITES_TAG,
    TIER_TAG,
    TIME_RANGE_TAG,
    WRITE_TAG,
    Block,
    blocks_from_json,
)
from otree.cube import CubeId
from otree.errors import IndexFormatError
from otree.format_json import LONG_BOUNDS
from sql_ext.readers.delta_files import DeltaFiles
from sql_ext.readers.log_entries import LogEntry, Tags

# The objects of Python that rows are made of take several times the memory of the rows.
_FILES_AT_ONCE = 20_000
# Bytes of a text that become a number, by which texts are ordered, as in ``catalog.files.file_rows``.
_TEXT_BYTES = 6
_BLOCKS = pa.list_(
    pa.struct(
        [("cubeId", pa.string()), ("minWeight", pa.int32()), ("maxWeight", pa.int32()), ("elementCount", pa.int64())]
    )
)


def file_table_of(
    files: DeltaFiles, dimensions: Mapping[int, int], columns: Sequence[FoundColumn | None], *, is_partitioned: bool
) -> FileTable:
    """Returns the live files of a version.

    Args:
        files: the version.
        dimensions: number of indexed columns by number of each revision that has a space.
        columns: whose ranges the table has; None for one that the table no longer has.
        is_partitioned: whether the table has partition columns.

    Raises:
        FileSystemError: the log cannot be read.
        NotSupportedError: statistics cannot be read without Spark.
    """
    actions = files.actions
    if not len(actions):
        return FileTable.empty()
    parts = (actions.slice(first, _FILES_AT_ONCE) for first in range(0, len(actions), _FILES_AT_ONCE))
    rows = [_rows(files, part, dimensions, columns, is_partitioned=is_partitioned) for part in parts]
    return FileTable.of(pa.concat_tables(rows))


def _rows(
    files: DeltaFiles,
    actions: pa.Table,
    dimensions: Mapping[int, int],
    columns: Sequence[FoundColumn | None],
    *,
    is_partitioned: bool,
) -> pa.Table:
    """The rows of some of the files; see ``file_table_of``."""
    paths, modified = actions["path"].to_pylist(), actions["modification_time"].to_pylist()
    entries = [_entry(files, path) for path in paths]
    tags = [entry.tags for entry in entries]
    blocks = [_blocks(of_file, dimensions) for of_file in tags]
    times = [_pair(of_file.get(TIME_RANGE_TAG)) for of_file in tags]
    bands = [_pair(of_file.get(BAND_TAG)) for of_file in tags]
    revisions = [_whole(of_file.get(REVISION_TAG)) for of_file in tags]
    deleted = [int((entry.deletion_vector or {}).get("cardinality") or 0) for entry in entries]
    outdated = [of_file.get("cube") is not None and BLOCKS_TAG not in of_file for of_file in tags]
    tagged = [BLOCKS_TAG in of_file for of_file in tags]
    integers, texts, flags = pa.int64(), pa.string(), pa.bool_()
    low, high = (_ranges(actions, key, columns, entries) for key in ("min", "max"))
    return pa.table(
        {
            "path": pa.array(paths, texts),
            "deletion_vector": pa.array([_vector_id(entry) for entry in entries], texts),
            "size": actions["size_bytes"],
            "modification_time": actions["modification_time"],
            "rows": pc.subtract(actions["num_records"], pa.array(deleted, integers)),
            "revision": pa.array([r if b else 0 for r, b in zip(revisions, blocks, strict=True)], integers),
            "blocks": pa.array(blocks, _BLOCKS),
            "write_id": pa.array([t.get(WRITE_TAG, p) for t, p in zip(tags, paths, strict=True)], texts),
            "first_time": pa.array([_or(t[0], m) for t, m in zip(times, modified, strict=True)], integers),
            "last_time": pa.array([_or(t[1], m) for t, m in zip(times, modified, strict=True)], integers),
            "outdated": pa.array(outdated, flags),
            "unreadable": pa.array(
                [
                    (has_blocks or of_file.get(REVISION_TAG, "0") != "0") and not of_blocks and not is_outdated
                    for has_blocks, of_file, of_blocks, is_outdated in zip(tagged, tags, blocks, outdated, strict=True)
                ],
                flags,
            ),
            "band_first": pa.array([band[0] for band in bands], integers),
            "band_end": pa.array([band[1] for band in bands], integers),
            "rewrites": pa.array([max(_number(t.get(REWRITES_TAG)), 0.0) for t in tags], pa.float64()),
            "tagged_revision": pa.array([r if t else None for r, t in zip(revisions, tagged, strict=True)], integers),
            "deleted": pa.array(deleted, integers),
            "tier": pa.array([_or(_whole(t.get(TIER_TAG)), 0) for t in tags], integers),
            "partition": pa.array(_partitions(actions) if is_partitioned else [""] * len(paths), texts),
            "low": pa.array(list(low), pa.list_(pa.float64())),
            "high": pa.array(list(high), pa.list_(pa.float64())),
        }
    )


def _entry(files: DeltaFiles, path: str) -> LogEntry:
    entry = files.entry(path)
    if entry is None:  # it would count as unindexed, although it may be indexed
        raise NotSupportedError(f"The log of {files.location} does not show the tags of {path} without Spark.")
    return entry


def _blocks(tags: Tags, dimensions: Mapping[int, int]) -> list[dict[str, Any]] | None:
    """The blocks of a file; None unless its tags can be read and name a revision with a space, as in the shim."""
    text, width = tags.get(BLOCKS_TAG), dimensions.get(_or(_whole(tags.get(REVISION_TAG)), 0))
    if text is None or width is None:
        return None
    try:
        blocks = blocks_from_json(text)
        for block in blocks:
            CubeId.parse(block.cube_id, width)
    except (IndexFormatError, ValueError):
        return None
    is_sound = blocks and all(block.min_weight <= block.max_weight for block in blocks)
    return [_fields(block) for block in blocks] if is_sound else None


def _fields(block: Block) -> dict[str, Any]:
    return {
        "cubeId": block.cube_id,
        "minWeight": block.min_weight,
        "maxWeight": block.max_weight,
        "elementCount": block.element_count,
    }


def _vector_id(entry: LogEntry) -> str:
    vector = entry.deletion_vector
    if vector is None:
        return ""
    offset = vector.get("offset")
    return f"{vector['storageType']}{vector['pathOrInlineDv']}" + ("" if offset is None else f"@{offset}")


def _partitions(actions: pa.Table) -> list[str]:
    return [json.dumps(values, sort_keys=True, default=str) for values in actions["partition"].to_pylist()]


def _whole(text: str | None) -> int | None:
    """The number of a text; None without one, and beyond 64 bits, as in Spark."""
    try:
        number = None if text is None else int(text)
    except ValueError:
        return None
    return number if number is not None and LONG_BOUNDS[0] <= number <= LONG_BOUNDS[1] else None


def _pair(text: str | None) -> tuple[int | None, int | None]:
    """Two numbers separated by a comma."""
    parts = [] if text is None else text.split(",")
    first, second = (*parts, *[None] * 2)[:2]
    return _whole(first), _whole(second)


def _number(text: str | None) -> float:
    try:
        return 0.0 if text is None else float(text)
    except ValueError:
        return 0.0


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


# ------------------------------------------------------------------------------------------------------- ranges


def _ranges(actions: pa.Table, key: str, columns: Sequence[FoundColumn | None], entries: Sequence[LogEntry]) -> Floats:
    """The smallest or largest values of columns; NaN where the statistics do not tell. Shape (files, columns)."""
    found = np.full((len(actions), len(columns)), np.nan)
    for number, column in enumerate(columns):
        values = None if column is None or key not in actions.column_names else _leaf(actions[key], column.stored_path)
        if column is None or values is None:
            continue
        if column.type_name.startswith("timestamp") and not all(entry.times_are_known for entry in entries):
            raise NotSupportedError(f"The times in the statistics of {column.plain_name} are read by Spark only.")
        found[:, number] = _as_floats(values)
    return found


def _leaf(values: pa.ChunkedArray, path: Sequence[str]) -> pa.Array | None:
    array = values.combine_chunks()
    for name in path:
        if not pa.types.is_struct(array.type) or array.type.get_field_index(name) < 0:
            return None
        array = pc.struct_field(array, name)
    return None if pa.types.is_nested(array.type) else array


def _as_floats(values: pa.Array) -> Floats:
    """Values in the order of their type; NaN for NULL and for types without numbers."""
    if pa.types.is_boolean(values.type):
        return np.full(len(values), np.nan)
    if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
        return np.array([_of_text(value) for value in values.to_pylist()], np.float64)
    numbers = values if pa.types.is_null(values.type) else values.cast(pa.float64(), safe=False)
    return np.array([np.nan if n is None else n for n in numbers.to_pylist()], np.float64)


def _of_text(value: str | bytes | None) -> float:
    if value is None:
        return float("nan")
    data = value.encode() if isinstance(value, str) else value
    return float(int.from_bytes(data[:_TEXT_BYTES].ljust(_TEXT_BYTES, b"\0"), "big"))
