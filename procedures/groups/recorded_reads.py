"""Recorded scans as the reads by which groups are judged; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone

import numpy as np

from catalog.files.arrays import Floats, Integers
from catalog.files.file_table import FileTable
from catalog.insights.recorded_scans import Filter, RecordedScan, RecordedScans
from otree.value_spread import ValueSpread
from procedures.groups.read_costs import Read, Regions

# A plan judges fewer reads where there are many files: so many costs of a file for a read are held in memory.
_MOST_COSTS = 5_000_000
_LEAST_READS = 16
_SMALLEST_SIDE = 1e-6
# The shim cuts literals there (FilterColumns in ScanRecords.scala).
_MOST_CHARACTERS = 200
_NEVER = np.iinfo(np.int64).max
_COMPARED = frozenset(("=", "<=>", "<", "<=", ">", ">=", "IN"))
_NUMBER = re.compile(r"(?:CAST\()?'?(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?:L|S|Y|D|F|BD)?'?(?: AS \w+(?:\([^)]*\))?\))?")
_DATE = re.compile(r"DATE '(\d{4}-\d\d-\d\d)'")
_TIMESTAMP = re.compile(r"TIMESTAMP(?:_NTZ)? '(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(\.\d+)?'")


@dataclass(frozen=True, eq=False)
class RecordedReads:
    """Reads of the past.

    Attributes:
        reads: what they read.
        times: when, epoch milliseconds.
        weight: how many scans each of them stands for.
        written: when each file of the revision was written, epoch milliseconds.
    """

    reads: tuple[Read, ...]
    times: Integers
    weight: float
    written: Integers

    def since_overlap(self, members: Integers, starts: Integers, write: Integers) -> Floats:
        """How many scans of each read came after a file and a second write of its group were there.

        What a scan read while a group had files of a single write is no reason to merge it.

        Args:
            members: positions of the files, group after group.
            starts: where the files of each group begin among them.
            write: number of the write of each member.

        Returns:
            An array of the shape (reads, members).
        """
        written = self.written[members]
        counts = np.diff([*starts, len(members)])
        is_first = written == np.repeat(np.minimum.reduceat(written, starts), counts)
        first = np.minimum.reduceat(np.where(is_first, write, _NEVER), starts)
        others = np.where(write == np.repeat(first, counts), _NEVER, written)
        since = np.maximum(written, np.repeat(np.minimum.reduceat(others, starts), counts))
        return np.where(self.times[:, None] > since[None, :], self.weight, 0.0)


def recorded_reads(
    recorded: RecordedScans, columns: Sequence[str], files: FileTable, regions: Regions
) -> RecordedReads:
    """Turns scans into reads.

    A scan whose literals are recorded is a box in a place. Of any other, the share of the rows that it kept says how
    large its box was, and it may have been anywhere.

    Args:
        recorded: at least one scan.
        columns: the indexed columns.
        files: of the revision, with the ranges of these columns.
        regions: the same files.
    """
    recorded = recorded.thinned(max(_MOST_COSTS // max(len(files), 1), _LEAST_READS))
    spreads = [ValueSpread.of_files(files.low[:, n], files.high[:, n], regions.rows) for n in range(len(columns))]
    rows = float(regions.rows.sum())
    reads = tuple(_read(scan, columns, spreads, rows) for scan in recorded.scans)
    times = np.array([scan.time for scan in recorded.scans], np.int64)
    return RecordedReads(reads, times, recorded.weight, files.modification_time)


def _read(scan: RecordedScan, columns: Sequence[str], spreads: Sequence[ValueSpread | None], rows: float) -> Read:
    names = [column.lower() for column in columns]
    compared = [f for f in scan.filters if f.operator in _COMPARED and f.column.lower() in names]
    boxed = sorted({names.index(f.column.lower()) for f in compared})
    # Filters of other columns keep fewer rows than the box has.
    kept = scan.rows_kept if len(compared) == len(scan.filters) else scan.rows_read
    share = min(1.0, max(kept / max(rows * scan.fraction, 1.0), 1e-12))
    side = max(share ** (1 / max(len(boxed), 1)), _SMALLEST_SIDE)
    places = tuple(
        _place([f for f in compared if f.column.lower() == name], spread) if number in boxed else None
        for number, (name, spread) in enumerate(zip(names, spreads, strict=True))
    )
    return Read(scan.fraction, tuple(side if n in boxed else 1.0 for n in range(len(columns))), places)


def _place(filters: Sequence[Filter], spread: ValueSpread | None) -> tuple[float, float] | None:
    """Where on its column a box lies, as quantiles; None if the literals don't tell."""
    low, high = -np.inf, np.inf
    for f in filters:
        # A text of the most characters may have been cut.
        whole = f.literal is not None and len(f.literal) < _MOST_CHARACTERS
        values = [_value(text) for text in f.literal.split(", ")] if f.literal is not None and whole else [None]
        known = [value for value in values if value is not None]
        if len(known) < len(values) or spread is None:
            return None
        if f.operator in (">", ">=", "=", "<=>", "IN"):
            low = max(low, min(known))
        if f.operator in ("<", "<=", "=", "<=>", "IN"):
            high = min(high, max(known))
    first = 0.0 if low == -np.inf or spread is None else float(spread.below(np.array([low]))[0])
    last = 1.0 if high == np.inf or spread is None else float(spread.up_to(np.array([high]))[0])
    return first, max(first, last)


def _value(literal: str) -> float | None:
    """A literal as the number that files have for it; None where it has none."""
    if (found := _NUMBER.fullmatch(literal)) is not None:
        return float(found[1])
    if (found := _DATE.fullmatch(literal)) is not None:
        return float((date.fromisoformat(found[1]) - date(1970, 1, 1)).days)
    if (found := _TIMESTAMP.fullmatch(literal)) is not None:
        # The time zone is not recorded: a box that is some hours off has the same price.
        moment = datetime.fromisoformat(found[1]).replace(tzinfo=timezone.utc)
        return (moment.timestamp() + float(found[2] or 0)) * 1e6
    return None
