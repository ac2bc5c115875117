"""The cost of reads over the files of a table, and over the same rows in a fresh index; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from itertools import islice

import numpy as np

from catalog.files.arrays import Flags
from catalog.files.file_table import FileTable
from procedures.groups.read_costs import Read, Regions, bands_of, costs_of_fresh_layout, costs_per_file

# The reads that health is measured by: their parts have these names.
SAMPLE_1, SAMPLE_10, BOX_1, JOIN_1 = "sample_1_percent", "sample_10_percent", "box_1_percent", "join_1_percent"
# A file without an index has no pages that a box could skip.
_WHOLE_FILE = 2**40
# Spark's estimate for opening a file (spark.sql.files.openCostInBytes).
OPEN_COST = 4 * 1024 * 1024


def measured_reads(dimensions: int) -> dict[str, tuple[Read, ...]]:
    """Returns the reads by name; the cost of a name is the mean of its reads.

    They are samples of 1 % and 10 %, a box with 1 % of the rows over all indexed columns, and, with several columns,
    joins with 1 % of the values of one of them.

    Args:
        dimensions: number of indexed columns.
    """
    whole = (1.0,) * dimensions
    reads: dict[str, tuple[Read, ...]] = {
        SAMPLE_1: (Read(0.01, whole),),
        SAMPLE_10: (Read(0.1, whole),),
        BOX_1: (Read(1.0, (0.01 ** (1 / dimensions),) * dimensions),),
    }
    if dimensions > 1:
        slices = [tuple(0.01 if n == column else 1.0 for n in range(dimensions)) for column in range(dimensions)]
        reads[JOIN_1] = tuple(Read(1.0, sides) for sides in slices)
    return reads


@dataclass(frozen=True)
class ReadCost:
    """The cost of one read.

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


def read_costs(
    files: FileTable, is_indexed: Flags, target_bytes: int, named: Sequence[float] = ()
) -> dict[str, ReadCost]:
    """Returns the costs of the reads by name; none for a table without rows.

    Args:
        files: all files of the table, with the ranges of the indexed columns.
        is_indexed: whether the index can skip each file by weight; other files are read whole unless their ranges in
            the statistics are outside the box.
        target_bytes: bytes of a file of a fresh index.
        named: samples for which files of a fresh index end, by the table's properties.
    """
    named_reads = measured_reads(files.low.shape[1]) if files.low.shape[1] else {}
    mix = [read for reads in named_reads.values() for read in reads]
    costs = iter(_costs(files, is_indexed, target_bytes, mix, named))
    found = {name: list(islice(costs, len(reads))) for name, reads in named_reads.items()}
    return {name: _mean(of_reads) for name, of_reads in found.items() if of_reads}


def fresh_costs(files: FileTable, target_bytes: int, fractions: Sequence[float]) -> float:
    """Returns the cost of an average sample or box in a fresh index, in bytes, opened files included.

    Args:
        files: all files of the table, with the ranges of the indexed columns.
        target_bytes: bytes of a file of the index.
        fractions: samples for which its files end.
    """
    dimensions, rows, size = files.low.shape[1], float(files.rows[files.rows > 0].sum()), float(files.size.sum())
    if not dimensions or not size:
        return 0.0
    target_rows = max(int(rows * target_bytes / size), 1)
    bands = bands_of(rows, rows, target_rows, fractions)
    mix = [read for name, reads in measured_reads(dimensions).items() if name != JOIN_1 for read in reads]
    costs = costs_of_fresh_layout(rows, size, bands, mix, target_rows)
    return float(np.mean(costs.bytes + costs.files * OPEN_COST))


def sample_costs(
    files: FileTable, is_indexed: Flags, target_bytes: int, fractions: Sequence[float], named: Sequence[float]
) -> tuple[tuple[float, float, float], ...]:
    """Returns fraction, bytes that a sample reads, and bytes that it would read of a fresh index.

    Args:
        files: see ``read_costs``, like the next two.
        is_indexed: whether the index can skip each file.
        target_bytes: bytes of a file of a fresh index.
        fractions: of the samples.
        named: samples for which files of a fresh index end, by the table's properties.
    """
    reads = [Read(fraction, (1.0,) * files.low.shape[1]) for fraction in fractions]
    costs = _costs(files, is_indexed, target_bytes, reads, named)
    return tuple((fraction, cost.bytes, cost.fresh_bytes) for fraction, cost in zip(fractions, costs, strict=False))


def _mean(costs: Sequence[ReadCost]) -> ReadCost:
    return ReadCost(*np.mean([astuple(cost) for cost in costs], axis=0).tolist())


def _costs(
    files: FileTable, is_indexed: Flags, target_bytes: int, mix: list[Read], named: Sequence[float]
) -> list[ReadCost]:
    """The cost of each read; none for a table without rows or indexed columns."""
    dimensions = files.low.shape[1]
    if not len(files) or not dimensions or not files.size.sum():
        return []
    regions = Regions.of(files)
    indexed, others = np.flatnonzero(is_indexed), np.flatnonzero(~is_indexed)
    nothing = np.zeros(len(mix))
    rows, size = float(regions.rows.sum()), float(regions.size.sum())
    target_rows = max(int(rows * target_bytes / size), 1)
    fresh = costs_of_fresh_layout(rows, size, bands_of(rows, rows, target_rows, named), mix, target_rows)
    read = opened = plain = nothing
    if len(others):
        cost = costs_per_file(regions.take(others), mix, _WHOLE_FILE)
        read, opened, plain = cost.bytes.sum(axis=1), cost.files.sum(axis=1), cost.bytes.sum(axis=1)
    if len(indexed):
        cost = costs_per_file(regions.take(indexed), mix)
        read, opened = read + cost.bytes.sum(axis=1), opened + cost.files.sum(axis=1)
    columns = (read, opened, fresh.bytes, fresh.files, plain)
    return [ReadCost(*map(float, values)) for values in zip(*columns, strict=True)]
