"""The rows of ``<table>.consumption``: one per scan of a finished query, as the shim's ``ScanRecords`` writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog.epoch_millis import LAST_MILLIS
from catalog.jvm.json_lines import json_lines
from catalog.state.line_folder import MergedLines
from catalog.state.state_files import Fields, Unreadable, parse

_COUNT = "struct<files:bigint,bytes:bigint>"
_COUNTS = (
    "table_size",
    "skipped_by_partitions",
    "skipped_by_statistics",
    "skipped_by_limit",
    "skipped_by_cubes",
    "skipped_by_weights",
    "skipped_by_joins",
    "read",
    "read_for_joins",
)
_IDENTITY = (
    "user_name string, session_kind string, application_id string, execution_id bigint, query_id string, "
    "statement_id string, version bigint, filters array<struct<column:string,operator:string,literal:string>>"
)
_FACTS = f"{', '.join(f'{name} {_COUNT}' for name in _COUNTS)}, rows_read bigint, rows_kept bigint, duration_ms bigint"
CONSUMPTION_SCHEMA = f"time timestamp_ltz, {_IDENTITY}, selectivity double, sample_fraction double, {_FACTS}"
_STORED = f"table_id string, finished_at bigint, scan int, {_IDENTITY}, sample_fraction double, {_FACTS}"
_KEY = ("application_id", "execution_id", "scan")
_MOST = 2**63 - 1


@dataclass(frozen=True)
class StoredScan:
    """One line of a file below ``_use/consumption``.

    Attributes:
        line: the line as it is written.
        key: names the scan among those of all applications.
        finished_at: epoch milliseconds.
    """

    line: str
    key: tuple[str, int, int]
    finished_at: int


def parse_scans(text: str) -> list[StoredScan] | Unreadable:
    """Parses a file; an invalid line makes it unreadable, because the file may be incomplete."""
    scans = []
    for number, line in enumerate(text.split("\n"), start=1):
        scan = parse(line, partial(_stored_scan, line))
        if isinstance(scan, Unreadable):
            return Unreadable(scan.code, f"line {number}: {scan.detail}")
        scans.append(scan)
    return scans


def merged_lines(scans: Iterable[StoredScan], most: int | None = None, not_before: int = 0) -> MergedLines:
    """Returns one line per scan, with the time of the newest query as the number of their file.

    Args:
        scans: at least one.
        most: so many of the newest scans, at least 1; None = all.
        not_before: leaves out scans that finished before, epoch milliseconds; the newest one stays.
    """
    by_key = {scan.key: scan for scan in scans}
    ordered = sorted(by_key.values(), key=lambda scan: (scan.finished_at, scan.key))
    newest = ordered if most is None else ordered[-most:]
    kept = [scan for scan in newest if scan.finished_at >= not_before] or newest[-1:]
    return MergedLines(kept[-1].finished_at, [scan.line for scan in kept])


def scan_rows(spark: SparkSession, files: Sequence[str], table_id: str) -> DataFrame:
    """Returns the scans in files; lines of other tables, and lines that are none of ours, are skipped.

    Args:
        spark: session.
        files: URIs, at least one.
        table_id: Delta's metadata id.
    """
    stored = json_lines(spark, files, _STORED)
    known = stored.where(F.col("finished_at").between(0, LAST_MILLIS) & (F.col("table_id") == table_id))
    # Two processes may merge the same files.
    once = known.dropna(subset=list(_KEY)).dropDuplicates(list(_KEY))
    return once.withColumns(
        {
            "time": F.timestamp_millis("finished_at"),
            "selectivity": F.when(F.col("rows_read") > 0, F.col("rows_kept") / F.col("rows_read")),
        }
    ).select(*(column.split()[0] for column in CONSUMPTION_SCHEMA.split(", ")))


def _stored_scan(line: str, node: Fields) -> StoredScan:
    key = node.text("application_id"), node.whole_number("execution_id", most=_MOST), node.whole_number("scan")
    node.text("table_id")
    return StoredScan(line, key, node.whole_number("finished_at"))
