"""Reasons why a condition, a file or a sample does not help to skip files."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class SkippingReason(str, Enum):
    """Why files are not skipped."""

    NO_FILTER = "NO_FILTER"
    """The scan has no condition."""
    NOT_INDEXED = "NOT_INDEXED"
    """The table has no index."""
    FUNCTION_OVER_COLUMN = "FUNCTION_OVER_COLUMN"
    """A condition compares the result of a function of a column."""
    CAST = "CAST"
    """A condition compares a column cast to another type, in which the order differs."""
    OTHER_COLUMN = "OTHER_COLUMN"
    """A condition is about a column that is not indexed."""
    OR_WITH_UNINDEXED_COLUMN = "OR_WITH_UNINDEXED_COLUMN"
    """An alternative of an ``OR`` limits no indexed column."""
    NOT_A_CONSTANT = "NOT_A_CONSTANT"
    """A condition does not compare one column with constants: a column with another one, or with a subquery."""
    RANGE_ON_HASHED_COLUMN = "RANGE_ON_HASHED_COLUMN"
    """A range on a column of the kind ``hashing``, which keeps no order."""
    UNSELECTIVE_CONDITION = "UNSELECTIVE_CONDITION"
    """A condition on an indexed column is true in the whole range of values, or of a kind that skips no files."""
    UNINDEXED_FILES = "UNINDEXED_FILES"
    """Files that are not indexed are read whatever their rows."""
    OLD_REVISION = "OLD_REVISION"
    """Files of an older revision are read, because it does not index what the newest one indexes."""
    MISSING_STATISTICS = "MISSING_STATISTICS"
    """Files have no minimum and maximum of a column."""
    SAMPLE_LEFT_TO_SPARK = "SAMPLE_LEFT_TO_SPARK"
    """Spark takes a sample itself, row by row."""
    SWITCHED_OFF = "SWITCHED_OFF"
    """``spark.qbeast.use.pruning.enabled`` is false in the session."""
    NO_DELTA_SCAN = "NO_DELTA_SCAN"
    """The query reads no Delta table."""


@dataclass(frozen=True)
class Finding:
    """A reason with what it concerns and what would help.

    Attributes:
        reason: its code.
        condition: SQL text of the condition; None if it concerns no condition.
        message: what would help.
        files: files that it concerns; None if it concerns no particular files.
        bytes: their bytes; None if they are not known.
    """

    reason: SkippingReason
    condition: str | None
    message: str
    files: int | None = None
    bytes: int | None = None
