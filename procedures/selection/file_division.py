"""Division of a large file into several; pure."""

from __future__ import annotations

from catalog.files.file_table import UNKNOWN, FileTable
from procedures.groups.consolidation_plan import LARGE_MULTIPLE
from procedures.groups.group import Concatenate, FileRun, InputFile


def is_large(files: FileTable, position: int, max_bytes: int) -> bool:
    """Whether a file is so large that it is divided. The log must have its number of rows, of which there are two.

    Args:
        files: the files.
        position: of the file.
        max_bytes: bytes that files should have at most.
    """
    rows = int(files.rows[position])
    return int(files.size[position]) > LARGE_MULTIPLE * max_bytes and rows != UNKNOWN and rows > 1


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
