"""Files that are read without Spark: deletion vectors, Parquet, and settings of a Spark."""

from __future__ import annotations

import struct
import tempfile
import zlib
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from inputs.cases import Reader
from inputs.log_inputs import VECTOR, checked_vector, stored_files
from inputs.mutations import changed_bytes, changed_value, random_bytes
from sql_ext.diagnosis.parquet_pages import pages_of
from sql_ext.readers.deletion_vectors import deleted_positions
from sql_ext.spark_defaults import defaults_of

# The diagnosis turns any error of a damaged Parquet file into one with a code.
_OF_ARROW = (ValueError, OSError, LookupError, TypeError, AttributeError, OverflowError, MemoryError)


def _vector(chance: Random) -> tuple[Any, bytes]:
    positions = struct.pack("<iqI", 1_681_511_377, 1, 0) + struct.pack("<IIHHIHH", 12_346, 1, 0, 1, 16, 3, 9)
    data = changed_bytes(chance, positions) if chance.random() < 0.8 else random_bytes(chance)
    descriptor = changed_value(chance, {**VECTOR, "sizeInBytes": len(data)}) if chance.random() < 0.6 else VECTOR
    return descriptor, data


def _read_vector(made: tuple[Any, bytes]) -> None:
    descriptor, data = made
    checked = checked_vector(descriptor)
    if checked is not None:
        deleted_positions(_Memory(data), checked)  # type: ignore[arg-type]


class _Memory:
    """A file system that has the same file everywhere in the table, and nothing outside."""

    def __init__(self, data: bytes) -> None:
        self._data = b"\x01" + struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))

    def open_input_file(self, path: str) -> pa.BufferReader:
        assert ".." not in path.split("/"), path
        return pa.BufferReader(self._data)


def _parquet(chance: Random) -> bytes:
    files = [data for name, data in sorted(stored_files().items()) if name.endswith(".parquet")]
    data = chance.choice(files)
    # The footer decides what is read, and is at the end.
    return (
        data[:-2_000] + changed_bytes(chance, data[-2_000:-8]) + data[-8:]
        if chance.random() < 0.8
        else changed_bytes(chance, data)
    )


def _read_pages(data: bytes) -> None:
    pages_of(pa.BufferReader(data), ["a", "b", "x"])


def _read_defaults(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        assert all(isinstance(text, str) for pair in defaults_of(Path(file.name)).items() for text in pair)


def readers() -> list[Reader]:
    """The readers of files."""
    defaults = b"spark.master local\n# c\nspark.qbeast.use.progress=auto\n"
    return [
        Reader("files: deletion vectors", _vector, _read_vector),
        Reader("files: pages of Parquet", _parquet, _read_pages, _OF_ARROW, share=2),
        Reader("files: spark-defaults.conf", lambda chance: changed_bytes(chance, defaults), _read_defaults, share=1),
    ]
