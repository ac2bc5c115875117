"""The sentence about a table, and the commands that act on it."""

from __future__ import annotations

import enum
import shlex
from dataclasses import dataclass

from catalog.quantities import share_text, size_text


class Gain(str, enum.Enum):
    """What USE would gain for a table."""

    INDEX = "INDEX"
    """Queries read fewer bytes with an index."""
    OPTIMIZE = "OPTIMIZE"
    """The table has an index, and files that it does not cover yet."""
    MERGE = "MERGE"
    """No index saves enough, but the table has many small files."""
    PURGE = "PURGE"
    """No index saves enough, but reads carry many deleted rows."""
    NOTHING = "NOTHING"
    """There is nothing to gain."""


@dataclass(frozen=True)
class Verdict:
    """What to do with a table.

    Attributes:
        gain: the kind of gain.
        sentence: for people.
        command: one line for a shell; empty if there is nothing to do.
        saved_bytes: bytes that a read of the workload saves on average.
    """

    gain: Gain
    sentence: str
    command: str
    saved_bytes: int


@dataclass(frozen=True)
class VerdictFacts:
    """What a verdict depends on.

    Attributes:
        location: path or URL.
        bytes: size of the table.
        files: number of files.
        small_files: number of small ones.
        target_file_bytes: size of files after a rewrite.
        has_default_target: whether this is what the table would use without an option.
        rows: number of rows; None if unknown.
        deleted_rows: number of rows that deletion vectors mark.
        present_columns: columns of the present index.
        unindexed_bytes: bytes of files without it.
        columns: recommended columns.
        columns_text: the same as ``use.index`` takes them.
        today: share of the bytes that the queries read today.
        indexed: share that they would read.
        are_assumed: whether the queries are assumed ones.
    """

    location: str
    bytes: int
    files: int
    small_files: int
    target_file_bytes: int
    has_default_target: bool
    rows: int | None
    deleted_rows: int
    present_columns: tuple[str, ...]
    unindexed_bytes: int
    columns: tuple[str, ...]
    columns_text: str
    today: float
    indexed: float
    are_assumed: bool


# With fewer small files per file of the target size, a merge saves little of the time to open files.
_MANY_SMALL = 4
_MUCH_DELETED = 0.1
_MUCH_UNINDEXED = 0.1


def verdict_of(facts: VerdictFacts) -> Verdict:
    """Judges a table."""
    if facts.present_columns and facts.unindexed_bytes > _MUCH_UNINDEXED * facts.bytes:
        share = share_text(facts.unindexed_bytes / max(facts.bytes, 1))
        text = f"The table is indexed by {_names(facts.present_columns)}, but {share} of its bytes are not yet."
        return Verdict(Gain.OPTIMIZE, text, _optimize(facts), 0)
    is_new = set(facts.columns) != set(facts.present_columns)
    if facts.columns and is_new:
        return _index(facts)
    if facts.rows and facts.deleted_rows > _MUCH_DELETED * facts.rows:
        share = share_text(facts.deleted_rows / facts.rows)
        text = f"An index saves little, but {share} of the rows are deleted and still read. A compaction removes them."
        command = f"use-spark compact --table {_quoted(facts)}"
        return Verdict(Gain.PURGE, text, command, int(facts.deleted_rows / facts.rows * facts.bytes))
    merged = max(1, -(-facts.bytes // facts.target_file_bytes))
    if facts.small_files >= _MANY_SMALL and facts.files > _MANY_SMALL * merged:
        text = f"An index saves little, but {facts.files:,} files could be {merged:,}, so that scans open fewer."
        return Verdict(
            Gain.MERGE, text, f"use-spark optimize --strategy SizeTieredClustering --table {_quoted(facts)}", 0
        )
    return Verdict(Gain.NOTHING, f"Nothing to gain: {_why_nothing(facts)}.", "", 0)


def _index(facts: VerdictFacts) -> Verdict:
    saved = int((facts.today - facts.indexed) * facts.bytes)
    what = "Ranges of the usual columns" if facts.are_assumed else "Your queries"
    today, indexed = share_text(facts.today), share_text(facts.indexed)
    text = (
        f"{what} read {today} of the bytes today, and about {indexed} with an index on {_names(facts.columns)}. "
        f"It is written once: {size_text(facts.bytes)}."
    )
    target = "" if facts.has_default_target else f" --target-file-bytes {facts.target_file_bytes}"
    columns = shlex.quote(facts.columns_text)
    command = f"use-spark index --table {_quoted(facts)} --columns {columns}{target} && {_optimize(facts)}"
    return Verdict(Gain.INDEX, text, command, saved)


def _why_nothing(facts: VerdictFacts) -> str:
    if facts.files == 0:
        return "the table is empty"
    if facts.bytes <= facts.target_file_bytes:
        return f"the table fits into one file of {size_text(facts.target_file_bytes)}"
    if facts.present_columns:
        return f"the table is indexed by {_names(facts.present_columns)}"
    what = "ranges of its columns" if facts.are_assumed else "your queries"
    return f"{what} read {share_text(facts.today)} of the bytes today, and no index reads much less"


def _optimize(facts: VerdictFacts) -> str:
    return f"use-spark optimize --table {_quoted(facts)}"


def _quoted(facts: VerdictFacts) -> str:
    return shlex.quote(facts.location)


def _names(columns: tuple[str, ...]) -> str:
    return ", ".join(columns)
