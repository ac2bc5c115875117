"""What a plan needs to know of the recorded scans of a table: a few of the newest, which stand for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from catalog.insights.consumption import newest_scans, scans_of
from catalog.table.managed_table import ManagedTable

# So many of the newest records are taken into account.
MOST_RECORDS = 50_000
# So many lines of the newest files are read for each. A merged file and its parts have each line twice for a while.
_LINES_PER_RECORD = 2
# So many of them are returned, spread evenly.
MOST_SCANS = 256


@dataclass(frozen=True)
class Filter:
    """A comparison of a column.

    Attributes:
        column: its name.
        operator: such as ``>=``; with ``f()`` or ``OR`` it does not decide about a row.
        literal: as SQL; None where literals are not recorded.
    """

    column: str
    operator: str
    literal: str | None


@dataclass(frozen=True)
class RecordedScan:
    """A scan of the table by a query that has finished.

    Attributes:
        time: when the query finished, epoch milliseconds.
        fraction: share of the weights that it asked for; 1 without a sample.
        filters: what it compared.
        rows_read: rows that the scan returned.
        rows_kept: rows that the filters above it kept.
    """

    time: int
    fraction: float
    filters: tuple[Filter, ...]
    rows_read: int
    rows_kept: int


@dataclass(frozen=True)
class RecordedScans:
    """Scans that stand for more of their kind.

    Attributes:
        scans: in the order of time.
        weight: how many scans each of them stands for.
    """

    scans: tuple[RecordedScan, ...]
    weight: float

    def thinned(self, most: int) -> RecordedScans:
        """At most so many of them, spread evenly, which stand for as many as before.

        Args:
            most: how many, at least 1.
        """
        if len(self.scans) <= most:
            return self
        chosen = _evenly(len(self.scans), most)
        return RecordedScans(tuple(self.scans[n] for n in chosen), self.weight * len(self.scans) / most)


def recorded_scans(table: ManagedTable, since: int) -> RecordedScans:
    """Returns the scans since a time; one Spark job with a shuffle, if there are records.

    Args:
        table: the table.
        since: epoch milliseconds.
    """
    newest = newest_records(table, MOST_RECORDS, ("sample_fraction", "filters", "rows_read", "rows_kept"), since)
    if not newest.num_rows:
        return RecordedScans((), 1.0)
    chosen = _evenly(newest.num_rows, min(newest.num_rows, MOST_SCANS))
    scans = [_scan(row) for row in newest.take(chosen[::-1]).to_pylist()]
    return RecordedScans(tuple(scans), newest.num_rows / len(scans))


def newest_records(table: ManagedTable, most: int, columns: Sequence[str | Column], since: int = 0) -> pa.Table:
    """Returns the newest records of scans, newest first; one Spark job with a shuffle, if there are any.

    Only the newest files are read. All are read if these do not hold all of the newest records, because many of their
    lines are duplicates or older than those of other files.

    Args:
        table: the table.
        most: how many records.
        columns: what is wanted beside ``time``, epoch milliseconds.
        since: epoch milliseconds.
    """
    newest, missing_until = _newest(table, most, columns, since, _LINES_PER_RECORD * most)
    if missing_until is not None and (newest.num_rows < most or newest["time"][most - 1].as_py() < missing_until):
        newest, _ = _newest(table, most, columns, since, None)
    return newest


def _newest(
    table: ManagedTable, most: int, columns: Sequence[str | Column], since: int, most_lines: int | None
) -> tuple[pa.Table, int | None]:
    """The newest records since a time, newest first, among the lines of the newest files; see ``newest_scans``."""
    scans, missing_until = newest_scans(table, since, most_lines)
    rows = (
        scans.where(F.col("time") >= F.timestamp_millis(F.lit(since)))
        .select(F.unix_millis("time").alias("time"), *columns)
        .orderBy(F.desc("time"))
        .limit(most)
        .toArrow()
    )
    return rows, missing_until


class ScanTotals(NamedTuple):
    """The recorded scans of a table since a time, added up.

    Attributes:
        scans: how many.
        weight: how many, each counted by its recency.
        first: when the first of them finished, epoch milliseconds; None without any.
        share_read: share of the table's bytes that a scan read, on average, with the same weights; 0 without any.
    """

    scans: int
    weight: float
    first: int | None
    share_read: float


def scan_totals(table: ManagedTable, since: int, now: int, half_life: float, row_bytes: float) -> ScanTotals:
    """Adds up the recorded scans since a time; one Spark job, if there are records.

    Args:
        table: the table.
        since: epoch milliseconds, exclusive.
        now: epoch milliseconds.
        half_life: milliseconds after which a scan counts half as much; infinite = all count alike.
        row_bytes: bytes of a row: of a file whose pages are skipped, a scan reads the rest; infinite = not known.
    """
    size, time = F.col("table_size.bytes"), F.unix_millis("time")
    read = F.least("read.bytes", F.coalesce(F.col("rows_read") * F.lit(row_bytes), "read.bytes"))
    share = (read + F.coalesce("read_for_joins.bytes", F.lit(0))) / size
    weight = F.pow(F.lit(0.5), F.greatest(F.lit(now) - time, F.lit(0)) / F.lit(half_life))
    row = (
        scans_of(table, since)
        .where((time > since) & (size > 0))
        .agg(F.count("*"), F.sum(weight), F.min(time), F.sum(weight * share))
        .first()
    )
    scans, total, first, shares = row if row is not None and row[0] else (0, 0.0, None, 0.0)
    return ScanTotals(scans, total, first, min(1.0, shares / max(total, 1e-12)))


def _evenly(count: int, wanted: int) -> list[int]:
    places: list[int] = (np.arange(wanted) * count // wanted).tolist()
    return places


def _scan(row: dict[str, Any]) -> RecordedScan:
    fraction = row["sample_fraction"]
    filters = tuple(Filter(f["column"], f["operator"], f["literal"]) for f in row["filters"] or ())
    return RecordedScan(
        row["time"], 1.0 if fraction is None else fraction, filters, row["rows_read"] or 0, row["rows_kept"] or 0
    )
