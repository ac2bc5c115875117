"""What reads cost over the files of a table, and over the same rows in a fresh index; pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from catalog.table.file_columns import FileColumns, Flags
from procedures.selection.read_costs import PlannedFiles, Read, costs_per_file
from procedures.selection.sorted_run_compaction import run_files

# The reads that health is measured by: their parts have these names.
SAMPLE_1, SAMPLE_10, BOX_1 = "sample_1_percent", "sample_10_percent", "box_1_percent"
# A file without an index has no pages that a box could skip.
_WHOLE_FILE = 2**40


def measured_reads(dimensions: int) -> dict[str, Read]:
    """Returns the reads by name: samples of 1 % and 10 %, and a box with 1 % of the rows over all indexed columns.

    Args:
        dimensions: number of indexed columns.
    """
    whole = (1.0,) * dimensions
    return {
        SAMPLE_1: Read(0.01, whole),
        SAMPLE_10: Read(0.1, whole),
        BOX_1: Read(1.0, (0.01 ** (1 / dimensions),) * dimensions),
    }


@dataclass(frozen=True)
class ReadCost:
    """What one read costs.

    Attributes:
        bytes: expected bytes that it reads.
        files: expected files that it opens.
        fresh_bytes: the same of a fresh index of the same rows.
        fresh_files: likewise.
        unindexed_bytes: bytes that it reads in files without an index.
    """

    bytes: float
    files: float
    fresh_bytes: float
    fresh_files: float
    unindexed_bytes: float


def read_costs(files: FileColumns, is_indexed: Flags, target_bytes: int) -> dict[str, ReadCost]:
    """Returns the costs of the reads by name; none for a table without rows.

    Args:
        files: all files of the table, with the ranges of the indexed columns.
        is_indexed: whether the index can skip each file by weight; the others are read whole unless their ranges in the
            statistics are outside the box.
        target_bytes: bytes of a file of a fresh index.
    """
    dimensions = files.low.shape[1]
    if not len(files) or not dimensions or not files.size.sum():
        return {}
    reads = measured_reads(dimensions)
    mix = list(reads.values())
    runs = run_files(files)
    indexed, others = np.flatnonzero(is_indexed), np.flatnonzero(~is_indexed)
    of_indexed = costs_per_file(runs.take(indexed), mix) if len(indexed) else None
    unranked = runs.take(others)
    of_others = costs_per_file(unranked, mix, _WHOLE_FILE) if len(others) else None
    rows, size = float(runs.rows.sum()), float(runs.size.sum())
    target_rows = max(int(rows * target_bytes / size), 1)
    fresh = PlannedFiles.of_all(rows, size, dimensions).costs(mix, target_rows)
    costs = {}
    for number, name in enumerate(reads):
        plain = 0.0 if of_others is None else float(of_others.bytes[number].sum())
        total, opened = plain, 0.0 if of_others is None else float(of_others.files[number].sum())
        if of_indexed is not None:
            total += float(of_indexed.bytes[number].sum())
            opened += float(of_indexed.files[number].sum())
        costs[name] = ReadCost(total, opened, float(fresh.bytes[number]), float(fresh.files[number]), plain)
    return costs
