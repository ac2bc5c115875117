"""Which files of a table the statements of the last minutes read or wrote, as far as their commits tell; pure.

A rewrite that commits a replacement of a file fails a statement that has read the file and has not committed yet. A
statement reads all files that its condition may match. The log names only those that it changed, so the others are
inferred from what the changed files of several statements have in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from catalog.files.arrays import Flags, Floats
from catalog.files.file_table import FileTable
from catalog.insights.recent_statements import Statement

# A region with more of the bytes of a table is replaced by a narrower one: the table would never be optimized.
_MOST_SHARE = 0.5
# Except in a small table, where leaving everything alone costs little.
_SMALL_BYTES, _SMALL_FILES = 1_000_000_000, 1_000


@dataclass(frozen=True, eq=False)
class Region:
    """A box of values that statements are expected to read.

    Attributes:
        low: smallest value in each column.
        high: largest value.
    """

    low: Floats
    high: Floats

    @classmethod
    def of(cls, low: Floats, high: Floats) -> Region:
        """Infers a region from files that statements changed.

        In each column, it is the range that all files share, such as the newest day. If they share none, it is the
        shortest range that overlaps each of them. A file whose range is not known may have any value.

        Args:
            low: smallest values, NaN where not known. Shape (files, columns), at least one file.
            high: largest values, likewise.
        """
        last_low, first_high = low.max(axis=0), high.min(axis=0)
        is_unknown = np.isnan(last_low) | np.isnan(first_high)
        return cls(
            np.where(is_unknown, -np.inf, np.minimum(last_low, first_high)),
            np.where(is_unknown, np.inf, np.maximum(last_low, first_high)),
        )

    def within(self, columns: Flags) -> Region:
        """The region that is restricted in some columns only.

        Args:
            columns: in which it stays as it is.
        """
        return Region(np.where(columns, self.low, -np.inf), np.where(columns, self.high, np.inf))

    def overlaps(self, files: FileTable) -> Flags:
        """Whether files overlap the region in all columns; a file whose range is not known may."""
        outside = (files.low > self.high) | (files.high < self.low)
        return np.asarray(~outside.any(axis=1), np.bool_)


def active_files(
    files: FileTable, statements: Sequence[Statement], columns: Sequence[str], partition_columns: Sequence[str]
) -> Flags:
    """Whether each file is one that the next statements are expected to read, or that the last ones wrote.

    Args:
        files: all files of a version, with ranges of the columns.
        statements: those of the last minutes.
        columns: names of the columns, without the fields of nested ones.
        partition_columns: names of the partition columns.
    """
    active = files.with_paths([path for statement in statements for path in statement.written])
    by_kind: dict[object, list[Statement]] = {}
    for statement in statements:
        by_kind.setdefault(statement.kind, []).append(statement)
    for of_kind in by_kind.values():
        active |= _read_by(files, of_kind, columns, partition_columns)
    return active


def conflicts_anywhere(statements: Sequence[Statement], partition_columns: Sequence[str]) -> bool:
    """Whether a rewrite of any file fails a statement that is under way, like those of the last minutes.

    Delta fails a statement if another commit adds a file to a partition that its condition may match, whatever the file
    contains. A table without partitions is one partition.

    Args:
        statements: those of the last minutes.
        partition_columns: names of the partition columns.
    """
    return any(not any(s.compares(column) for column in partition_columns) for s in statements)


def _read_by(
    files: FileTable, statements: Sequence[Statement], columns: Sequence[str], partition_columns: Sequence[str]
) -> Flags:
    """The files that statements of one kind are expected to read.

    These are the first of the regions with no more than half of the table's bytes. If there is none, changes are all
    over the table, and no file is expected to be read by more statements than others.
    """
    total = int(files.size.sum())
    for flags in _candidates(files, statements, columns, partition_columns):
        size, count = int(files.size[flags].sum()), int(flags.sum())
        if size <= _MOST_SHARE * total or (size <= _SMALL_BYTES and count <= _SMALL_FILES):
            return flags
    return np.zeros(len(files), np.bool_)


def _candidates(
    files: FileTable, statements: Sequence[Statement], columns: Sequence[str], partition_columns: Sequence[str]
) -> Iterator[Flags]:
    """The files of regions, from the one with the most files to the one with the fewest."""
    partitions = frozenset().union(*(statement.partitions for statement in statements))
    in_partitions: Flags = np.ones(len(files), np.bool_)
    if partition_columns and partitions:
        in_partitions = np.fromiter((partition in partitions for partition in files.partition), np.bool_, len(files))
    region = Region.of(*(np.concatenate([getattr(s, name) for s in statements]) for name in ("low", "high")))
    compared = np.array([statements[0].compares(column) for column in columns], np.bool_)
    # Only columns that a condition compares with values restrict what it reads.
    names_partition = any(statements[0].compares(column) for column in partition_columns)
    of_condition = region.within(compared).overlaps(files)
    yield of_condition & in_partitions if names_partition else of_condition
    yield region.within(compared).overlaps(files) & in_partitions
    yield region.overlaps(files) & in_partitions
