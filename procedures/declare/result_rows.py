"""Rows of procedures, each declared once: the fields are the columns in SQL, in the same order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from datetime import datetime
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from procedures.declare.html_table import html_table

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from pyspark.sql import DataFrame, SparkSession

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
    dict[str, str | None]: "map<string,string>",
    dict[int, int]: "map<bigint,bigint>",
}


def ddl_of(kind: type[DataclassInstance]) -> str:
    """Returns the columns of a row as DDL.

    Args:
        kind: one of the classes of this module.
    """
    hints = get_type_hints(kind)
    return ", ".join(f"{f.name} {f.metadata.get('sql') or _sql_type(hints[f.name])}" for f in fields(kind))


def _sql_type(hint: Any) -> str:
    """Returns the SQL type of a field; a union with None is a nullable column."""
    values = [part for part in get_args(hint) if part is not NoneType] if NoneType in get_args(hint) else [hint]
    return _SQL_TYPES[values[0]]


def data_frame_of(spark: SparkSession, kind: type[DataclassInstance], rows: Iterable[DataclassInstance]) -> DataFrame:
    """Returns the rows as a DataFrame.

    Args:
        spark: session of the caller.
        kind: class of the rows, which determines the columns even without rows.
        rows: the rows.
    """
    from catalog.jvm.local_rows import local_data_frame

    return local_data_frame(spark, [astuple(row) for row in rows], ddl_of(kind))


class ShownRow:
    """A row that notebooks show as a table."""

    def _repr_html_(self: DataclassInstance) -> str:
        return rows_as_html([self])


def rows_as_html(rows: Sequence[DataclassInstance], most: int = 50) -> str:
    """Returns rows as a table of HTML, with a column per field; all texts are escaped.

    Args:
        rows: rows of one class.
        most: number of rows that are shown.
    """
    if not rows:
        return "<p>No rows.</p>"
    names = [f.name for f in fields(rows[0])]
    shown = [["" if (v := getattr(row, name)) is None else v for name in names] for row in rows[:most]]
    left_out = f"<p>{len(rows) - most:,} more rows are not shown.</p>" if len(rows) > most else ""
    return html_table(names, shown) + left_out


@dataclass(frozen=True)
class OptimizeRow(ShownRow):
    """One group of an optimization, or the reason why there is none.

    Attributes:
        iteration: number of the plan.
        strategy: strategy that chose the group; None if none did.
        reason: code, such as ``UNINDEXED`` or ``NOTHING_TO_DO``; for a failed group, the code of its error.
        state: ``planned``, ``committed``, ``skipped`` or ``failed``.
        input_files: files that the group reads.
        input_bytes: their bytes.
        output_files: files written.
        output_bytes: their bytes.
        rows: rows rewritten or to rewrite; None if the log does not record it.
        version: version committed, else the version planned on; None if there was no plan.
        duration_ms: time taken.
        message: one-sentence summary.
        read_cost_before: what reads cost before the group is rewritten, in proportion to a fresh layout; None if nobody
            judged the group.
        read_cost_after: what they are expected to cost afterwards.
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
    read_cost_before: float | None = None
    read_cost_after: float | None = None


@dataclass(frozen=True)
class PlanRow(ShownRow):
    """A group of a consolidation plan.

    Attributes:
        plan_id: id of the stored plan; None if the plan was not stored.
        group_id: number of the group, from 1.
        reason: ``OVERLAP``, ``OVERLAP_CUT`` for a part of a set that is too large for one group, ``SMALL`` or
            ``LARGE``.
        revision_id: revision of the files; 0 for files that are not indexed.
        partition: values of the partition columns.
        files: files that the group reads.
        bytes: their bytes.
        expected_files: files that it is expected to write.
        depth_before: maximum number of files of the set that contain one point.
        depth_after: the same when all groups of the set are rewritten.
        message: one-sentence summary.
    """

    plan_id: str | None
    group_id: int
    reason: str
    revision_id: int
    partition: str
    files: int
    bytes: int
    expected_files: int
    depth_before: int
    depth_after: int
    message: str


@dataclass(frozen=True)
class VacuumRow(ShownRow):
    """A total of a vacuum, or in a dry run a file that it would delete.

    Attributes:
        path: file or empty folder of a dry run; None in a total.
        reason: ``EXPIRED``, ``UNREFERENCED``, ``ABORTED_REWRITE``, ``EMPTY_FOLDER``, ``STORED_PLAN``, ``PROTECTED``,
            ``CLONED`` or ``KEPT``.
        files: number of files; of folders in a total of ``EMPTY_FOLDER``.
        bytes: their size; 0 for ``STORED_PLAN``, whose small files are not measured.
        state: ``planned``, ``deleted`` or ``kept``.
    """

    path: str | None
    reason: str
    files: int
    bytes: int
    state: str


@dataclass(frozen=True)
class PurgeRow(ShownRow):
    """A step of a purge, or a protected version.

    Attributes:
        step: ``compaction``, ``files``, ``log``, ``events``, ``protected`` or ``versions``.
        files: number of files that the step rewrote, deleted or kept; of a dry run, that it would.
        bytes: their size; None if it is unknown.
        lost_from: first version that can no longer be read; None except in the row ``versions``.
        lost_to: last version that can no longer be read.
        oldest_version: oldest version left, apart from protected ones; the version of a protected one.
        message: one-sentence summary.
    """

    step: str
    files: int
    bytes: int | None
    lost_from: int | None
    lost_to: int | None
    oldest_version: int | None
    message: str


@dataclass(frozen=True)
class ProtectRow(ShownRow):
    """A protected version.

    Attributes:
        name: of the protection.
        version: the version.
        committed_at: time of its commit.
        files: files that it needs and the newest version does not.
        bytes: their size.
        message: what the protection does not cover.
    """

    name: str
    version: int
    committed_at: datetime
    files: int
    bytes: int
    message: str


@dataclass(frozen=True)
class UnprotectRow(ShownRow):
    """A protection that was ended.

    Attributes:
        name: of the protection.
        version: the version; None if the file of the protection could not be read.
        message: one-sentence summary.
    """

    name: str
    version: int | None
    message: str


@dataclass(frozen=True)
class FleetRow(ShownRow):
    """A table that the service looks after; sums of a database, without a table; sums of all tables, without both.

    Attributes:
        rank: place in the order in which the budget goes to tables; None if the table has nothing to rewrite.
        table: full name.
        database: its database.
        state: ``ready``: it may have its turn. ``idle``: there is nothing to rewrite. ``unknown``: nobody has looked.
            Else the state as in ``use.status``, ``optimized`` after a turn of this call, or ``total``.
        reason: why it waits or failed.
        cost_bytes: bytes that its next turn rewrites.
        saving_per_day: bytes that reads are expected not to read afterwards, per day.
        saving_per_byte: the same for each byte that is rewritten.
        is_recorded: whether recorded reads say so, and not an assumption.
        waiting_since: since when it has waited for its turn.
        last_run: end of its last turn.
        last_bytes: bytes that it has rewritten.
        predicted_saving: bytes per day that reads were expected to save by it.
        measured_saving: bytes per day that they have saved; None while there are too few reads.
        correction: factor of the next prediction, as earlier ones were wrong.
        budget_bytes: ``use.fleet.maxBytes`` of the database or of all tables.
        budget_left: bytes of it that may be rewritten now.
        spent_day: bytes that were rewritten in the last 24 hours.
        spent_week: in the last 7 days.
        spent_month: in the last 30 days.
        saved_day: bytes that reads have not read in the last 24 hours because of turns, as measured.
        saved_week: in the last 7 days.
        saved_month: in the last 30 days.
    """

    rank: int | None = field(metadata=INT)
    table: str | None
    database: str | None
    state: str
    reason: str | None = None
    cost_bytes: int | None = None
    saving_per_day: int | None = None
    saving_per_byte: float | None = None
    is_recorded: bool | None = None
    waiting_since: datetime | None = None
    last_run: datetime | None = None
    last_bytes: int | None = None
    predicted_saving: int | None = None
    measured_saving: int | None = None
    correction: float | None = None
    budget_bytes: int | None = None
    budget_left: int | None = None
    spent_day: int | None = None
    spent_week: int | None = None
    spent_month: int | None = None
    saved_day: int | None = None
    saved_week: int | None = None
    saved_month: int | None = None


@dataclass(frozen=True)
class HealthRow(ShownRow):
    """A part of the score of a table's health; the first row has the score.

    Attributes:
        part: ``total``, or what was measured.
        value: the score from 0 to 100, or what was measured.
        unit: of the value.
        fine: value up to which no point is lost; None in the first row.
        points_lost: points that the part takes off 100, and their sum in the first row.
        cost_per_read: bytes that an average read reads beyond those of a fresh table because of it; None if unknown.
        advice: statement that mends it, None if no point is lost; in the first row, what to do first, None if there is
            nothing to do.
    """

    part: str
    value: float
    unit: str
    fine: float | None
    points_lost: float
    cost_per_read: int | None
    advice: str | None


@dataclass(frozen=True)
class ReportRow(ShownRow):
    """A page about a table, or about all tables.

    Attributes:
        path: the file that was written; None without ``out``.
        bytes: size of the page.
        health: score of the table's health, or the lowest one of all tables; None if no table has one.
        html: the page; None with ``out``.
        message: what to install for pictures; None if nothing is missing.
    """

    path: str | None
    bytes: int
    health: int | None
    html: str | None
    message: str | None = None


@dataclass(frozen=True)
class IndexRow(ShownRow):
    """A table whose index properties were set.

    Attributes:
        table: full name.
        properties: properties that were requested.
        version: version committed; None if the properties were already set.
        converted: whether the table was converted from Parquet.
        unindexed_files: files that are not indexed now.
        unindexed_bytes: their bytes.
        advice: ``OPTIMIZE``, ``NEW_REVISION`` or ``NOTHING_TO_DO``.
        message: one-sentence summary.
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
class DropIndexRow(ShownRow):
    """A table whose index was removed.

    Attributes:
        version: version committed.
        files: files whose tags were removed.
        bytes: their bytes.
        properties: keys of the properties that were removed.
        message: one-sentence summary.
        files_before: live files of the table before.
        bytes_before: their bytes.
        files_after: live files afterwards: the same ones, unless others have written meanwhile.
        bytes_after: their bytes.
        released: stored plans and other files below ``_use/`` that were deleted.
        rewrite_with: the statement of Delta that rewrites the files without USE.
    """

    version: int
    files: int
    bytes: int
    properties: list[str]
    message: str
    files_before: int
    bytes_before: int
    files_after: int
    bytes_after: int
    released: list[str]
    rewrite_with: str


@dataclass(frozen=True)
class QuantilesRow(ShownRow):
    """A quantile of a column.

    Attributes:
        position: position, from 0.
        fraction: share of the rows up to this quantile.
        value: the quantile as text; times in UTC.
    """

    position: int = field(metadata=INT)
    fraction: float
    value: str


@dataclass(frozen=True)
class RecommendRow(ShownRow):
    """Index columns, or no index, and the expected reads of the queries.

    Attributes:
        rank: place among the candidates, from 1.
        columns: index columns as ``use.index`` takes them; None for no index.
        cube_size: rows of a cube; None for no index.
        expected_share: expected share of the table's bytes that the queries read, on average.
        today_share: share that they read in the present layout.
        no_index_share: share that they read without an index.
        advice: ``INDEX``, ``NO_INDEX`` or ``ALTERNATIVE``.
        message: one-sentence summary.
    """

    rank: int = field(metadata=INT)
    columns: str | None
    cube_size: int | None
    expected_share: float
    today_share: float
    no_index_share: float
    advice: str
    message: str


@dataclass(frozen=True)
class ClusteringInformationRow(ShownRow):
    """How well a column, or several columns, separate the files.

    Attributes:
        columns: the column, or all columns.
        files: files of the table.
        bytes: their bytes.
        rows: their rows; None if a file has no statistics.
        unindexed_files_share: in [0, 1].
        unindexed_bytes_share: in [0, 1].
        unknown_files: files without a range for the column.
        constant_files: files whose range is a single value.
        average_overlaps: average number of other files whose range overlaps a file's range.
        max_overlaps: maximum of these numbers.
        average_depth: average number of files that overlap at the deepest point of a file's range, including the file
            itself; 1 is best.
        max_depth: maximum of these numbers.
        depth_histogram: files per depth; empty for several columns together.
        advice: ``WELL_CLUSTERED``, ``OVERLAPPING``, ``UNINDEXED``, ``OTHER_COLUMNS``, ``NO_STATISTICS`` or
            ``FEW_FILES``.
        message: one-sentence summary.
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
class CheckRow(ShownRow):
    """A problem of the index; the last row is the summary.

    Attributes:
        check: code; ``SUMMARY`` in the last row.
        severity: ``error`` or ``warning``; ``ok`` in the summary of a table without problems.
        path: file as in the log; None in the summary.
        revision_id: the file's revision.
        cube_id: cube of the block, if the problem concerns one block.
        message: the problem; in the summary, what was checked.
    """

    check: str
    severity: str
    path: str | None
    revision_id: int | None
    cube_id: str | None
    message: str


@dataclass(frozen=True)
class CancelRow(ShownRow):
    """A run that was asked to stop.

    Attributes:
        run_id: the run's id.
        table: full name.
        state: ``stopping``; ``requested`` for a run of another process.
        message: who runs it, and when it sees the request; None for a run of this process.
    """

    run_id: str
    table: str
    state: str
    message: str | None = None


@dataclass(frozen=True)
class ConsolidateLogRow(ShownRow):
    """One mode for the log of one table.

    Attributes:
        table: full name.
        mode: ``commits``, ``file_metadata``, ``table_metadata`` or ``events``.
        state: ``done``, ``planned``, ``skipped`` if there was nothing to do, or ``failed``.
        files_before: number of log files that a new session reads to load the table; for ``events``, files of events.
        files_after: the same afterwards; NULL in a dry run.
        bytes_before: bytes of these log files.
        bytes_after: the same afterwards.
        load_ms_before: milliseconds that it takes to load the table without any cache.
        load_ms_after: the same afterwards.
        version: the version that was committed, or of which a checkpoint was written.
        message: one-sentence summary, or the error.
    """

    table: str
    mode: str
    state: str
    files_before: int | None
    files_after: int | None
    bytes_before: int | None
    bytes_after: int | None
    load_ms_before: int | None
    load_ms_after: int | None
    version: int | None
    message: str


@dataclass(frozen=True)
class ExplainSkippingRow(ShownRow):
    """A step of the file selection of one scan, a reason why files are not skipped, or what to do about a table.

    Attributes:
        scan: number of the scan in the plan, from 1; None for a reason that concerns the whole query, and for advice.
        table: full name of the table of the scan.
        item: step (``TABLE``, ``PARTITION_VALUES``, ``STATISTICS``, ``LIMIT``, ``CUBES``, ``WEIGHTS``, ``JOINS``,
            ``READ``), ``JOIN`` for what one join leaves, reason, or ``ADVICE``.
        files: files of the table, that the step removes, that are read, or that the reason concerns.
        bytes: their bytes, or those that an average read saves after what is advised; None if they are not known.
        condition: condition that the reason concerns, or the code of the advice.
        message: what the step does, or what would help.
    """

    scan: int | None = field(metadata=INT)
    table: str | None
    item: str
    files: int | None
    bytes: int | None
    condition: str | None
    message: str


@dataclass(frozen=True)
class ApproximateRow(ShownRow):
    """One aggregate of one group, or what cannot be estimated.

    Attributes:
        keys: keys of the group by column, as text; empty without GROUP BY.
        aggregate: column of the query; None for a row about groups that may be missing.
        estimate: the estimate, or the exact answer; None without an interval.
        lower: lower end of the interval.
        upper: upper end of the interval.
        met: whether the interval is within the tolerance.
        method: ``normal`` or ``bounded``: how the interval was computed; ``exact``.
        fraction: fraction of the weights that was read; 1 if the answer is exact.
        expected_fraction: fraction at which the interval is expected to be within the tolerance.
        rows: rows of the sample that the query aggregates, in all groups.
        bytes_read: size of the files that all steps read.
        exact_bytes: size of the files that the exact answer reads.
        value: the exact answer as text, also of aggregates that are not numbers.
        reason: code if the interval is not within the tolerance.
        message: one-sentence summary.
    """

    keys: dict[str, str | None]
    aggregate: str | None
    estimate: float | None
    lower: float | None
    upper: float | None
    met: bool | None
    method: str | None
    fraction: float
    expected_fraction: float | None
    rows: int
    bytes_read: int
    exact_bytes: int
    value: str | None
    reason: str | None
    message: str


@dataclass(frozen=True)
class HelpRow(ShownRow):
    """A procedure, one of its parameters, or its result columns.

    Attributes:
        name: of the procedure or parameter.
        type: SQL type of a parameter; ``procedure`` or ``columns``.
        default: of a parameter, as SQL.
        description: a sentence, or the columns as DDL.
    """

    name: str
    type: str
    default: str | None
    description: str


@dataclass(frozen=True)
class SuspendRow(ShownRow):
    """A suspended table.

    Attributes:
        table: full name.
        state: ``suspended``.
        message: one-sentence summary.
    """

    table: str
    state: str
    message: str


@dataclass(frozen=True)
class ResumeRow(ShownRow):
    """A resumed table.

    Attributes:
        table: full name.
        state: ``scheduled`` or ``idle``.
        message: one-sentence summary.
    """

    table: str
    state: str
    message: str


@dataclass(frozen=True)
class StatusRow(ShownRow):
    """A run, or a table without a run; timestamps are in UTC.

    Attributes:
        table: full name.
        location: its root.
        state: ``idle``, ``scheduled``, ``running``, ``suspended`` or ``failed``.
        trigger: what started it: ``call``, ``manual``, ``automatic`` or ``cli``.
        run_id: id of the run.
        strategy: its strategies, or those of the table's properties.
        current: current step of the run; of a run of another process, the step when it last renewed its lease.
        committed_groups: groups that it has committed.
        committed_bytes: their input bytes.
        started_at: when the run started.
        last_run: end of the last automatic run.
        next_run: start of the next one.
        last_error: code and message of the last error; None after a successful run.
        lease_holder: holder of the table's lease.
        lease_expires_at: when the lease expires unless it is renewed.
        message: information for the owner of the table.
        repeated_statements: statements in the log that ran again after a rewrite; only for a single table.
        plain_files: files that statements in the log wrote without a layout; only for a single table.
        properties: the properties in force, each with its source: ``table``, ``database``, ``session``; only for a
            single table.
        application: id of the Spark application that holds the lease.
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
    repeated_statements: int | None
    plain_files: int | None
    properties: dict[str, str] | None
    application: str | None = None
