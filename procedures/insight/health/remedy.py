"""The steps that can improve a table: every piece of advice comes from this list; pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Remedy(str, Enum):
    """The effect of a step."""

    FAILURES = "FAILURES"
    """Shows recorded failures, because later runs would fail too."""
    CLUSTERING = "CLUSTERING"
    """Ends Delta's clustering of an indexed table: the files that OPTIMIZE clusters have no index."""
    INDEX = "INDEX"
    """Declares index columns that were measured, and indexes the files."""
    OPTIMIZE = "OPTIMIZE"
    """Indexes unindexed files, and merges and divides indexed ones."""
    SPLIT = "SPLIT"
    """Splits cubes of more rows than samples need."""
    REWRITE = "REWRITE"
    """Writes indexed files again, because no cheaper step lowers the cost of reads."""
    SMALLER_FILES = "SMALLER_FILES"
    """Sets a smaller size of files, of which selective reads need fewer bytes."""
    MERGE = "MERGE"
    """Merges small files of a table without an index."""
    STATISTICS = "STATISTICS"
    """Adds statistics to files without any, which every condition reads."""
    DELETES = "DELETES"
    """Removes deleted rows from files."""
    LOG = "LOG"
    """Writes a checkpoint, which a reader loads in place of commits."""


@dataclass(frozen=True)
class Advice:
    """A remedy and its statement.

    Attributes:
        remedy: the kind of step.
        statement: SQL.
    """

    remedy: Remedy
    statement: str


@dataclass(frozen=True)
class AdviceStep:
    """One thing to do.

    Attributes:
        advice: the step.
        saved_bytes: bytes that an average read is expected to save; None if that is not known.
        reason: why, one sentence.
    """

    advice: Advice
    saved_bytes: int | None
    reason: str

    @property
    def statement(self) -> str:
        """The SQL of the step."""
        return self.advice.statement


def sql_text(text: str) -> str:
    """Returns a text as a SQL literal.

    Args:
        text: the text.
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
