"""The report of all tables: their health, the cost of reads, and the optimizations of the last day."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import SparkSession

from catalog.clock import Clock
from catalog.errors import UseError
from catalog.history.events import COMMITTED, FAILED
from catalog.jvm.java_errors import known_error
from catalog.quantities import size_text
from catalog.state.automation import Automations
from catalog.system_tables import SYSTEM_TABLES, SystemQuery
from catalog.table.managed_table import ManagedTable
from procedures.insight.health.score import Part, score_of
from procedures.insight.report.page import STYLE, table

_DAY_MILLIS = 24 * 3600 * 1000
_SUMMARY = ("catalog", "namespace", "name", "location", "health", "unindexed_bytes", "state", "last_error")


@dataclass(frozen=True)
class TableLine:
    """A table of the lake.

    Attributes:
        name: full name.
        bytes: of its live files; None if it cannot be read.
        unindexed_bytes: of those that are not indexed; None likewise.
        health: score; None likewise.
        state: of its automatic optimization; empty if it has none.
        runs: groups that were committed within the last day.
        failed: groups that failed.
        bytes_in: bytes that the committed groups read.
        bytes_out: bytes that they wrote.
        error: its last error, or why it cannot be read; empty if there is none.
        read_cost: bytes that a sample or box reads beyond those of a fresh index, for the read with the largest
            difference; None if it is not known.
    """

    name: str
    bytes: int | None
    unindexed_bytes: int | None
    health: int | None
    state: str
    runs: int
    failed: int
    bytes_in: int
    bytes_out: int
    error: str
    read_cost: int | None = None


def gather_lake(
    spark: SparkSession, automations: Automations, clock: Clock, health: Callable[[ManagedTable], Sequence[Part]]
) -> list[TableLine]:
    """Gathers a line per table of the metastore, the lowest score first; reads metadata only.

    Args:
        spark: session.
        automations: the tables that the service of this process optimizes.
        clock: the time.
        health: measures the parts of a table's health.
    """
    now = clock.now()
    costs: dict[str, int] = {}

    def score(table: ManagedTable) -> int:
        parts = list(health(table))
        costs[table.name] = max((part.cost_bytes or 0 for part in parts), default=0)
        return score_of(parts)

    query = SystemQuery(spark, list(_SUMMARY), automations, now, score)
    rows = SYSTEM_TABLES["metastore_summary"].read(query).collect()
    events = ["table", "state", "started_at", "input_files_stats", "output_files_stats"]
    recent: dict[str, list[Mapping[str, Any]]] = {}
    for event in SYSTEM_TABLES["optimizations"].read(SystemQuery(spark, events, automations, now)).collect():
        if event.started_at is not None and event.started_at >= now - _DAY_MILLIS:
            recent.setdefault(event.table, []).append(event.asDict(recursive=True))
    lines = [_line(spark, row, recent, costs) for row in rows]
    return sorted(lines, key=lambda line: (-1 if line.health is None else line.health, -(line.bytes or 0), line.name))


def _line(
    spark: SparkSession, row: Any, recent: Mapping[str, Sequence[Mapping[str, Any]]], costs: Mapping[str, int]
) -> TableLine:
    parts = [part for part in (row.catalog, row.namespace, row["name"]) if part]
    name = ".".join(parts) if row["name"] else f"delta.`{row.location}`"
    error, size = row.last_error or "", None
    try:
        found = ManagedTable.find(spark, name)
        name, size = found.name, found.snapshot().bytes
    except Exception as problem:  # noqa: BLE001 - whatever is wrong with one table is shown in its line
        known: UseError = known_error(problem)
        error = error or f"{known.code}: {known.message}"
    events = recent.get(name, ())
    done = [event for event in events if event["state"] == COMMITTED]
    return TableLine(
        name,
        size,
        row.unindexed_bytes,
        row.health,
        row.state or "",
        len(done),
        sum(event["state"] == FAILED for event in events),
        sum((event["input_files_stats"] or {}).get("bytes") or 0 for event in done),
        sum((event["output_files_stats"] or {}).get("bytes") or 0 for event in done),
        error,
        costs.get(name),
    )


def lake_page(lines: Sequence[TableLine], made_at: int) -> str:
    """Returns the page of all tables.

    Args:
        lines: a line per table, in their order.
        made_at: epoch milliseconds.
    """
    made = datetime.fromtimestamp(made_at / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    sick = [(_text(line.health), line.name, line.state, line.error) for line in lines]
    by_cost = sorted(lines, key=lambda line: (-(line.read_cost or 0), -(line.bytes or 0)))
    sizes = [(line.name, _size(line.read_cost), _size(line.bytes), _size(line.unindexed_bytes)) for line in by_cost]
    worked = [line for line in lines if line.runs or line.failed]
    work = [
        (line.name, line.runs, line.failed, size_text(line.bytes_in), size_text(line.bytes_out))
        for line in sorted(worked, key=lambda line: -line.bytes_in)
    ]
    known = [line.health for line in lines if line.health is not None]
    lowest = f", the lowest score is {min(known)}" if known else ""
    sections = [
        f"<h1>All tables</h1><p>Report of {made}, from metadata: {len(lines)} tables{lowest}.</p>",
        "<h2>Health</h2>" + _table_or(("health", "table", "automatic", "last error"), sick, "There is no table."),
        "<h2>Cost</h2><p>What one read costs beyond a fresh index, for the sample or range that suffers most.</p>"
        + _table_or(("table", "extra bytes per read", "bytes", "unindexed bytes"), sizes, "There is no table."),
        "<h2>Optimizations within 24 hours</h2>"
        + _table_or(("table", "groups", "failed", "bytes in", "bytes out"), work, "There was none."),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Report of all tables</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"></head>\n'
        f'<body style="margin:0"><main class="use-report"><style>{STYLE}</style>\n'
        + "\n".join(sections)
        + "\n</main></body></html>\n"
    )


def _table_or(header: Sequence[str], rows: Sequence[Sequence[object]], nothing: str) -> str:
    return table(header, rows) if rows else f"<p>{html.escape(nothing)}</p>"


def _text(number: int | None) -> str:
    return "unknown" if number is None else str(number)


def _size(number: int | None) -> str:
    return "unknown" if number is None else size_text(number)
