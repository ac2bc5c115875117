"""Measures which index columns save the queries of a table the most bytes: given queries, or recorded ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from catalog.columns.column_names import FoundColumn, find_column, written_name
from catalog.errors import InvalidArgumentError, UnknownNameError, UseError
from catalog.insights.consumption import scans_of
from catalog.insights.recorded_scans import newest_records
from catalog.jvm.java_errors import text_of
from catalog.jvm.read_report import planned_reads
from catalog.properties.index_properties import indexable_type
from catalog.properties.target_file_size import TARGET_FILE_BYTES
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from otree.transformation import kinds_for
from procedures.insight.recommendation.accepted_queries import ACCEPTED
from procedures.insight.recommendation.candidates import Candidate, named, ranked_candidates, transformation_of
from procedures.insight.recommendation.query_parser import parse_query
from procedures.insight.recommendation.recorded_queries import column_of
from procedures.insight.recommendation.simulated_layout import TableSample, indexed_files, unordered_files
from procedures.insight.recommendation.table_sample import has_ranges, take_sample, with_values
from procedures.insight.recommendation.workload import Workload, WorkloadQuery, workload_of_consumption

MOST_QUERIES = 1_000
SAMPLE_ROWS = 100_000
# Columns among which that with the most values is chosen if the queries only sample.
_MOST_SAMPLED_COLUMNS = 20


@dataclass(frozen=True)
class Measurement:
    """Candidates, and the shares of the bytes that the queries read with them.

    Attributes:
        sample: a sample of the table.
        workload: the queries.
        today: share that they read in the present layout.
        no_index: share that they read without an index.
        ranked: the candidates, the best first.
        kinds: per column its transformation, and whether that is its type's default.
    """

    sample: TableSample
    workload: Workload
    today: float
    no_index: float
    ranked: Sequence[Candidate]
    kinds: Mapping[str, tuple[str, bool]]

    def text_of(self, candidate: Candidate) -> str | None:
        """The columns of a candidate as ``use.index.columns`` has them; None for no index."""
        return named(candidate.columns, self.kinds) if candidate.columns else None

    def share_with(self, columns: Sequence[str]) -> float:
        """The share that the queries read with some index columns; those that no query names count as not indexed.

        Args:
            columns: names as ``written_name`` gives them.
        """
        known = [name for name in columns if name in self.sample.columns]
        return indexed_files(self.sample, known).mean_share(self.workload) if known else self.no_index


def measure_queries(
    table: ManagedTable, snapshot: TableSnapshot, queries: Sequence[str], sample_rows: int
) -> Measurement:
    """Measures candidates for some queries.

    Args:
        table: the table.
        snapshot: its version.
        queries: each one SELECT over the table.
        sample_rows: rows of the sample.

    Raises:
        UseError: a query cannot be used, or the table is empty.
    """
    columns: dict[str, FoundColumn] = {}
    parsed = [_query(table, snapshot, n, text, columns) for n, text in enumerate(queries, 1)]
    parsed = [replace(query, condition=with_values(table.spark, query, columns)) for query in parsed]
    workload = Workload(tuple(parsed))
    sample = _sample(table, snapshot, workload.columns, columns, sample_rows)
    return _measured(table, snapshot, sample, workload, columns)


def measure_recorded(
    table: ManagedTable, snapshot: TableSnapshot, recorded: Sequence[dict[str, Any]], sample_rows: int = SAMPLE_ROWS
) -> Measurement:
    """Measures candidates for recorded queries.

    Args:
        table: the table.
        snapshot: its version.
        recorded: rows of ``consumption_rows``, at least one.
        sample_rows: rows of the sample.

    Raises:
        UseError: the table is empty.
    """
    columns: dict[str, FoundColumn] = {}
    for pair in (pair for row in recorded for pair in row["filters"] or ()):
        column = find_column(snapshot.schema, pair["column"])
        if column is not None and has_ranges(column.data_type):
            pair["column"] = written_name(snapshot.schema, column)
            columns[pair["column"]] = column
    sample = _sample(table, snapshot, tuple(columns), columns, sample_rows)
    workload = workload_of_consumption(recorded, {name: sample.columns[name].quantiles for name in columns})
    return _measured(table, snapshot, sample, workload, columns)


def consumption_rows(
    table: ManagedTable, most: int = MOST_QUERIES, *, are_spread: bool = False
) -> list[dict[str, Any]]:
    """Returns recorded scans; their selectivity is the share of the rows of the table.

    Args:
        table: the table.
        most: how many.
        are_spread: whether they are taken from all records of scans with filters, always the same ones; else, the
            newest ones.
    """
    # What the scan skipped has no rows of the query either.
    kept = F.coalesce("selectivity", F.when(F.col("rows_read") == 0, F.lit(0.0)))
    # A scan of an empty version has no bytes.
    share = kept * F.col("read.bytes") / F.nullif(F.col("table_size.bytes"), F.lit(0))
    columns = ("filters", F.coalesce(share, kept).alias("selectivity"), F.col("sample_fraction").alias("fraction"))
    if not are_spread:
        rows: list[dict[str, Any]] = newest_records(table, most, columns).to_pylist()
        return rows
    scans = scans_of(table).where(F.size("filters") > 0)
    spread = scans.orderBy(F.xxhash64("application_id", "execution_id", "filters")).limit(most).select(*columns)
    return [row.asDict(recursive=True) for row in spread.collect()]


def filtered_reads(table: ManagedTable) -> tuple[int, int]:
    """Returns the number of recorded scans with filters, and the time from the first to the last, milliseconds.

    Args:
        table: the table.
    """
    millis = F.unix_millis("time")
    span = F.coalesce(F.max(millis) - F.min(millis), F.lit(0))
    row = scans_of(table).where(F.size("filters") > 0).agg(F.count(F.lit(1)).alias("reads"), span.alias("span")).first()
    return (0, 0) if row is None else (row.reads, row.span)


def _measured(
    table: ManagedTable,
    snapshot: TableSnapshot,
    sample: TableSample,
    workload: Workload,
    columns: dict[str, FoundColumn],
) -> Measurement:
    today = _today_share(table, workload, columns)
    is_indexed = snapshot.latest_revision is not None
    no_index = unordered_files(sample).mean_share(workload) if is_indexed else today
    indexable = [c for c in sample.columns if c not in sample.partitions and _kinds(_column(snapshot, c, columns))]
    ranked = ranked_candidates(sample, workload, indexable, no_index)
    kinds = {}
    for name in indexable:
        column = _column(snapshot, name, columns)
        accepted = _kinds(column)
        is_text = column.type_name == "string"
        kind = transformation_of(sample.columns[name], workload.operators(name), accepted, is_text=is_text)
        kinds[name] = kind, kind == accepted[0]
    return Measurement(sample, workload, today, no_index, ranked, kinds)


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


def _column(snapshot: TableSnapshot, name: str, columns: dict[str, FoundColumn]) -> FoundColumn:
    column = columns.get(name) or find_column(snapshot.schema, name)
    if column is None:
        raise UnknownNameError.of("column", name, snapshot.schema.names)
    return column


def _kinds(column: FoundColumn) -> tuple[str, ...]:
    data_type = indexable_type(column.data_type)
    return kinds_for(data_type, column.type_name) if data_type is not None else ()
