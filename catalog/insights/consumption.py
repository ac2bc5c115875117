"""The records of queries of a table below ``_use/consumption``: adding, merging, deleting and reading them."""

from __future__ import annotations

import uuid
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from catalog.errors import InvalidArgumentError
from catalog.insights.record_files import CONSUMPTION_FOLDER, RECORD_FILE, newest_files
from catalog.insights.scan_rows import CONSUMPTION_SCHEMA, StoredScan, merged_lines, parse_scans, scan_rows
from catalog.jvm.local_rows import local_data_frame
from catalog.jvm.shared_texts import SharedTexts
from catalog.jvm.vanished_files import read_again
from catalog.locations import STATE_FOLDER
from catalog.properties.insight_properties import ScanRetention
from catalog.state.line_folder import LineFolder
from catalog.state.state_files import Unreadable
from catalog.table.managed_table import ManagedTable

# If there are more files than this, they are merged into one.
MOST_FILES = 100
_ADVICE = "Its rows are left out. Delete the file, unless it is being written just now."


def add_scans(table: ManagedTable, text: str, now: int) -> None:
    """Stores the records of finished queries, and deletes old ones.

    Args:
        table: the table that the queries read.
        text: the records, one per line.
        now: epoch milliseconds.

    Raises:
        InvalidArgumentError: a line is no record.
    """
    scans = parse_scans(text)
    if isinstance(scans, Unreadable):
        raise InvalidArgumentError.of("lines", scans.detail, "records of scans")
    number, lines = merged_lines(scans)
    name = f"{number}-{len(lines)}-{uuid.uuid4().hex}.json"
    table.write_state(f"{CONSUMPTION_FOLDER}/{name}", "\n".join(lines))
    trim_scans(table, ScanRetention.of(table.snapshot().settings), now)


def trim_scans(table: ManagedTable, retention: ScanRetention, now: int) -> int:
    """Merges the files of records if there are many, and deletes the oldest beyond the retention.

    Args:
        table: the table.
        retention: limits of the records that stay.
        now: epoch milliseconds.

    Returns:
        The number of files that were deleted.
    """
    not_before = now - retention.keep_millis
    folder = _folder(table, retention.rows, not_before)
    folder.merge(now, MOST_FILES)
    counted = [(int(m[1]), int(m[2] or 0), n) for n in folder.current(now) if (m := RECORD_FILE.fullmatch(n))]
    rows, old = 0, []
    for finished_at, count, name in sorted(counted, reverse=True):
        if finished_at < not_before or rows >= retention.rows:
            old.append(name)
        rows += count
    return folder.delete(old, now)


def newest_record(spark: SparkSession, location: str) -> int | None:
    """Returns when the newest recorded query finished, epoch milliseconds, by the names of files; None without any.

    Args:
        spark: session whose file systems are used.
        location: root of the table, which is not read.
    """
    names = SharedTexts(spark, f"{location}/{STATE_FOLDER}/{CONSUMPTION_FOLDER}").names()
    return max((int(match[1]) for name in names if (match := RECORD_FILE.fullmatch(name))), default=None)


def scans_of(table: ManagedTable, since: int = 0) -> DataFrame:
    """Returns the rows of ``<table>.consumption``; they are read when the DataFrame is.

    Args:
        table: the table.
        since: epoch milliseconds; files without a later record are not read, but others may hold earlier ones, too.
    """
    return newest_scans(table, since, None)[0]


def newest_scans(table: ManagedTable, since: int, most: int | None) -> tuple[DataFrame, int | None]:
    """Returns scans of the newest files; see ``scans_of``.

    Args:
        table: the table.
        since: see ``scans_of``.
        most: files are not read once newer ones have so many lines; duplicates count.

    Returns:
        The rows, and when the newest scan finished that a file beyond ``most`` may hold; None without such a file.
    """
    return read_again(lambda: _newest_scans(table, since, most))


def _newest_scans(table: ManagedTable, since: int, most: int | None) -> tuple[DataFrame, int | None]:
    names, missing_until = newest_files(table.list_state(CONSUMPTION_FOLDER), since, most)
    if not names:
        return local_data_frame(table.spark, [], CONSUMPTION_SCHEMA), missing_until
    files = [f"{table.state_folder}/{CONSUMPTION_FOLDER}/{name}" for name in names]
    return scan_rows(table.spark, files, table.snapshot().table_id), missing_until


def _folder(table: ManagedTable, most_rows: int, not_before: int = 0) -> LineFolder[StoredScan]:
    # A merged file has the newest records, so that it is not deleted as a whole if it has too many.
    join = partial(merged_lines, most=most_rows, not_before=not_before)
    return LineFolder(table, CONSUMPTION_FOLDER, parse_scans, join, _ADVICE)
