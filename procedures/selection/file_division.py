"""Division of a large file into several; pure."""

from __future__ import annotations

import numpy as np

from catalog.files.arrays import UNKNOWN, Flags, Integers
from catalog.files.file_table import FileTable
from catalog.quantities import size_text
from procedures.groups.consolidation_plan import LARGE_MULTIPLE
from procedures.groups.group import Concatenate, FileRun, InputFile


def are_large(size: Integers, rows: Integers, max_bytes: int) -> Flags:
    """Whether files are so large that they are divided.

    The log must have the number of rows of such a file, which has two or more.

    Args:
        size: bytes of each file.
        rows: live rows of each, ``UNKNOWN`` where the log does not tell.
        max_bytes: bytes that files should have at most.
    """
    flags: Flags = (size > LARGE_MULTIPLE * max_bytes) & (rows != UNKNOWN) & (rows > 1)
    return flags


def large_files(files: FileTable, max_bytes: int) -> Integers:
    """Positions of the files that are so large that they are divided.

    Args:
        files: the files.
        max_bytes: bytes that files should have at most.
    """
    positions: Integers = np.flatnonzero(are_large(files.size, files.rows, max_bytes))
    return positions


def parts_of_file(size: int, rows: int, max_bytes: int) -> int:
    """How many files a file becomes.

    Args:
        size: its bytes.
        rows: its rows.
        max_bytes: bytes that files should have at most.
    """
    return min(rows, -(-size // max_bytes))


def rows_per_part(rows: int, parts: int) -> int:
    """Rows of each file that a file becomes, at most.

    Args:
        rows: of the file.
        parts: how many files it becomes.
    """
    return -(-rows // parts)


def division(files: FileTable, position: int, max_bytes: int, strategy: str) -> Concatenate:
    """The group that divides a file.

    Args:
        files: the files.
        position: of a large file.
        max_bytes: bytes that files should have at most.
        strategy: name of the strategy.
    """
    (file,) = InputFile.of(files, [position])
    rows = file.rows or 0
    count = parts_of_file(file.size, rows, max_bytes)
    note = f"1 file of {size_text(file.size)} becomes {count}"
    return Concatenate(
        strategy,
        int(files.revision[position]),
        f"LARGE_FILE_TO_{count}",
        (file,),
        note,
        runs=(FileRun.of(files, [position]),),
        rows_per_file=rows_per_part(rows, count),
    )
