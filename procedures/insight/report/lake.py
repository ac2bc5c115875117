"""The report of all tables: their health, the cost of reads, and the optimizations of the last day."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import SparkSession

from catalog.clock import Clock
from catalog.history.event_files import StoredEvent
from catalog.history.events import COMMITTED, FAILED
from catalog.history.recent_events import recent_events
from catalog.quantities import size_text
from catalog.state.automation import Automations
from catalog.system_tables import SYSTEM_TABLES, SystemQuery
from catalog.table.managed_table import ManagedTable
from procedures.declare.html_table import Link
from procedures.insight.health.diagnosis import Diagnosis
from procedures.insight.report.page import STYLE, table

_DAY_MILLIS = 24 * 3600 * 1000
_SUMMARY = ("catalog", "namespace", "name", "location", "health", "unindexed_bytes", "state", "last_error")


@dataclass(frozen=True)
class DayOfWork:
    """The optimizations of a table within the last day.

    Attributes:
        runs: groups that were committed.
        failed: groups that failed.
        bytes_in: bytes that the committed groups read.
        bytes_out: bytes that they wrote.
    """

    runs: int = 0
    failed: int = 0
    bytes_in: int = 0
    bytes_out: int = 0

    @classmethod
    def of(cls, events: Sequence[StoredEvent]) -> DayOfWork:
        """Adds up events."""
        done = [json.loads(event.line) for event in events if event.state == COMMITTED]
        return cls(
            len(done),
            sum(event.state == FAILED for event in events),
            sum(_bytes(event.get("input_files_stats")) for event in done),
            sum(_bytes(event.get("output_files_stats")) for event in done),
        )


@dataclass(frozen=True)
class TableLine:
    """A table of the lake.

    Attributes:
        name: full name.
        bytes: of its live files; None if it cannot be read.
        unindexed_bytes: of those that are not indexed; None likewise.
        health: score; None likewise.
        state: of its automatic optimization; empty if it has none.
        error: its last error, or why it cannot be read; empty if there is none.
        work: its optimizations within the last day.
        read_cost: bytes that a sample or box reads beyond those of a fresh index, for the read with the largest
            difference; None if it is not known.
        statement: what to do first; empty if there is nothing.
        saved_bytes: bytes that an average read saves then; None if that is not known.
        reason: why, one sentence.
    """

    name: str
    bytes: int | None
    unindexed_bytes: int | None
    health: int | None
    state: str
    error: str
    work: DayOfWork = DayOfWork()
    read_cost: int | None = None
    statement: str = ""
    saved_bytes: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class _Look:
    """What a look at a table has found."""

    bytes: int
    diagnosis: Diagnosis
    work: DayOfWork


def gather_lake(
    spark: SparkSession, automations: Automations, clock: Clock, diagnose: Callable[[ManagedTable], Diagnosis]
) -> list[TableLine]:
    """Gathers a line per table of the metastore, the largest gain first; reads metadata only, and each table once.

    Args:
        spark: session.
        automations: the tables that the service of this process optimizes.
        clock: the time.
        diagnose: measures the health of a table.
    """
    now = clock.now()
    looks: dict[str, _Look] = {}

    def score(table: ManagedTable) -> int:
        snapshot, diagnosis = table.snapshot(), diagnose(table)
        events = recent_events(table, snapshot.table_id, now - _DAY_MILLIS)
        looks[table.location] = _Look(snapshot.bytes, diagnosis, DayOfWork.of(events))
        return diagnosis.score

    query = SystemQuery(spark, list(_SUMMARY), automations, now, score)
    rows = SYSTEM_TABLES["metastore_summary"].read(query).collect()
    return sorted((_line(row, looks.get(row.location)) for row in rows), key=_by_gain)


def _by_gain(line: TableLine) -> tuple[int, int, int, str]:
    return (
        -(line.saved_bytes or 0),
        -1 if line.health is None else line.health,
        -(line.bytes or 0),
        line.name,
    )


def _line(row: Any, look: _Look | None) -> TableLine:
    parts = [part for part in (row.catalog, row.namespace, row["name"]) if part]
    name = ".".join(parts) if row["name"] else f"delta.`{row.location}`"
    if look is None:
        return TableLine(name, None, row.unindexed_bytes, row.health, row.state or "", row.last_error or "")
    steps = look.diagnosis.steps
    first = steps[0] if steps else None
    return TableLine(
        look.diagnosis.facts.name,
        look.bytes,
        row.unindexed_bytes,
        row.health,
        row.state or "",
        row.last_error or "",
        look.work,
        max((part.cost_bytes or 0 for part in look.diagnosis.parts), default=0),
        "" if first is None else first.statement,
        None if first is None else first.saved_bytes,
        "" if first is None else first.reason,
    )


def lake_page(lines: Sequence[TableLine], made_at: int, pages: Mapping[str, str] | None = None) -> str:
    """Returns the page of all tables.

    Args:
        lines: a line per table, in their order.
        made_at: epoch milliseconds.
        pages: addresses of pages of tables, by the name of the table.
    """
    made = datetime.fromtimestamp(made_at / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")

    def named(line: TableLine) -> str | Link:
        address = (pages or {}).get(line.name)
        return line.name if address is None else Link(line.name, address)

    steps = [
        (named(line), "" if line.saved_bytes is None else size_text(line.saved_bytes), line.statement, line.reason)
        for line in lines
        if line.statement
    ]
    sick = [
        (_text(line.health), named(line), line.state, line.error)
        for line in sorted(lines, key=lambda line: -1 if line.health is None else line.health)
    ]
    by_cost = sorted(lines, key=lambda line: (-(line.read_cost or 0), -(line.bytes or 0)))
    sizes = [(named(line), _size(line.read_cost), _size(line.bytes), _size(line.unindexed_bytes)) for line in by_cost]
    work = [
        (named(line), day.runs, day.failed, size_text(day.bytes_in), size_text(day.bytes_out))
        for line, day in sorted(((line, line.work) for line in lines), key=lambda pair: -pair[1].bytes_in)
        if day.runs or day.failed
    ]
    known = [line.health for line in lines if line.health is not None]
    lowest = f", the lowest score is {min(known)}" if known else ""
    sections = [
        f"<h1>All tables</h1><p>Report of {made}, from metadata: {len(lines)} tables{lowest}.</p>",
        _sums(lines),
        "<h2>What to do</h2><p>The first step for each table, the largest gain first.</p>"
        + _table_or(("table", "saved per read", "statement", "why"), steps, "There is nothing to do.", code=2),
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


def _sums(lines: Sequence[TableLine]) -> str:
    """A row with the sums over all tables; those that cannot be read are left out."""
    if not lines:
        return ""
    header = ("bytes", "unindexed bytes", "extra bytes, one read of each table", "groups in 24 hours", "failed")
    row = (
        size_text(sum(line.bytes or 0 for line in lines)),
        size_text(sum(line.unindexed_bytes or 0 for line in lines)),
        size_text(sum(line.read_cost or 0 for line in lines)),
        sum(line.work.runs for line in lines),
        sum(line.work.failed for line in lines),
        size_text(sum(line.work.bytes_in for line in lines)),
        size_text(sum(line.work.bytes_out for line in lines)),
    )
    return table((*header, "bytes in", "bytes out"), [row])


def _bytes(stats: object) -> int:
    size = stats.get("bytes") if isinstance(stats, Mapping) else None
    return size if isinstance(size, int) else 0


def _table_or(header: Sequence[str], rows: Sequence[Sequence[object]], nothing: str, code: int | None = None) -> str:
    return table(header, rows, code) if rows else f"<p>{html.escape(nothing)}</p>"


def _text(number: int | None) -> str:
    return "unknown" if number is None else str(number)


def _size(number: int | None) -> str:
    return "unknown" if number is None else size_text(number)
