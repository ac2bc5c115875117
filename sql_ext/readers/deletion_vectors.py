"""Deletion vectors: the positions of deleted rows of a file.

Source:
    PROTOCOL.md of Delta, "Deletion Vector Format", and the specification of portable Roaring bitmaps.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow.fs as pafs
from numpy.typing import NDArray

from catalog.errors import NotSupportedError

Positions = NDArray[np.uint64]
_PORTABLE = 1_681_511_377
_WITHOUT_RUNS, _WITH_RUNS = 12_346, 12_347
# A container with more values is a bitmap.
_LONGEST_ARRAY = 4_096
_BITMAP_BYTES = 8_192
_MOST_OF_CONTAINER = 65_536
# With fewer containers, a bitmap with runs has no offsets.
_FEWEST_WITH_OFFSETS = 4
_UUID_CHARACTERS = 20
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def deleted_positions(files: pafs.FileSystem, descriptor: Mapping[str, Any]) -> Positions:
    """Returns the positions of the deleted rows, ascending.

    Args:
        files: the table's folder.
        descriptor: ``deletionVector`` of a file in the log.

    Raises:
        NotSupportedError: the vector is stored outside of the table or in another format, or is damaged.
    """
    try:
        found = _positions(_stored(files, descriptor))
    except (ValueError, IndexError, struct.error) as error:
        raise NotSupportedError(f"A deletion vector cannot be read ({error}): read the table with Spark.") from error
    if len(found) != descriptor["cardinality"]:
        raise NotSupportedError("A deletion vector has another number of rows than the log says: it is damaged.")
    return found


def _stored(files: pafs.FileSystem, descriptor: Mapping[str, Any]) -> bytes:
    kind, text, size = descriptor["storageType"], descriptor["pathOrInlineDv"], descriptor["sizeInBytes"]
    if kind == "i":
        return _decoded(text)[:size]
    if kind != "u":
        raise ValueError("it is stored outside of the table")
    folder, name = text[:-_UUID_CHARACTERS], UUID(bytes=_decoded(text[-_UUID_CHARACTERS:]))
    if ".." in folder.split("/"):
        raise ValueError("it is stored outside of the table")
    path = f"{folder}/deletion_vector_{name}.bin" if folder else f"deletion_vector_{name}.bin"
    with files.open_input_file(path) as source:
        # Its size goes before it, and its checksum behind it.
        offset = descriptor.get("offset") or 0
        if offset + size > source.size():
            raise ValueError("it is longer than its file")
        whole = bytes(source.read_at(size + 8, offset))
    data = whole[4 : 4 + size]
    if struct.unpack(">i", whole[:4])[0] != size or struct.unpack(">I", whole[4 + size :])[0] != zlib.crc32(data):
        raise ValueError("its checksum differs")
    return data


def _decoded(text: str) -> bytes:
    """Bytes from Z85, a base 85: five characters are four bytes."""
    words = [text[start : start + 5] for start in range(0, len(text), 5)]
    return b"".join(
        sum(_ALPHABET.index(character) * 85**place for place, character in enumerate(reversed(word))).to_bytes(4, "big")
        for word in words
    )


def _positions(data: bytes) -> Positions:
    """Positions from an array of bitmaps, each of which has the lower 32 bits."""
    magic, count = struct.unpack_from("<iq", data)
    if magic != _PORTABLE:
        raise ValueError(f"its format {magic} is unknown")
    at, found = 12, [np.zeros(0, dtype=np.uint64)]
    for _ in range(count):
        (key,) = struct.unpack_from("<I", data, at)
        lower, at = _bitmap(data, at + 4)
        found.append(lower + np.uint64(key << 32))
    return np.concatenate(found)


def _bitmap(data: bytes, at: int) -> tuple[Positions, int]:
    """The values of the bitmap that begins at a byte, and the byte behind it."""
    (cookie,) = struct.unpack_from("<I", data, at)
    at += 4
    if cookie & 0xFFFF == _WITH_RUNS:
        count = (cookie >> 16) + 1
        flags = np.unpackbits(np.frombuffer(data, np.uint8, (count + 7) // 8, at), bitorder="little")
        at += (count + 7) // 8
    elif cookie == _WITHOUT_RUNS:
        (count,) = struct.unpack_from("<I", data, at)
        flags, at = np.zeros(count, dtype=np.uint8), at + 4
    else:
        raise ValueError(f"its cookie {cookie} is unknown")
    headers = np.frombuffer(data, "<u2", 2 * count, at).reshape(count, 2).astype(np.uint64)
    at += 4 * count
    if cookie == _WITHOUT_RUNS or count >= _FEWEST_WITH_OFFSETS:
        at += 4 * count
    found = [np.zeros(0, dtype=np.uint64)]
    for (high, last), is_runs in zip(headers, flags, strict=False):
        lower, at = _container(data, at, int(last) + 1, bool(is_runs))
        found.append(lower + (high << np.uint64(16)))
    return np.concatenate(found), at


def _container(data: bytes, at: int, count: int, is_runs: bool) -> tuple[Positions, int]:
    if is_runs:
        (runs,) = struct.unpack_from("<H", data, at)
        pairs = np.frombuffer(data, "<u2", 2 * runs, at + 2).reshape(runs, 2).astype(np.uint64)
        if int(pairs[:, 1].sum()) + runs > _MOST_OF_CONTAINER:
            raise ValueError("its runs overlap")
        parts = [np.arange(start, start + more + np.uint64(1), dtype=np.uint64) for start, more in pairs]
        return np.concatenate([np.zeros(0, dtype=np.uint64), *parts]), at + 2 + 4 * runs
    if count <= _LONGEST_ARRAY:
        return np.frombuffer(data, "<u2", count, at).astype(np.uint64), at + 2 * count
    bits = np.unpackbits(np.frombuffer(data, np.uint8, _BITMAP_BYTES, at), bitorder="little")
    return np.flatnonzero(bits).astype(np.uint64), at + _BITMAP_BYTES
