"""Columns that the JVM computes for each row: coordinates, cells, cubes, places and files; and partitions of rows."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog.jvm.java_values import JavaValue, java_class, java_column, java_columns
from otree.curve import Ranks
from otree.packing import Packing
from otree.tree import OrdinalTable

_HASHES = 1 << 32
_HASH_SEED = 42


@dataclass(frozen=True)
class RowExpressions:
    """The shim's expressions for rows.

    Attributes:
        spark: session whose JVM makes the expressions.
    """

    spark: SparkSession

    @property
    def _shim(self) -> JavaValue:
        return java_class(self.spark, "org.apache.spark.sql.usespark.RowExpressions")

    def column(self, name: str) -> Column:
        """A column by its name, as ``F.col``, which asks the JVM 13 times to note the line of the call."""
        return Column(java_class(self.spark, "org.apache.spark.sql.functions").col(name))

    # -------------------------------------------------------------------------------------------------- coordinates

    def index_value(self, value: Column) -> Column:
        """Booleans as 0 and 1, times as epoch milliseconds, decimals as doubles; other values as they are."""
        return Column(self._shim.indexValue(java_column(value)))

    def java_text(self, number: Column) -> Column:
        """A number as Java's ``toString`` writes it, whatever the settings of the session."""
        return Column(self._shim.javaText(java_column(number)))

    def hash_coordinate(self, text: Column) -> Column:
        """Coordinate of a string under hashing, in [0, 1]; null for null."""
        return Column(self._shim.hashCoordinate(java_column(text)))

    def linear_coordinate(self, value: Column, low: float, scale: float, null_coordinate: float) -> Column:
        """Coordinate of a number in a range, in [0, 1].

        Args:
            value: the column.
            low: where the range begins.
            scale: 1 divided by the length of the range.
            null_coordinate: coordinate of null.
        """
        return Column(self._shim.linear(java_column(value), low, scale, null_coordinate))

    def numeric_quantile_coordinate(self, value: Column, quantiles: Sequence[float]) -> Column:
        """Coordinate of a DOUBLE among quantiles, in [0, 1]; null for null.

        Args:
            value: the column.
            quantiles: in order.
        """
        packed = struct.pack(f">i{len(quantiles)}d", len(quantiles), *quantiles)
        return Column(self._shim.numericQuantiles(java_column(value), packed))

    def string_quantile_coordinate(self, value: Column, quantiles: Sequence[str]) -> Column:
        """Coordinate of a STRING among quantiles, in [0, 1]; null for null.

        Args:
            value: the column.
            quantiles: in the order of their UTF-8 bytes.
        """
        texts = np.array([quantile.encode("utf-8", "replace") for quantile in quantiles], object)
        # Texts before the first quantile have its place.
        places = Ranks(texts, np.maximum(np.arange(len(texts) + 1, dtype=np.int32) - 1, 0))
        place = Column(self._shim.rankOfBinary(java_column(value.cast("binary")), places.packed()))
        return place / (len(texts) - 1)

    # ------------------------------------------------------------------------------------------------ places in a tree

    def cell(self, coordinates: Sequence[Column], depth: int) -> Column:
        """The cell of a point: ``depth`` levels of one bit per dimension, the first level highest, as a BIGINT.

        Args:
            coordinates: DOUBLE columns in [0, 1], never null.
            depth: number of levels.
        """
        return Column(self._shim.cell(java_columns(self.spark, coordinates), depth))

    def cube(self, coordinates: Sequence[Column], weight: Column, ordinals: OrdinalTable) -> Column:
        """The ordinal of the cube that a row lies in, as a BIGINT.

        Args:
            coordinates: DOUBLE columns in [0, 1], never null.
            weight: weight of the row, INT.
            ordinals: the tree.
        """
        inner, children = ordinals.thresholds, ordinals.child_keys
        packed = struct.pack(
            f">i{len(inner)}ii{len(children)}q{len(children)}i",
            len(inner), *inner, len(children), *children, *ordinals.child_nodes,
        )  # fmt: skip
        java_coordinates = java_columns(self.spark, coordinates)
        return Column(self._shim.cube(java_coordinates, java_column(weight), packed))

    def blocks(self, tag: Column, dimensions: Column) -> Column:
        """The blocks in the tag of a file; null when the tag cannot be read.

        Args:
            tag: text of the tag, STRING.
            dimensions: dimensions of the file's revision, INT.
        """
        return Column(self._shim.blocks(java_column(tag), java_column(dimensions)))

    # ---------------------------------------------------------------------------------------------- order and files

    def rank(self, value: Column, ranks: Ranks) -> Column:
        """The code of a value: its place among the quantiles of its column, from 0; that of null is 0.

        Args:
            value: DOUBLE or BINARY, as the ranks are.
            ranks: codes of the column.
        """
        rank = self._shim.rankOfDouble if ranks.of_doubles else self._shim.rankOfBinary
        return F.coalesce(Column(rank(java_column(value), ranks.packed())), F.lit(0))

    def hilbert_key(self, codes: Sequence[Column], bits: int) -> Column:
        """The place of a point on the Hilbert curve, as a BIGINT.

        Args:
            codes: INT columns.
            bits: bits of each code.
        """
        return Column(self._shim.hilbertKey(java_columns(self.spark, codes), bits))

    def file(self, weight: Column, key: Column, spread: Column, packing: Packing) -> Column:
        """The number of the file of a row, as an INT.

        Args:
            weight: weight of the row, INT.
            key: its place on the curve, BIGINT.
            spread: a BIGINT that differs between rows of one place.
            packing: the files.
        """
        columns = (java_column(column) for column in (weight, key, spread))
        return Column(self._shim.file(*columns, packing.packed()))


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
    value = _rotated_right(value, 13) ^ _HASH_SEED
    value = _divided(value, 0x1B873593)
    value = _divided(_rotated_right(value, 15), 0xCC9E2D51)
    return value - _HASHES if value >= _HASHES >> 1 else value


def _divided(value: int, factor: int) -> int:
    """Undoes a multiplication modulo 2³²."""
    return value * pow(factor, -1, _HASHES) % _HASHES


def _rotated_right(value: int, bits: int) -> int:
    """Rotates 32 bits."""
    return (value >> bits | value << 32 - bits) % _HASHES
