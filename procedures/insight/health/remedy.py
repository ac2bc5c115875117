"""What can be done about the state of a table: the one list that every piece of advice comes from; pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Remedy(str, Enum):
    """What a step does."""

    FAILURES = "FAILURES"
    """Looks at recorded failures: what runs next would fail, too."""
    CLUSTERING = "CLUSTERING"
    """Ends Delta's clustering of an indexed table: the files that OPTIMIZE clusters have no index."""
    INDEX = "INDEX"
    """Declares index columns that were measured, and indexes the files."""
    OPTIMIZE = "OPTIMIZE"
    """Indexes unindexed files, and merges and divides indexed ones."""
    REWRITE = "REWRITE"
    """Writes indexed files anew, because no cheaper step lowers what reads cost."""
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
        remedy: what it does.
        statement: SQL.
    """

    remedy: Remedy
    statement: str


@dataclass(frozen=True)
class AdviceStep:
    """One thing to do.

    Attributes:
        advice: what to do.
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
