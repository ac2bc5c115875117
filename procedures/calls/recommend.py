"""``CALL use.recommend``: measures on a sample which index columns save queries the most bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from catalog.errors import InvalidArgumentError, NotSupportedError
from catalog.insights.record_files import has_records
from catalog.jvm.session import described_jobs
from catalog.properties.index_properties import COLUMNS_KEY, CUBE_SIZE_RANGE, SAMPLE_FRACTIONS
from catalog.quantities import share_text
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from procedures.declare.declaration import Call
from procedures.declare.operation import Constraint, Int, TableName, operation
from procedures.declare.result_rows import INT, ShownRow
from procedures.insight.health.adviser import NOTHING_TO_DO, MeasuredIndex, index_statement
from procedures.insight.health.health import diagnosis_of
from procedures.insight.recommendation.accepted_queries import ACCEPTED, no_queries
from procedures.insight.recommendation.candidates import FIRST_SAVING, Candidate, unusable_note
from procedures.insight.recommendation.column_choice import choice_note
from procedures.insight.recommendation.measurement import (
    MOST_QUERIES,
    SAMPLE_ROWS,
    Measurement,
    consumption_rows,
    measure_queries,
    measure_recorded,
)
from procedures.insight.recommendation.workload import recorded_fractions
from procedures.process.application import application

_MOST_SHOWN = 10


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


def _validate(arguments: Mapping[str, Any]) -> None:
    queries = arguments["queries"]
    if queries is not None and not 0 < len(queries) <= MOST_QUERIES:
        raise InvalidArgumentError.of(
            "queries", f"{len(queries)} queries", f"1 to {MOST_QUERIES:,} queries, each {ACCEPTED}"
        )


def recommend(
    call: Call,
    table: TableName,
    queries: Annotated[list[str] | tuple[str, ...] | None, Constraint(not_blank=f"queries, each {ACCEPTED}")] = None,
    *,
    sample_rows: Annotated[Int, Constraint(least=1_000, most=1_000_000)] = SAMPLE_ROWS,
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
    # First, because it takes one listing.
    if queries is None and not has_records(found):
        raise no_queries(found.name)
    snapshot = found.snapshot()
    with described_jobs(call.spark, f"USE recommend: {found.name}"):
        if queries is None:
            measured = measure_recorded(found, snapshot, _recorded(found), sample_rows)
        else:
            measured = measure_queries(found, snapshot, queries, sample_rows)
        rows = _rows(found.name, measured)
    rows[0] = _with_steps(rows[0], found, snapshot, measured)
    note = choice_note(found, snapshot)
    if note is not None:
        rows[0] = replace(rows[0], message=f"{rows[0].message} With {COLUMNS_KEY} = 'auto': {note}.")
    return rows


def _recorded(table: ManagedTable) -> list[dict[str, Any]]:
    recorded = consumption_rows(table)
    if not recorded:
        raise no_queries(table.name)
    return recorded


def _rows(name: str, measured: Measurement) -> list[RecommendRow]:
    low, high = CUBE_SIZE_RANGE
    cube_size = max(low, min(high, measured.sample.target_rows))
    shown = list(measured.ranked[:_MOST_SHOWN])
    if all(candidate.columns for candidate in shown):
        shown[-1] = next(candidate for candidate in measured.ranked if not candidate.columns)
    rows = []
    for rank, candidate in enumerate(shown, start=1):
        text = measured.text_of(candidate)
        message = _message(name if rank > 1 else None, text, candidate, measured)
        message += unusable_note(measured.workload) if rank == 1 else ""
        rows.append(
            RecommendRow(
                rank, text, cube_size if text else None, candidate.share, measured.today, measured.no_index,
                _advice(rank, candidate), message,
            )
        )  # fmt: skip
    return rows


def _with_steps(
    best: RecommendRow, table: ManagedTable, snapshot: TableSnapshot, measured: Measurement
) -> RecommendRow:
    """Adds what the adviser says about the table, with the best candidate."""
    fractions = recorded_fractions(measured.workload)
    index = None
    if best.columns is not None and not _is_present(snapshot, best):
        index = MeasuredIndex(best.columns, int(max(0.0, best.today_share - best.expected_share) * snapshot.bytes))
    try:
        steps = diagnosis_of(table, application().clock).steps_with(index)
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


def _is_present(snapshot: TableSnapshot, best: RecommendRow) -> bool:
    """Whether the table has these index columns already, or reads hardly more with those that it has."""
    index = snapshot.index_configuration
    if index is None:
        return False
    columns = {entry.partition(":")[0] for entry in (best.columns or "").split(",")}
    saved = best.today_share - best.expected_share
    return columns == set(index.logical_columns) or saved < FIRST_SAVING * best.today_share


def _advice(rank: int, candidate: Candidate) -> str:
    if rank > 1:
        return "ALTERNATIVE"
    return "INDEX" if candidate.columns else "NO_INDEX"


def _message(name: str | None, text: str | None, candidate: Candidate, measured: Measurement) -> str:
    """Returns a sentence about a candidate, with its statement if the table is named."""
    if text is None:
        if measured.sample.rows <= measured.sample.target_rows:
            return "The table fits into one file, so no index can reduce the bytes that queries read."
        return (
            f"Without an index, the queries read {share_text(candidate.share)} of the bytes. "
            f"An index is recommended if it saves at least {share_text(FIRST_SAVING, 0)} of that."
        )
    statement = "" if name is None else f": {index_statement(name, text)}"
    then, today = share_text(candidate.share), share_text(measured.today)
    return f"The queries read about {then} of the bytes, and {today} today{statement}."


RECOMMEND = operation(recommend, validate=_validate)
