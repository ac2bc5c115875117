"""Division of a large file into several; pure."""

from __future__ import annotations

import numpy as np

from catalog.files.file_table import UNKNOWN, FileTable, Integers
from procedures.groups.consolidation_plan import LARGE_MULTIPLE
from procedures.groups.group import Concatenate, FileRun, InputFile


def large_files(files: FileTable, max_bytes: int) -> Integers:
    """Positions of the files that are so large that they are divided.

    The log must have the number of rows of such a file, which has two or more.

    Args:
        files: the files.
        max_bytes: bytes that files should have at most.
    """
    is_large = (files.size > LARGE_MULTIPLE * max_bytes) & (files.rows != UNKNOWN) & (files.rows > 1)
    positions: Integers = np.flatnonzero(is_large)
    return positions


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
    count = min(rows, -(-file.size // max_bytes))
    run = FileRun((file.path,), int(files.tier[position]) or None)
    note = f"1 file of {file.size} bytes becomes {count}"
    return Concatenate(
        strategy,
        int(files.revision[position]),
        f"LARGE_FILE_TO_{count}",
        (file,),
        note,
        runs=(run,),
        rows_per_file=-(-rows // count),
    )
