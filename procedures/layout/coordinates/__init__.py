"""Coordinates of rows, as Spark columns. A transformation has one file and one line in ``COORDINATES``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import Column, SparkSession

from catalog.errors import IndexUnreadableError
from otree.transformation import (
    EmptyTransformation,
    HashTransformation,
    IdentityTransformation,
    LegacyZeroTransformation,
    LinearTransformation,
    NumericQuantilesTransformation,
    StringQuantilesTransformation,
    Transformation,
)
from otree.transformer import Transformer
from procedures.layout.coordinates.constant import zero_coordinate
from procedures.layout.coordinates.hashing import hash_coordinate
from procedures.layout.coordinates.indexed_column import IndexedColumn
from procedures.layout.coordinates.linear import linear_coordinate
from procedures.layout.coordinates.quantiles import numeric_quantile_coordinate, string_quantile_coordinate

# Each function takes a transformation of the class that it is listed for.
COORDINATES: dict[type[Transformation], Callable[[IndexedColumn, Any], Column]] = {
    LinearTransformation: linear_coordinate,
    HashTransformation: hash_coordinate,
    NumericQuantilesTransformation: numeric_quantile_coordinate,
    StringQuantilesTransformation: string_quantile_coordinate,
    EmptyTransformation: zero_coordinate,
    IdentityTransformation: zero_coordinate,
    LegacyZeroTransformation: zero_coordinate,
}


def coordinate_column(spark: SparkSession, transformer: Transformer, space: Transformation, name: str) -> Column:
    """The coordinate of a row in one dimension: never null, in [0, 1], equal to ``Transformation.coordinate``.

    Args:
        spark: session of the rows.
        transformer: how the column is indexed.
        space: its transformation.
        name: logical name of the column as ``F.col`` reads it.

    Raises:
        IndexUnreadableError: rows cannot be placed by a transformation of this class.
    """
    coordinate = COORDINATES.get(type(space))
    if coordinate is None:
        # Any other coordinate would place rows where no reader looks for them, and the blocks would agree with it.
        raise IndexUnreadableError.transformation(type(space).__name__, name)
    return coordinate(IndexedColumn(spark, transformer, name, space.null_coordinate), space)
