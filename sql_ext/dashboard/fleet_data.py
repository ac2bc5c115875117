"""What the page of the fleet shows, computed from what ``use.fleet`` and ``use.status`` show; pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from catalog.epoch_millis import moment
from catalog.state.automation import RUNNING, WAITING, Automation
from catalog.state.fleet_ledger import LedgerState
from procedures.declare.runs import Run
from procedures.service.fleet_overview import READY, TOTAL, FleetRow, Member, fleet_rows
from procedures.service.service_metrics import Sample
from sql_ext.dashboard.run_lines import RunLine, run_lines
from sql_ext.dashboard.saving_days import DayLine, saving_by_day

_MOST_REASONS = 8


@dataclass(frozen=True)
class HealthNote:
    """The health of a table at one of its versions.

    Attributes:
        version: the version.
        score: from 0 to 100.
        part: the part that loses the most points; None if none loses any.
        advice: statement of the first step; None if there is nothing to do.
    """

    version: int
    score: int
    part: str | None = None
    advice: str | None = None


@dataclass(frozen=True)
class TableLine:
    """A table of the fleet: its row of ``use.fleet``, when its next run is due, and its health.

    Attributes:
        row: the row.
        next_run: when the next run is due, as in ``use.status``; None if that is not known.
        health: its health; None if it was not measured yet.
    """

    row: FleetRow
    next_run: datetime | None = None
    health: HealthNote | None = None

    @property
    def name(self) -> str:
        """Full name of the table."""
        return self.row.table or ""

    @property
    def score(self) -> int | None:
        """Score of its health; None if it was not measured yet."""
        return None if self.health is None else self.health.score


@dataclass(frozen=True)
class Notes:
    """What is to be said about the data itself.

    Attributes:
        has_service: whether a service runs in this process.
        looked_at: tables that were looked at in the first pass.
        listed: tables to look at; None until they are listed.
        passed_at: end of the last pass over all tables; None while the first one runs.
        problem: why the newest data could not be gathered; None if it could.
    """

    has_service: bool = False
    looked_at: int = 0
    listed: int | None = None
    passed_at: datetime | None = None
    problem: str | None = None


@dataclass(frozen=True)
class FleetData:
    """The fleet at one moment.

    Attributes:
        gathered_at: the moment, epoch milliseconds.
        lines: the tables in the order of ``use.fleet``.
        databases: sums of each database.
        total: sums of all tables.
        runs: the runs under way, the oldest first.
        days: the last days, the oldest first.
        metrics: samples of the metrics of the service; empty without one.
        notes: about the data itself.
    """

    gathered_at: int
    lines: tuple[TableLine, ...] = ()
    databases: tuple[FleetRow, ...] = ()
    total: FleetRow = field(default_factory=lambda: FleetRow(None, None, None, TOTAL))
    runs: tuple[RunLine, ...] = ()
    days: tuple[DayLine, ...] = ()
    metrics: tuple[Sample, ...] = ()
    notes: Notes = field(default_factory=Notes)

    @cached_property
    def states(self) -> Counter[str]:
        """Number of tables by state."""
        return Counter(line.row.state for line in self.lines)

    @cached_property
    def budgets(self) -> list[FleetRow]:
        """The sums that have a budget: of all tables, then of databases."""
        return [row for row in (self.total, *self.databases) if row.budget_bytes is not None]

    @cached_property
    def sickest(self) -> list[TableLine]:
        """The tables whose health was measured and loses points, the lowest score first."""
        sick = [line for line in self.lines if line.health is not None and line.health.part is not None]
        return sorted(sick, key=lambda line: (line.score, line.name))

    @cached_property
    def measured(self) -> int:
        """Number of tables whose health was measured."""
        return sum(line.health is not None for line in self.lines)

    @cached_property
    def waiting(self) -> list[TableLine]:
        """The tables that have something to rewrite and wait, in the order in which they have their turns."""
        return [line for line in self.lines if line.row.state in (WAITING, READY)]

    @cached_property
    def waiting_reasons(self) -> list[tuple[str, int]]:
        """Why tables wait, and how many, the most frequent reason first."""
        reasons = Counter(short_reason(line.row.reason) for line in self.waiting)
        return reasons.most_common(_MOST_REASONS)


def short_reason(reason: str | None) -> str:
    """Returns the part of a reason that many tables have in common: its code, or its beginning without numbers.

    Args:
        reason: as in ``use.fleet``.
    """
    first = re.split(r"[:;(]", reason or "next in the order", maxsplit=1)[0].strip()
    return re.sub(r"\d[\d,.]*", "…", first)


@dataclass(frozen=True)
class Seen:
    """What is known of the tables at one moment.

    Attributes:
        members: the members of the fleet.
        automations: all tables of the service of this process.
        runs: the live runs of this process, and the location of each in its one spelling.
        ledger: what was spent.
        health: the health of tables, by location.
        offered: bytes that tables have offered last, by location.
    """

    members: Sequence[Member]
    automations: Sequence[Automation]
    runs: Sequence[tuple[str, Run]]
    ledger: LedgerState
    health: Mapping[str, HealthNote]
    offered: Mapping[str, int]


def fleet_data(seen: Seen, metrics: Iterable[Sample], notes: Notes, now: int) -> FleetData:
    """Returns what the page shows.

    Args:
        seen: what is known of the tables.
        metrics: samples of the metrics of the service.
        notes: about the data itself.
        now: epoch milliseconds.
    """
    rows = fleet_rows(seen.members, seen.ledger, now)
    places = {member.table.name: member.table.location for member in seen.members}
    automations = {automation.location: automation for automation in seen.automations}
    lines = [
        _line(row, automations.get(places[row.table]), seen.health.get(places[row.table]))
        for row in rows
        if row.table is not None
    ]
    known = set(places.values())
    lines += [_line(_row_of(a), a, seen.health.get(a.location)) for a in seen.automations if a.location not in known]
    sums = [row for row in rows if row.table is None]
    return FleetData(
        gathered_at=now,
        lines=tuple(lines),
        databases=tuple(row for row in sums if row.database is not None),
        total=sums[-1],
        runs=tuple(run_lines(seen.runs, seen.members, seen.ledger, seen.offered, now)),
        days=tuple(saving_by_day(seen.members, seen.ledger, now)),
        metrics=tuple(metrics),
        notes=notes,
    )


def _line(row: FleetRow, automation: Automation | None, health: HealthNote | None) -> TableLine:
    return TableLine(row, moment(None if automation is None else automation.next_run), health)


def _row_of(automation: Automation) -> FleetRow:
    """The row of a table that the metastore does not list; it shares no budget."""
    reason = automation.last_error or automation.note
    return FleetRow(None, automation.table, None, automation.state, reason, last_run=moment(automation.last_run))


def running(data: FleetData) -> int:
    """Returns the number of tables with a run under way.

    Args:
        data: the fleet.
    """
    return max(data.states[RUNNING], len({run.table for run in data.runs}))
