"""Aggregates of rows that tell whether parts of the range of their weights are missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from otree.cardinality import WEIGHT_PARTS, has_gaps

PART_BITS = 33 - WEIGHT_PARTS.bit_length()
"""Bits of a weight that do not tell its part of the range."""
WEIGHTS, PARTS, LOWEST, HIGHEST = "weights", "parts", "lowest", "highest"


def gap_aggregates(weight: Column) -> list[Column]:
    """Returns the aggregates that ``found_gaps`` takes.

    ``WEIGHTS`` is about how many different weights there are, ``PARTS`` the parts with any, ``LOWEST`` and ``HIGHEST``
    are the first and last weight.

    Args:
        weight: of the rows.
    """
    part = F.shiftright(weight, PART_BITS) + F.lit(WEIGHT_PARTS // 2)
    return [
        F.approx_count_distinct(weight).alias(WEIGHTS),
        F.bit_or(F.call_function("shiftleft", F.lit(1).cast("bigint"), part)).alias(PARTS),
        F.min(weight).alias(LOWEST),
        F.max(weight).alias(HIGHEST),
    ]


def found_gaps(values: Mapping[str, Any]) -> bool:
    """Returns whether there are gaps, by the values of the aggregates."""
    if not values[WEIGHTS]:
        return False
    return has_gaps(values[PARTS], values[WEIGHTS], values[LOWEST], values[HIGHEST])
