"""Coordinates of rows where every value has the same one."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from otree.transformation import Transformation
from procedures.layout.coordinates.indexed_column import IndexedColumn


def zero_coordinate(_indexed: IndexedColumn, _space: Transformation) -> Column:
    """Coordinate 0."""
    return F.lit(0.0)
