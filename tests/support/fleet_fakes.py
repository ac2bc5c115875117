"""A fleet for tests of the dashboard: no Spark, and names and texts that break a page which does not escape them."""

import random
from dataclasses import replace
from datetime import datetime, timezone

import numpy as np

from catalog.epoch_millis import moment
from catalog.properties.fleet_properties import Pool
from catalog.state.automation import FAILED, RUNNING, SCHEDULED, SUSPENDED, WAITING, Automation, OfferFacts
from catalog.state.fleet_ledger import LedgerState, Spending
from procedures.calls.status import StatusRow
from procedures.declare.runs import AUTOMATIC, Run
from procedures.fleet.outcomes import Outcome
from procedures.insight.health.diagnosis import HealthRow
from procedures.insight.health.remedy import Advice, AdviceStep, Remedy
from procedures.insight.report.facts import CubeBox
from procedures.loop.report import OptimizeRow
from procedures.service.action import KnownTable
from procedures.service.fleet_overview import Member, with_automation
from procedures.service.schedule import schedule_of
from procedures.service.service_metrics import RunTotals, ServiceMetrics
from sql_ext.dashboard.fleet_data import HealthNote, Notes, Seen, fleet_data
from sql_ext.dashboard.table_data import EventLine, Layout, TableData

NOW = 1_780_000_000_000
HOUR, DAY = 3_600_000, 86_400_000
EVIL = "lake.<script>alert('x')</script>&\"quoted\""
SCHEDULE = schedule_of({"use.index.columns": "id", "use.optimization.autoOptimize.enabled": "true"})
POOLS = (Pool("shop", 8_400_000_000, DAY, None), Pool(None, 25_000_000_000, DAY, 4))
_PARTS = ("unindexed_share", "fragmentation", "overlap", "small_files", "log_length", None)


def known_table(number, name=None, version=3):
    database = ("shop", "web", "sensors")[number % 3]
    name = name or f"spark_catalog.{database}.table_{number:05}"
    pools = POOLS if database == "shop" else POOLS[1:]
    return KnownTable(name, f"file:/wh/{number}", f"id{number}", version, {}, database=database, pools=pools)


def automation_of(table, number):
    state = (SCHEDULED, WAITING, SCHEDULED, WAITING, SCHEDULED, SUSPENDED, FAILED)[number % 7]
    state = RUNNING if number % 1000 == 1 or number == 8 else state
    offer = note = error = None
    if state == WAITING:
        offer = OfferFacts(
            (number + 1) * 7_000_000, (number % 97 + 1) * 31_000_000.0, number % 2 == 0, True, NOW - HOUR
        )
        note = (
            f"waits for its turn: {offer.cost} bytes to rewrite save reads about {offer.saving:.0f} bytes per day"
            if number % 2
            else "BUDGET_USED_UP: use.fleet.maxBytes = 8400000000 of database shop leaves 1000 bytes, and the next "
            "group has 7000000; it fits at 2026-05-29 06:00:00 UTC"
        )
    if state == SUSPENDED:
        note = "suspended by host-1:4711 at 2026-05-28T10:00:00+00:00"
    if state == FAILED:
        error = "USE_WRITE_DENIED: No file can be written below s3a://lake/shop/orders: AccessDenied."
    return Automation(
        table.name, table.location, state, ("UnindexedFiles",), NOW - (number % 50 + 1) * HOUR, NOW + HOUR, error,
        note=note, offer=offer,
    )  # fmt: skip


def fleet_of(count, now=NOW):
    """The page's data of a fleet of so many tables; the last one has a name of an attacker."""
    chance = random.Random(7)
    members, automations, health = [], [], {}
    for number in range(count):
        table = known_table(number, EVIL if number == count - 1 else None)
        automation = automation_of(table, number)
        outcomes = tuple(
            Outcome(now - days * DAY - number * 60_000, 10**8, 0.5, 0.8, 10**9, chance.uniform(0.0, 0.6))
            for days in (25, 12, 3)
            if number < 40
        )
        member = Member(table, SCHEDULE, outcomes=outcomes)
        members.append(with_automation(member, automation, now))
        automations.append(automation)
        if number % 3 == 0:
            part = _PARTS[number // 3 % len(_PARTS)]
            advice = f"CALL use.optimize('{table.name}')" if part else None
            health[table.location] = HealthNote(3, 99 - (number * 7 % 80) if part else 100, part, advice)
    runs = []
    for automation in automations:
        if automation.state == RUNNING:
            run = Run(automation.table, automation.location, AUTOMATIC, {}, now - 95_000, f"run{len(runs)}")
            run.current, run.committed, run.committed_bytes = "group 3 of 8: rewriting 12 files", 2, 1_300_000_000
            runs.append((automation.location, run))
    spent = tuple(
        Spending(now - hours * HOUR, ("shop", "web")[hours % 2], 4_000_000_000 + hours * 10_000_000)
        for hours in range(700, 0, -5)
    )
    metrics = ServiceMetrics()
    metrics.record_run("completed", RunTotals(10**9, 8 * 10**8))
    metrics.record_reads({"recorded_read_bytes_total": 123_456_789})
    seen = Seen(members, automations, runs, LedgerState(spent), health, {place: 3_400_000_000 for place, _ in runs})
    notes = Notes(True, count, count, moment(now), None)
    return fleet_data(seen, metrics.samples(automations, now), notes, now)


def status_row(name=EVIL, **changes):
    row = StatusRow(
        table=name, location="file:/wh/1", state="failed", trigger="automatic", run_id=None, strategy="UnindexedFiles",
        current=None, committed_groups=None, committed_bytes=None, started_at=None, last_run=moment(NOW - HOUR),
        next_run=moment(NOW + HOUR), last_error="USE_WRITE_DENIED: <b>No file</b> can be written.", lease_holder=None,
        lease_expires_at=None, message="a note with <i>", repeated_statements=None, plain_files=None, properties=None,
    )  # fmt: skip
    return replace(row, **changes)


def event(number, state="committed", error=None):
    return EventLine(
        datetime(2026, 5, 28, number % 24, tzinfo=timezone.utc), "optimize", "automatic", "UnindexedFiles", state,
        "UNINDEXED", 120, 9, 4_000_000_000, 3_900_000_000, None if error else 100 - number, error,
    )  # fmt: skip


def table_of(name=EVIL, columns=("distance<b>", "time_hour"), plan=None):
    chance = np.random.default_rng(3)
    cubes = [CubeBox((0.0, 1.0), (0.0, 1.0), 0, 500_000)]
    for depth in (1, 2, 3):
        side = 2**depth
        for x in range(side):
            for y in range(side):
                if chance.uniform() < (0.9, 0.6, 0.35)[depth - 1]:
                    box = (x / side, (x + 1) / side), (y / side, (y + 1) / side)
                    cubes.append(CubeBox(*box, depth, int(chance.uniform(20_000, 400_000) / (1 + x))))
    sizes = np.exp(chance.normal(17, 1.2, 400))
    flags = (chance.uniform(size=400) < 0.7).tolist()
    advice = Advice(Remedy.OPTIMIZE, "CALL use.optimize('<t>')")
    return TableData(
        name=name, gathered_at=NOW, version=101, rows=12_345_678, files=400, bytes=int(sizes.sum()),
        status=status_row(name),
        health=(
            HealthRow("total", 61, "points", None, 39.0, None, advice.statement),
            HealthRow("unindexed_share", 0.31, "share of bytes", 0.05, 25.0, 1_000_000, advice.statement),
            HealthRow("overlap", 3.4, "files opened by a 1 % box, relative to a fresh index", 1.5, 14.0, None, None),
        ),
        steps=(AdviceStep(advice, 10**6, "Files are not indexed yet."),),
        layout=Layout(columns, columns[:2], tuple(cubes) if columns else (), len(cubes), sizes, flags),
        events=(*(event(n) for n in range(11)), event(11, "failed", "USE_SPARK_FAILED: <img src=x>")),
        errors=(event(11, "failed", "USE_SPARK_FAILED: <img src=x>"),),
        plan=plan,
    )  # fmt: skip


PLAN = (
    OptimizeRow(
        1, "UnindexedFiles", "UNINDEXED", "planned", 120, 4 * 10**9, 0, 0, 10**6, 101, 0, "120 files <u>: a, b and more"
    ),
)
