"""``CALL use.recommend``: measures on a sample which index columns save queries the most bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from catalog.columns.column_names import FoundColumn, find_column, written_name
from catalog.errors import InvalidArgumentError, NotSupportedError, UnknownNameError, UseError
from catalog.jvm.java_errors import text_of
from catalog.jvm.read_report import planned_reads
from catalog.jvm.session import described_jobs
from catalog.properties.index_properties import (
    CUBE_SIZE_RANGE,
    SAMPLE_FRACTIONS,
    TARGET_FILE_BYTES,
    indexable_type,
)
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from otree.transformation import kinds_for
from procedures.declare.declaration import Call
from procedures.declare.operation import Constraint, Int, TableName, operation
from procedures.declare.result_rows import RecommendRow
from procedures.insight.health.adviser import NOTHING_TO_DO, MeasuredIndex, index_statement
from procedures.insight.health.health import diagnosis_of
from procedures.insight.recommendation.candidates import (
    FIRST_SAVING,
    Candidate,
    named,
    ranked_candidates,
    transformation_of,
    unusable_note,
)
from procedures.insight.recommendation.query_parser import ACCEPTED, parse_query
from procedures.insight.recommendation.recorded_queries import column_of
from procedures.insight.recommendation.simulated_layout import TableSample, unordered_files
from procedures.insight.recommendation.table_sample import has_ranges, take_sample, with_values
from procedures.insight.recommendation.workload import (
    Workload,
    WorkloadQuery,
    recorded_fractions,
    workload_of_consumption,
)
from procedures.process.application import application

_MOST_QUERIES = 1_000
_MOST_SHOWN = 10
# Columns among which that with the most values is chosen if the queries only sample.
_MOST_SAMPLED_COLUMNS = 20
_SAMPLE_ROWS = (1_000, 1_000_000)


def _validate(arguments: Mapping[str, Any]) -> None:
    low, high = _SAMPLE_ROWS
    if not low <= arguments["sample_rows"] <= high:
        raise InvalidArgumentError.of(
            "sample_rows", arguments["sample_rows"], f"a whole number from {low:,} to {high:,}"
        )
    queries = arguments["queries"]
    if queries is not None and not 0 < len(queries) <= _MOST_QUERIES:
        raise InvalidArgumentError.of(
            "queries", f"{len(queries)} queries", f"1 to {_MOST_QUERIES:,} queries, each {ACCEPTED}"
        )


@dataclass(frozen=True)
class _Shares:
    """Shares of the bytes that the queries read today and without an index."""

    today: float
    no_index: float


def recommend(
    call: Call,
    table: TableName,
    queries: Annotated[list[str] | tuple[str, ...] | None, Constraint(not_blank=f"queries, each {ACCEPTED}")] = None,
    *,
    sample_rows: Int = 100_000,
) -> list[RecommendRow]:
    """Measures on a sample of the rows which index columns save some queries the most bytes, and whether any do.

    Args:
        queries: Queries, each one SELECT over the table.
        sample_rows: Rows of the sample, 1,000 to 1,000,000.

    Returns:
        A row per candidate, the best first.

    Raises:
        UseError: a query cannot be used, or the table is empty.
    """
    found = ManagedTable.find(call.spark, table)
    snapshot = found.snapshot()
    columns: dict[str, FoundColumn] = {}
    with described_jobs(call.spark, f"USE recommend: {found.name}"):
        if queries is None:
            recorded = _recorded(found, snapshot, columns)
            sample = _sample(found, snapshot, tuple(columns), columns, sample_rows)
            workload = workload_of_consumption(recorded, {name: sample.columns[name].quantiles for name in columns})
        else:
            parsed = [_query(found, snapshot, n, text, columns) for n, text in enumerate(queries, 1)]
            parsed = [replace(query, condition=with_values(call.spark, query, columns)) for query in parsed]
            workload = Workload(tuple(parsed))
            sample = _sample(found, snapshot, workload.columns, columns, sample_rows)
        today = _today_share(found, workload, columns)
        indexed = snapshot.latest_revision is not None
        shares = _Shares(today, unordered_files(sample).mean_share(workload) if indexed else today)
        rows = _rows(found.name, snapshot, sample, workload, shares, columns)
    rows[0] = _with_steps(rows[0], found, snapshot, shares, recorded_fractions(workload))
    return rows


def _recorded(table: ManagedTable, snapshot: TableSnapshot, columns: dict[str, FoundColumn]) -> list[dict[str, Any]]:
    """Returns the recorded consumption and adds the columns that it names, as far as files have ranges of them."""
    recorded = _consumption_of(table)
    if not recorded:
        text = f"there is no recorded consumption of {table.name}; give queries, each {ACCEPTED}"
        raise InvalidArgumentError.missing("queries", text)
    for pair in (pair for row in recorded for pair in row["filters"] or ()):
        column = find_column(snapshot.schema, pair["column"])
        if column is not None and has_ranges(column.data_type):
            pair["column"] = written_name(snapshot.schema, column)
            columns[pair["column"]] = column
    return recorded


def _consumption_of(table: ManagedTable) -> list[dict[str, Any]]:
    """Returns the newest recorded scans; their selectivity is the share of the rows of the table."""
    # What the scan skipped has no rows of the query either.
    kept = F.coalesce("selectivity", F.when(F.col("rows_read") == 0, F.lit(0.0)))
    # A scan of an empty version has no bytes.
    share = kept * F.col("read.bytes") / F.nullif(F.col("table_size.bytes"), F.lit(0))
    rows = (
        table.spark.table(f"{table.name}.consumption")
        .orderBy(F.col("time").desc())
        .limit(_MOST_QUERIES)
        .select("filters", F.coalesce(share, kept).alias("selectivity"), F.col("sample_fraction").alias("fraction"))
    )
    return [row.asDict(recursive=True) for row in rows.collect()]


def _query(
    table: ManagedTable, snapshot: TableSnapshot, number: int, text: str, columns: dict[str, FoundColumn]
) -> WorkloadQuery:
    """Parses a query and adds the columns that it names."""

    def resolve(name: str) -> str:
        column = find_column(snapshot.schema, name)
        if column is None:
            raise UnknownNameError.of("column", name, snapshot.schema.names)
        shown = written_name(snapshot.schema, column)
        columns[shown] = column
        return shown

    def is_table(name: str) -> bool:
        try:
            return ManagedTable.find(table.spark, name).location == table.location
        except UseError:
            return False

    return parse_query(number, text, is_table, resolve)


def _today_share(table: ManagedTable, workload: Workload, columns: dict[str, FoundColumn]) -> float:
    """Returns the share of the bytes that the queries read in the present layout, as Spark plans them."""
    read = 0.0
    for query in workload.queries:
        try:
            rows = table.spark.table(table.name)
            rows = rows.where(column_of(query.condition, columns) if query.where is None else query.where)
            rows = rows if query.fraction >= 1.0 else rows.sample(query.fraction)
            scans = planned_reads(rows).scans
        except PySparkException as error:
            text = f"query {query.number}: Spark does not accept the condition ({text_of(error)}); give {ACCEPTED}"
            raise InvalidArgumentError.of("queries", query.where, text) from error
        # A condition that is false for every row leaves no scan.
        for scan in scans:
            read += query.weight * scan["kept_bytes"] / max(scan["total_bytes"], 1)
    return read / sum(query.weight for query in workload.queries)


def _sample(
    table: ManagedTable,
    snapshot: TableSnapshot,
    names: tuple[str, ...],
    columns: dict[str, FoundColumn],
    sample_rows: int,
) -> TableSample:
    """Takes the sample of the columns that candidates need."""
    chosen = {name: columns[name] for name in names}
    partitions = []
    for name in snapshot.partition_columns:
        column = find_column(snapshot.schema, f"`{name.replace('`', '``')}`")
        if column is not None and has_ranges(column.data_type):
            shown = written_name(snapshot.schema, column)
            chosen[shown] = column
            partitions.append(shown)
    if not names:
        for field in snapshot.schema.fields[:_MOST_SAMPLED_COLUMNS]:
            column = find_column(snapshot.schema, f"`{field.name.replace('`', '``')}`")
            if column is not None and has_ranges(column.data_type):
                chosen.setdefault(written_name(snapshot.schema, column), column)
    target_bytes = int(str(TARGET_FILE_BYTES.value(snapshot.settings)))
    size = snapshot.bytes
    files = snapshot.file_table
    expected = int(files.rows.sum()) if bool((files.rows >= 0).all()) else None
    if size == 0 or expected == 0:
        raise InvalidArgumentError.of("table", table.name, "a table with rows; this one is empty")
    return take_sample(
        table.spark.table(table.name),
        chosen,
        partitions,
        expected,
        sample_rows,
        lambda rows: max(1, int(target_bytes * rows / size)),
    )


def _rows(
    name: str,
    snapshot: TableSnapshot,
    sample: TableSample,
    workload: Workload,
    shares: _Shares,
    columns: dict[str, FoundColumn],
) -> list[RecommendRow]:
    indexable = [c for c in sample.columns if c not in sample.partitions and _kinds(_column(snapshot, c, columns))]
    ranked = ranked_candidates(sample, workload, indexable, shares.no_index)
    kinds = {}
    for column_name in indexable:
        column = _column(snapshot, column_name, columns)
        accepted = _kinds(column)
        is_text = column.type_name == "string"
        kind = transformation_of(
            sample.columns[column_name], workload.operators(column_name), accepted, is_text=is_text
        )
        kinds[column_name] = kind, kind == accepted[0]
    low, high = CUBE_SIZE_RANGE
    cube_size = max(low, min(high, sample.target_rows))
    shown = ranked[:_MOST_SHOWN]
    if all(candidate.columns for candidate in shown):
        shown[-1] = next(candidate for candidate in ranked if not candidate.columns)
    rows = []
    for rank, candidate in enumerate(shown, start=1):
        text = named(candidate.columns, kinds) if candidate.columns else None
        message = _message(name if rank > 1 else None, text, candidate, shares, sample)
        message += unusable_note(workload) if rank == 1 else ""
        rows.append(
            RecommendRow(
                rank, text, cube_size if text else None, candidate.share, shares.today, shares.no_index,
                _advice(rank, candidate), message,
            )
        )  # fmt: skip
    return rows


def _with_steps(
    best: RecommendRow, table: ManagedTable, snapshot: TableSnapshot, shares: _Shares, fractions: tuple[float, ...]
) -> RecommendRow:
    """Adds what the adviser says about the table, with the best candidate."""
    measured = None
    if best.columns is not None and not _is_present(snapshot, best, shares):
        measured = MeasuredIndex(best.columns, int(max(0.0, shares.today - best.expected_share) * snapshot.bytes))
    try:
        steps = diagnosis_of(table, application().clock).steps_with(measured)
    except NotSupportedError:
        # Too many files to be judged by one process; the measured index holds all the same.
        return best
    statements = [step.statement for step in steps]
    if best.columns is not None and fractions and fractions != _named_fractions(snapshot):
        statements.append(
            f"ALTER TABLE {table.name} SET TBLPROPERTIES ('{SAMPLE_FRACTIONS.name}' = "
            f"'{','.join(f'{fraction:g}' for fraction in fractions)}')"
        )
    todo = f"Do in this order: {'; '.join(statements)}." if statements else NOTHING_TO_DO
    return replace(best, message=f"{best.message} {todo}")


def _named_fractions(snapshot: TableSnapshot) -> tuple[float, ...]:
    index = snapshot.index_configuration
    return () if index is None else index.sample_fractions


def _is_present(snapshot: TableSnapshot, best: RecommendRow, shares: _Shares) -> bool:
    """Whether the table has these index columns already, or reads hardly more with those that it has."""
    index = snapshot.index_configuration
    if index is None:
        return False
    columns = {entry.partition(":")[0] for entry in (best.columns or "").split(",")}
    saved = shares.today - best.expected_share
    return columns == set(index.logical_columns) or saved < FIRST_SAVING * shares.today


def _advice(rank: int, candidate: Candidate) -> str:
    if rank > 1:
        return "ALTERNATIVE"
    return "INDEX" if candidate.columns else "NO_INDEX"


def _column(snapshot: TableSnapshot, name: str, columns: dict[str, FoundColumn]) -> FoundColumn:
    column = columns.get(name) or find_column(snapshot.schema, name)
    if column is None:
        raise UnknownNameError.of("column", name, snapshot.schema.names)
    return column


def _kinds(column: FoundColumn) -> tuple[str, ...]:
    data_type = indexable_type(column.data_type)
    return kinds_for(data_type, column.type_name) if data_type is not None else ()


def _message(name: str | None, text: str | None, candidate: Candidate, shares: _Shares, sample: TableSample) -> str:
    """Returns a sentence about a candidate, with its statement if the table is named."""
    if text is None:
        if sample.rows <= sample.target_rows:
            return "The table fits into one file, so no index can reduce the bytes that queries read."
        return (
            f"Without an index, the queries read {candidate.share:.1%} of the bytes. "
            f"An index is recommended if it saves at least {FIRST_SAVING:.0%} of that."
        )
    statement = "" if name is None else f": {index_statement(name, text)}"
    return f"The queries read about {candidate.share:.1%} of the bytes, and {shares.today:.1%} today{statement}."


RECOMMEND = operation(recommend, validate=_validate)
