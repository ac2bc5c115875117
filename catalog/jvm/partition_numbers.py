"""Distribution of rows to Spark partitions by their numbers."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_MODULUS = 1 << 32
_SEED = 42


def repartition_by_number(rows: DataFrame, count: int, number: Column) -> DataFrame:
    """Returns the same rows in partitions that a column numbers.

    Args:
        rows: rows.
        count: number of partitions.
        number: partition of each row, from 0 to ``count - 1``.
    """
    if hasattr(rows, "repartitionById"):  # from Spark 4.1 on
        return rows.repartitionById(count, number)
    # One literal: an array of literals would be an expression for each number.
    keys = F.split(F.lit(",".join(str(key_of_hash(each)) for each in range(count))), ",").cast("array<int>")
    return rows.repartition(count, F.element_at(keys, number.cast("int") + 1))


def key_of_hash(number: int) -> int:
    """Returns the 32-bit integer whose hash in Spark is a number.

    Spark partitions by the hash modulo the number of partitions, and each step of the hash can be undone.

    Args:
        number: from 0 to 2³¹ - 1.

    Source:
        MurmurHash3 for 32 bits (Appleby) with Spark's seed, as in ``Murmur3_x86_32.hashInt``.
    """
    value = number ^ number >> 16
    value = _divided(value, 0xC2B2AE35)
    value ^= value >> 13 ^ value >> 26
    value = _divided(value, 0x85EBCA6B)
    value ^= value >> 16
    value ^= 4  # bytes of an integer
    value = _divided(value - 0xE6546B64, 5)
    value = _rotated_right(value, 13) ^ _SEED
    value = _divided(value, 0x1B873593)
    value = _divided(_rotated_right(value, 15), 0xCC9E2D51)
    return value - _MODULUS if value >= _MODULUS >> 1 else value


def _divided(value: int, factor: int) -> int:
    """Undoes a multiplication modulo 2³²."""
    return value * pow(factor, -1, _MODULUS) % _MODULUS


def _rotated_right(value: int, bits: int) -> int:
    """Rotates 32 bits."""
    return (value >> bits | value << 32 - bits) % _MODULUS
