"""Columns that the JVM computes for each row: coordinates."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, SparkSession

from catalog.jvm.session import jvm


@dataclass(frozen=True)
class RowExpressions:
    """The shim's expressions for rows.

    Attributes:
        spark: session whose JVM makes the expressions.
    """

    spark: SparkSession

    @property
    def _package(self) -> Any:
        return jvm(self.spark).org.apache.spark.sql.usespark

    def index_value(self, value: Column) -> Column:
        """Booleans as 0 and 1, times as epoch milliseconds, decimals as doubles; other values as they are."""
        return Column(self._package.CoordinateExpressions.indexValue(value._jc))

    def java_text(self, number: Column) -> Column:
        """A number as Java's ``toString`` writes it, whatever the settings of the session."""
        return Column(self._package.CoordinateExpressions.javaText(number._jc))

    def hash_coordinate(self, text: Column) -> Column:
        """Coordinate of a string under hashing, in [0, 1]; null for null."""
        return Column(self._package.IndexExpressions.hashCoordinate(text._jc))

    def numeric_quantile_coordinate(self, value: Column, quantiles: Sequence[float]) -> Column:
        """Coordinate of a DOUBLE among quantiles, in [0, 1]; null for null.

        Args:
            value: the column.
            quantiles: in order.
        """
        packed = struct.pack(f">i{len(quantiles)}d", len(quantiles), *quantiles)
        return Column(self._package.CoordinateExpressions.numericQuantiles(value._jc, packed))

    def string_quantile_coordinate(self, value: Column, quantiles: Sequence[str]) -> Column:
        """Coordinate of a STRING among quantiles, in [0, 1]; null for null.

        Args:
            value: the column.
            quantiles: in the order of their UTF-8 bytes.
        """
        texts = [quantile.encode("utf-8", "replace") for quantile in quantiles]
        packed = struct.pack(">i", len(texts)) + b"".join(struct.pack(">i", len(t)) + t for t in texts)
        return Column(self._package.CoordinateExpressions.stringQuantiles(value._jc, packed))
