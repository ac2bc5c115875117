"""Spark's ``hash`` of columns, vectorized over Arrow arrays.

Source:
    Murmur3 x86 32 (Appleby), as Spark's ``Murmur3Hash`` applies it: seed 42; each column continues with the hash of the
    columns before it; NULL leaves the hash as it is; a tail of less than four bytes is mixed byte by byte, signed.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from catalog.errors import NotSupportedError

Words = NDArray[np.uint32]
_SEED = 42
_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
# Decimals of at most so many digits are hashed as a long, others as the bytes of a whole number.
_DIGITS_OF_LONG = 18
_ALL_DIGITS = Context(prec=80)


def hash_of(columns: Sequence[pa.Array | pa.ChunkedArray], rows: int) -> NDArray[np.int32]:
    """Returns ``hash(columns…)`` of each row.

    Args:
        columns: arrays with the types of the table's columns.
        rows: number of rows.

    Raises:
        NotSupportedError: Spark hashes a type in a way that is not implemented.
    """
    hashes: Words = np.full(rows, _SEED, dtype=np.uint32)
    for column in columns:
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        hashes = _continued(hashes, array)
    return hashes.view(np.int32)


def _continued(hashes: Words, array: pa.Array) -> Words:
    """The hashes after one more column."""
    present = np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    made = _hashed(hashes, array)
    return np.where(present, made, hashes)


def _hashed(hashes: Words, array: pa.Array) -> Words:
    kind = array.type
    if pa.types.is_boolean(kind):
        return _of_ints(hashes, _numbers(array.cast(pa.int32())).astype(np.int32))
    if pa.types.is_int8(kind) or pa.types.is_int16(kind) or pa.types.is_int32(kind) or pa.types.is_date32(kind):
        return _of_ints(hashes, _numbers(array.cast(pa.int32())).astype(np.int32))
    if pa.types.is_int64(kind):
        return _of_longs(hashes, _numbers(array))
    if pa.types.is_timestamp(kind):
        return _of_longs(hashes, _numbers(array.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())))
    if pa.types.is_float32(kind):
        return _of_ints(hashes, _canonical(_numbers(array)).view(np.int32))
    if pa.types.is_float64(kind):
        return _of_longs(hashes, _canonical(_numbers(array)).view(np.int64))
    if pa.types.is_decimal(kind) and kind.precision <= _DIGITS_OF_LONG:
        return _of_longs(hashes, _unscaled_longs(array))
    if pa.types.is_decimal(kind):
        return _of_texts(hashes, [None if v is None else _two_complement(v, kind.scale) for v in array.to_pylist()])
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _of_texts(hashes, array.cast(pa.large_string()).cast(pa.large_binary()))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _of_texts(hashes, array.cast(pa.large_binary()))
    raise NotSupportedError(f"Columns of the type {kind} cannot be hashed as Spark hashes them.")


def _numbers(array: pa.Array) -> NDArray[np.generic]:
    """The values; those of NULL do not matter."""
    filled = pc.fill_null(array, pa.scalar(0).cast(array.type)) if array.null_count else array
    return np.asarray(filled.to_numpy(zero_copy_only=False))


def _canonical(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Floating-point numbers with one zero and one NaN, as Spark hashes them."""
    zero, nan = values.dtype.type(0.0), values.dtype.type(np.nan)
    return np.where(np.isnan(values), nan, np.where(values == zero, zero, values)).astype(values.dtype)


def _unscaled_longs(array: pa.Array) -> NDArray[np.int64]:
    """The whole numbers that decimals are stored as: the low 64 bits of each, in two's complement."""
    wide = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    values = np.frombuffer(wide.buffers()[1], dtype=np.int64)[2 * wide.offset :]
    return np.ascontiguousarray(values[0 : 2 * len(wide) : 2])


def _two_complement(value: Decimal, scale: int) -> bytes:
    """The shortest big-endian bytes of the whole number that a decimal is stored as, like Java's ``BigInteger``."""
    number = int(value.scaleb(scale, _ALL_DIGITS))
    length = (number + (number < 0)).bit_length() // 8 + 1
    return number.to_bytes(length, "big", signed=True)


def _rotated(words: Words, bits: int) -> Words:
    rotated: Words = (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))
    return rotated


def _mixed(hashes: Words, words: Words) -> Words:
    with np.errstate(over="ignore"):
        mixed = hashes ^ (_rotated(words * _C1, 15) * _C2)
        added: Words = _rotated(mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    return added


def _finished(hashes: Words, lengths: Words | np.uint32) -> Words:
    with np.errstate(over="ignore"):
        hashes = hashes ^ lengths
        hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        finished: Words = hashes ^ (hashes >> np.uint32(16))
        return finished


def _of_ints(hashes: Words, values: NDArray[np.generic]) -> Words:
    return _finished(_mixed(hashes, np.ascontiguousarray(values, dtype=np.int32).view(np.uint32)), np.uint32(4))


def _of_longs(hashes: Words, values: NDArray[np.generic]) -> Words:
    words = np.ascontiguousarray(values, dtype=np.int64).view(np.uint64)
    low, high = words.astype(np.uint32), (words >> np.uint64(32)).astype(np.uint32)
    return _finished(_mixed(_mixed(hashes, low), high), np.uint32(8))


def _of_texts(hashes: Words, values: pa.Array | Sequence[bytes | None]) -> Words:
    """Mixes whole words, then single signed bytes; one step for all rows that are long enough."""
    array = values if isinstance(values, pa.Array) else pa.array(values, pa.large_binary())
    offsets = np.frombuffer(array.buffers()[1], dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(array.buffers()[2] or b"", dtype=np.uint8)
    starts, lengths = offsets[:-1], np.diff(offsets)
    result = hashes.copy()
    words = lengths // 4
    for number in range(int(words.max(initial=0))):
        rows = np.flatnonzero(words > number)
        at = starts[rows] + 4 * number
        parts = [data[at + byte].astype(np.uint32) << np.uint32(8 * byte) for byte in range(4)]
        result[rows] = _mixed(result[rows], parts[0] | parts[1] | parts[2] | parts[3])
    for byte in range(3):
        rows = np.flatnonzero(lengths - 4 * words > byte)
        signed = data[starts[rows] + 4 * words[rows] + byte].view(np.int8).astype(np.int32)
        result[rows] = _mixed(result[rows], signed.view(np.uint32))
    return _finished(result, lengths.astype(np.uint32))
