"""What a diagnosis is asked for, and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sql_ext.diagnosis.assumed_queries import MOST_COLUMNS, PLACES
from sql_ext.diagnosis.log_facts import LogFacts
from sql_ext.diagnosis.prediction import ReadShares
from sql_ext.diagnosis.verdict import Verdict

DEFAULT_BUDGET_BYTES = 256_000_000


@dataclass(frozen=True)
class Effort:
    """How exact a diagnosis is.

    Attributes:
        rows: rows of the sample.
        groups: row groups that they are from. The rows of a group are neighbours: more groups are worth more than more
            rows.
        places: number of ranges per column of which a mean is taken.
        columns: number of columns that have ranges if there are no queries.
        is_brief: whether a table that fits into one file of the target size is not sampled.
    """

    rows: int
    groups: int
    places: int
    columns: int
    is_brief: bool = False


FULL = Effort(50_000, 32, PLACES, MOST_COLUMNS)


@dataclass(frozen=True)
class Request:
    """What a diagnosis is asked for.

    Attributes:
        budget_bytes: of column chunks to read at most.
        target_file_bytes: size of the files of an index; None for that of the table, or the default.
        queries: SELECT statements, separated by semicolons; None for assumed ones.
        storage_options: for object stores, as deltalake takes them.
        effort: how exact it is.
    """

    budget_bytes: int = DEFAULT_BUDGET_BYTES
    target_file_bytes: int | None = None
    queries: str | None = None
    storage_options: Mapping[str, str] | None = None
    effort: Effort = FULL


@dataclass(frozen=True)
class ColumnDiagnosis:
    """A column.

    Attributes:
        name: its name.
        type: its type as Spark writes it.
        distinct: number of distinct values in the sample; None for partition columns without a sample.
        is_partition: whether it is a partition column.
        reads: what ranges of 1 % of its values read; None without values or without an order.
    """

    name: str
    type: str
    distinct: int | None
    is_partition: bool
    reads: ReadShares | None


@dataclass(frozen=True)
class TableDiagnosis:
    """The diagnosis of a table.

    Attributes:
        location: path or URL.
        version: its version.
        rows: number of rows without deleted ones; None if the log does not have them.
        files: number of files.
        bytes: their size.
        small_files: number of files of less than a quarter of the target size.
        target_file_bytes: the target size.
        deleted_rows: number of rows that deletion vectors mark as deleted.
        files_with_deleted_rows: number of files that have some.
        log: facts of the log.
        partitioned_by: names of the partition columns.
        index_columns: columns of the present index.
        unindexed_bytes: size of the files that it does not cover.
        columns: the columns that have an order, those with statistics.
        left_out_columns: number of columns beyond the first ones with statistics.
        recommended: index columns as ``use.index`` takes them; None if there is none to recommend.
        box: what boxes of the recommended columns read; None without any.
        sample: what samples of 1 % of the rows read.
        workload_today: share of the bytes that the queries read today.
        workload_indexed: share that they would read.
        queries: number of queries given; 0 for assumed ones.
        notes: what could not be used or read.
        verdict: what to do.
        read_bytes: bytes of column chunks that were read.
        seconds: how long it took.
    """

    location: str
    version: int
    rows: int | None
    files: int
    bytes: int
    small_files: int
    target_file_bytes: int
    deleted_rows: int
    files_with_deleted_rows: int
    log: LogFacts
    partitioned_by: tuple[str, ...]
    index_columns: tuple[str, ...]
    unindexed_bytes: int
    columns: tuple[ColumnDiagnosis, ...]
    left_out_columns: int
    recommended: str | None
    box: ReadShares | None
    sample: ReadShares
    workload_today: float
    workload_indexed: float
    queries: int
    notes: tuple[str, ...]
    verdict: Verdict
    read_bytes: int
    seconds: float
