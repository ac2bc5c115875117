"""The ranges of a column in the pages of a Parquet file, from its footer and its page index.

Source:
    ``parquet.thrift`` of Apache Parquet: FileMetaData, RowGroup, ColumnChunk, ColumnIndex and OffsetIndex. Names of
    constants are those of its fields.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sql_ext.diagnosis.compact_protocol import Struct, read_struct
from sql_ext.diagnosis.ordered_values import has_order, ordered_values

_MAGIC = b"PAR1"
_TAIL = 8
# FileMetaData, RowGroup, ColumnChunk, ColumnMetaData.
_ROW_GROUPS, _COLUMNS, _NUM_ROWS = 4, 1, 3
_META_DATA, _OFFSET_INDEX_OFFSET, _OFFSET_INDEX_LENGTH, _COLUMN_INDEX_OFFSET, _COLUMN_INDEX_LENGTH = 3, 4, 5, 6, 7
_PATH_IN_SCHEMA = 3
# ColumnIndex, OffsetIndex, PageLocation.
_NULL_PAGES, _MIN_VALUES, _MAX_VALUES = 1, 2, 3
_PAGE_LOCATIONS, _FIRST_ROW_INDEX = 1, 3
_PLAIN = {"INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d"}


@dataclass(frozen=True, eq=False)
class Pages:
    """Pages of a column in a file, of all row groups.

    Attributes:
        rows: rows per page.
        low: smallest value per page, in the order of ``ordered_values``.
        high: largest value.
        has_value: whether the page has a value other than null.
    """

    rows: NDArray[np.int64]
    low: NDArray[Any]
    high: NDArray[Any]
    has_value: NDArray[np.bool_]

    def share_within(self, first: Any, last: Any) -> float:
        """Returns the share of the rows in pages that may have values of a closed range."""
        start, end = np.array(first, self.low.dtype), np.array(last, self.low.dtype)
        kept = np.asarray(self.low <= end, bool) & np.asarray(self.high >= start, bool) & self.has_value
        return float(self.rows[kept].sum() / max(int(self.rows.sum()), 1))


def pages_of(source: pa.NativeFile, paths: Sequence[str]) -> Mapping[str, Pages]:
    """Returns the pages of some columns of a file; a column without a page index is left out.

    Args:
        source: the file.
        paths: of the columns as the file has them, with dots between the names.

    Raises:
        ValueError: it is no Parquet file, or its footer is damaged.
    """
    try:
        return _pages_of(source, paths)
    except (AttributeError, IndexError, OverflowError, TypeError) as error:
        raise ValueError("a field of the footer has another type than the format says") from error


def _pages_of(source: pa.NativeFile, paths: Sequence[str]) -> Mapping[str, Pages]:
    footer, end = _footer(source)
    parquet = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
    kinds = _kinds(parquet)
    found: dict[str, list[Pages]] = {}
    groups = footer.get(_ROW_GROUPS, [])
    for group in groups:
        for chunk in group.get(_COLUMNS, []):
            path = b".".join(chunk.get(_META_DATA, {}).get(_PATH_IN_SCHEMA, [])).decode("utf-8", "replace")
            if path not in paths or path not in kinds:
                continue
            pages = _pages(source, end, chunk, group.get(_NUM_ROWS, 0), *kinds[path])
            if pages is not None:
                found.setdefault(path, []).append(pages)
    return {path: _concatenated(parts) for path, parts in found.items() if len(parts) == len(groups)}


def _footer(source: pa.NativeFile) -> tuple[Struct, int]:
    size = source.size()
    tail = source.read_at(_TAIL, size - _TAIL) if size > _TAIL else b""
    if tail[4:] != _MAGIC:
        raise ValueError("no Parquet file with a plain footer")
    length = int.from_bytes(tail[:4], "little")
    if length > size - _TAIL:
        raise ValueError("the footer is longer than the file")
    return read_struct(source.read_at(length, size - _TAIL - length)), size


def _kinds(parquet: pq.ParquetFile) -> dict[str, tuple[str, pa.DataType]]:
    """The physical type and Arrow's type of the columns whose values have an order here."""
    found = {}
    for number in range(len(parquet.schema)):
        column = parquet.schema.column(number)
        kind: Any = pa.struct(list(parquet.schema_arrow))
        for name in column.path.split("."):
            place = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
            kind = kind.field(place).type if place >= 0 else pa.null()
        if has_order(kind):
            found[column.path] = (column.physical_type, kind)
    return found


def _pages(
    source: pa.NativeFile, size: int, chunk: Struct, rows: int, physical: str, kind: pa.DataType
) -> Pages | None:
    places = (_COLUMN_INDEX_OFFSET, _COLUMN_INDEX_LENGTH, _OFFSET_INDEX_OFFSET, _OFFSET_INDEX_LENGTH)
    ranges_at, ranges_length, offsets_at, offsets_length = (chunk.get(place, 0) for place in places)
    if not ranges_length or not offsets_length:
        return None
    ends_at = max(ranges_at + ranges_length, offsets_at + offsets_length)
    if min(ranges_at, ranges_length, offsets_at, offsets_length) < 0 or ends_at > size:
        raise ValueError("the page index is not inside of the file")
    ranges = read_struct(source.read_at(ranges_length, ranges_at))
    locations = read_struct(source.read_at(offsets_length, offsets_at)).get(_PAGE_LOCATIONS, [])
    firsts = [location.get(_FIRST_ROW_INDEX, 0) for location in locations]
    has_value = ~np.array(ranges.get(_NULL_PAGES, []), bool)
    ends = [ranges.get(field, []) for field in (_MIN_VALUES, _MAX_VALUES)]
    if not all(len(values) == len(firsts) for values in (has_value, *ends)):
        raise ValueError("the page index has different numbers of pages")
    decoded = [_decoded(values, physical, kind) for values in ends]
    if any(values is None for values in decoded):
        return None
    low, high = (ordered_values(values)[0] for values in decoded if values is not None)
    return Pages(np.diff([*firsts, rows]).astype(np.int64), low, high, has_value)


def _decoded(values: Sequence[bytes], physical: str, kind: pa.DataType) -> pa.Array | None:
    """Values of the page index in Arrow's type; None for types that it is not decoded for."""
    if physical in _PLAIN:
        size = struct.calcsize(_PLAIN[physical])
        # A page without values has an empty text.
        numbers = [struct.unpack(_PLAIN[physical], value)[0] if len(value) == size else None for value in values]
        if pa.types.is_decimal(kind):
            return pa.array([None if n is None else n / 10**kind.scale for n in numbers], pa.float64())
        return pa.array(numbers, pa.int32() if physical == "INT32" else None).cast(kind, safe=False)
    if physical == "BYTE_ARRAY" and not pa.types.is_decimal(kind):
        # Limits may be cut inside of a character.
        return pa.array(values, pa.large_binary())
    if physical in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY") and pa.types.is_decimal(kind):
        numbers = [int.from_bytes(value, "big", signed=True) / 10**kind.scale if value else None for value in values]
        return pa.array(numbers, pa.float64())
    return None


def _concatenated(parts: Sequence[Pages]) -> Pages:
    return Pages(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "low", "high", "has_value"))
    )
