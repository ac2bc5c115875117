"""The rows that procedures answer with, declared once: SQL gets its columns from them, and Python these values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field, fields
from datetime import datetime
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from pyspark.sql import DataFrame, SparkSession

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# A field that is not a BIGINT in SQL.
INT: Mapping[str, str] = {"sql": "int"}

_SQL_TYPES: Mapping[Any, str] = {
    int: "bigint",
    float: "double",
    bool: "boolean",
    str: "string",
    datetime: "timestamp",
    list[str]: "array<string>",
    dict[str, str]: "map<string,string>",
    dict[int, int]: "map<bigint,bigint>",
}


def ddl_of(kind: type[DataclassInstance]) -> str:
    """The columns of a row, as DDL.

    Args:
        kind: one of the classes of this module.
    """
    hints = get_type_hints(kind)
    return ", ".join(f"{f.name} {f.metadata.get('sql') or _sql_type(hints[f.name])}" for f in fields(kind))


def _sql_type(hint: Any) -> str:
    """The SQL type of a field; a union with None is a column that may be NULL."""
    values = [part for part in get_args(hint) if part is not NoneType] if NoneType in get_args(hint) else [hint]
    return _SQL_TYPES[values[0]]


def data_frame_of(spark: SparkSession, kind: type[DataclassInstance], rows: Iterable[DataclassInstance]) -> DataFrame:
    """The rows as a DataFrame.

    Args:
        spark: the session that called.
        kind: their class, which gives the columns also where there are no rows.
        rows: the rows.
    """
    return spark.createDataFrame([astuple(row) for row in rows], ddl_of(kind))


@dataclass(frozen=True)
class OptimizeRow:
    """One group of an optimization, or why there is none.

    Attributes:
        iteration: counts the plans made.
        strategy: which strategy found the group; None when none did.
        reason: code, such as ``UNINDEXED`` or ``NOTHING_TO_DO``; of a failed group, that of its error.
        state: ``planned``, ``committed``, ``skipped`` or ``failed``.
        input_files: files that the group reads.
        input_bytes: their bytes.
        output_files: files written.
        output_bytes: their bytes.
        rows: rows rewritten, or to be rewritten; None when the log does not tell.
        version: version committed, else the version planned on; None when there was no plan.
        duration_ms: time taken.
        message: one sentence for people.
    """

    iteration: int = field(metadata=INT)
    strategy: str | None
    reason: str
    state: str
    input_files: int
    input_bytes: int
    output_files: int
    output_bytes: int
    rows: int | None
    version: int | None
    duration_ms: int
    message: str


@dataclass(frozen=True)
class VacuumRow:
    """What a vacuum deleted, or in a dry run a file that it would delete.

    Attributes:
        path: file or directory of a dry run; None in a total.
        reason: ``UNREFERENCED``.
        files: number of files; None when Delta did not tell.
        bytes: their size; None when it is not known.
        state: ``planned`` or ``deleted``.
    """

    path: str | None
    reason: str
    files: int | None
    bytes: int | None
    state: str


@dataclass(frozen=True)
class IndexRow:
    """A table whose index properties were set.

    Attributes:
        table: full name.
        properties: properties as asked for.
        version: version committed; None when they were set already.
        converted: whether it was Parquet.
        unindexed_files: files that are not indexed now.
        unindexed_bytes: their bytes.
        advice: ``OPTIMIZE``, ``NEW_REVISION`` or ``NOTHING_TO_DO``.
        message: one sentence for people.
    """

    table: str
    properties: dict[str, str]
    version: int | None
    converted: bool
    unindexed_files: int
    unindexed_bytes: int
    advice: str
    message: str


@dataclass(frozen=True)
class DropIndexRow:
    """A table whose index was removed.

    Attributes:
        version: version committed.
        files: files that lost their tags.
        bytes: their bytes.
        properties: keys of the properties that were removed.
        message: one sentence for people.
    """

    version: int
    files: int
    bytes: int
    properties: list[str]
    message: str


@dataclass(frozen=True)
class QuantilesRow:
    """A quantile of a column.

    Attributes:
        position: from 0.
        fraction: share of the rows up to it.
        value: the quantile as text; times in UTC.
    """

    position: int = field(metadata=INT)
    fraction: float
    value: str


@dataclass(frozen=True)
class ClusteringInformationRow:
    """How well files are separated by a column, or by several together.

    Attributes:
        columns: the column, or all of them.
        files: files of the table.
        bytes: their bytes.
        rows: their rows; None when a file has no statistics.
        unindexed_files_share: in [0, 1].
        unindexed_bytes_share: in [0, 1].
        unknown_files: files without a range of the column.
        constant_files: files whose range is one value.
        average_overlaps: other files whose range meets a file's range.
        max_overlaps: the most of them.
        average_depth: files over the deepest point of a file's range, itself included; 1 is best.
        max_depth: the most of them.
        depth_histogram: files per depth; empty for several columns together.
        advice: ``WELL_CLUSTERED``, ``OVERLAPPING``, ``UNINDEXED``, ``OTHER_COLUMNS``, ``NO_STATISTICS`` or
            ``FEW_FILES``.
        message: one sentence for people.
    """

    columns: str
    files: int
    bytes: int
    rows: int | None
    unindexed_files_share: float
    unindexed_bytes_share: float
    unknown_files: int
    constant_files: int
    average_overlaps: float
    max_overlaps: int
    average_depth: float
    max_depth: int
    depth_histogram: dict[int, int]
    advice: str
    message: str


@dataclass(frozen=True)
class CheckRow:
    """A problem of the index; the last row is the summary.

    Attributes:
        check: code; ``SUMMARY`` in the last row.
        severity: ``error`` or ``warning``; ``ok`` in the summary of a sound table.
        path: file as in the log; None in the summary.
        revision_id: the file's revision.
        cube_id: the block's cube, where one is to blame.
        message: what is wrong; in the summary, how much was checked by which checks.
    """

    check: str
    severity: str
    path: str | None
    revision_id: int | None
    cube_id: str | None
    message: str


@dataclass(frozen=True)
class CancelRow:
    """A run that was asked to stop.

    Attributes:
        run_id: the run's id.
        table: full name.
        state: ``stopping``.
    """

    run_id: str
    table: str
    state: str


@dataclass(frozen=True)
class SuspendRow:
    """A table that is suspended now.

    Attributes:
        table: full name.
        state: ``suspended``.
        message: one sentence for people.
    """

    table: str
    state: str
    message: str


@dataclass(frozen=True)
class ResumeRow:
    """A table that is not suspended any more.

    Attributes:
        table: full name.
        state: ``scheduled`` or ``idle``.
        message: one sentence for people.
    """

    table: str
    state: str
    message: str


@dataclass(frozen=True)
class StatusRow:
    """A run, or a table that nothing is done to; moments have the zone UTC.

    Attributes:
        table: full name.
        location: its root.
        state: ``idle``, ``scheduled``, ``running``, ``suspended`` or ``failed``.
        trigger: who asked: ``call``, ``manual``, ``automatic`` or ``cli``.
        run_id: id of the run.
        strategy: its strategies, or those of the table's properties.
        current: what a run of this driver does right now.
        committed_groups: groups that it has committed.
        committed_bytes: their input bytes.
        started_at: when the run began.
        last_run: end of the last automatic run.
        next_run: begin of the next one.
        last_error: code and text of the last error; None after a run that went well.
        lease_holder: who holds the table's lease.
        lease_expires_at: when the lease ends unless it is renewed.
        message: what the table's owner should know.
    """

    table: str
    location: str
    state: str
    trigger: str | None
    run_id: str | None
    strategy: str | None
    current: str | None
    committed_groups: int | None
    committed_bytes: int | None
    started_at: datetime | None
    last_run: datetime | None
    next_run: datetime | None
    last_error: str | None
    lease_holder: str | None
    lease_expires_at: datetime | None
    message: str | None
