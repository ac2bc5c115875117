"""Coordinates of rows between a minimum and a maximum."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from otree.transformation import LinearTransformation
from procedures.layout.coordinates.indexed_column import IndexedColumn


def linear_coordinate(indexed: IndexedColumn, space: LinearTransformation) -> Column:
    """The double arithmetic of ``LinearTransformation.coordinate``; NaN sorts above 1 and becomes 1."""
    low, high = float(space.minimum), float(space.maximum)
    scaled = (indexed.value.cast("double") - F.lit(low)) * F.lit(1.0 / (high - low))
    return F.greatest(F.least(indexed.or_null(scaled), F.lit(1.0)), F.lit(0.0))
