"""``CALL use.fleet``: shows the tables that share a budget, by what they are worth, and gives each a turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from catalog.errors import ConcurrentChangeError, UnknownNameError
from catalog.jvm.session import interrupted
from catalog.jvm.session_threads import in_threads
from catalog.state.automation import FAILED, RUNNING, WAITING
from catalog.state.fleet_ledger import FleetLedger
from catalog.system_tables.system_table import error_text
from catalog.table.snapshot import TableSnapshot
from procedures.declare.declaration import Call
from procedures.declare.operation import operation
from procedures.declare.runs import CALL, Run
from procedures.fleet.appraisal import appraise, record_outcome
from procedures.fleet.budget import RunBudget
from procedures.loop.table_optimizer import optimize
from procedures.process.application import application
from procedures.service.execution import Turn, check_properties, find_at, ledger_of
from procedures.service.fleet_overview import IDLE, FleetRow, Member, fleet_rows, in_order, members_of
from procedures.service.schedule import Schedule
from procedures.service.service_settings import FLEET_LOCATION

OPTIMIZED = "optimized"
# An interrupt is noticed after so many tables were planned.
_APPRAISALS = 8


def fleet(call: Call, database: str | None = None, dry_run: bool = False) -> list[FleetRow]:
    """Ranks the tables under automatic optimization by the bytes that reads will save for each byte rewritten, and
    rewrites the best, table after table, as far as budgets allow.

    Args:
        database: Only its tables; all databases by default.
        dry_run: Only shows the ranking.

    Returns:
        A row for each table, the best first, then sums of each database and of all tables.

    Raises:
        UseError: there is no such database.
    """
    spark, app = call.spark, application()
    if database is not None and not spark.catalog.databaseExists(database):
        raise UnknownNameError.of("schema", database, [row.name for row in spark.catalog.listDatabases()])
    members = members_of(spark, app.automations, app.clock.now(), database)
    members = in_order(_all_appraised(spark, members, dry_run))
    done: dict[str, FleetRow] = {}
    for member in () if dry_run else members:
        # What the service of this process has found of a table that is suspended, or cannot be planned, is no offer.
        if member.appraisal is None or member.offer is None or not member.offer.is_worthwhile:
            continue
        if interrupted(spark):
            break
        done[member.table.location] = _turn(spark, member)
    rows = fleet_rows(members, _ledger(spark).state(), app.clock.now())
    ended = {row.table: row for row in done.values()}
    return [_after(row, ended[row.table]) if row.table in ended else row for row in rows]


def _ledger(spark: SparkSession) -> FleetLedger:
    return ledger_of(spark, FLEET_LOCATION.optional_of_conf(spark.conf.get))


def _all_appraised(spark: SparkSession, members: Sequence[Member], dry_run: bool) -> Iterator[Member]:
    """The members with what they offer, a few planned at the same time; after an interrupt, as they are."""
    for first in range(0, len(members), _APPRAISALS):
        some = members[first : first + _APPRAISALS]
        yield from (
            some if interrupted(spark) else in_threads(spark, lambda member: _appraised(spark, member, dry_run), some)
        )


def _appraised(spark: SparkSession, member: Member, dry_run: bool) -> Member:
    """The member with what it offers, as it is now; one that is suspended, has a problem or a run is left as it is."""
    is_running = member.automation is not None and member.automation.state == RUNNING
    if member.schedule is None or member.problem or member.suspension or is_running:
        return member
    table, clock = member.table, application().clock
    budget = RunBudget(partial(_ledger, spark), table.pools, table.database, clock)
    run = Run(table.name, table.location, CALL, member.schedule.parameters, clock.now())
    try:
        settings = member.schedule.settings().within(budget.group_bytes)
        found = find_at(spark, table.name, table.location)
        if not dry_run:
            found.check_rights()
        appraisal = appraise(found, settings, run, clock, stores=not dry_run)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with one table is shown in its row
        return replace(member, problem=error_text(error))
    return replace(member, appraisal=appraisal, offer=appraisal.offer)


def _turn(spark: SparkSession, member: Member) -> FleetRow:
    """Lets a table rewrite what it offers; the row says how that ended."""
    table, app = member.table, application()
    name, database = table.name, table.database
    if member.schedule is None:
        return FleetRow(None, name, database, FAILED, member.problem)
    budget = RunBudget(partial(_ledger, spark), table.pools, database, app.clock)
    turn = Turn(budget, member.appraisal)
    check = partial(_check_unchanged, member, member.schedule)
    reason = None
    try:
        found = find_at(spark, name, table.location)
        run = Run.of(found, CALL, member.schedule.parameters, app.clock)
        # What the turn has brought is written below the table also if nothing was left to rewrite.
        found.check_rights()
        with budget.running(run) as refused:
            if refused is None:
                report = optimize(found, turn.settings(member.schedule), run, app=app, spend=budget.spend, check=check)
                reason = report[-1].message if report and not run.committed else None
    except Exception as error:  # noqa: BLE001 - the others have their turn all the same
        return FleetRow(None, name, database, FAILED, error_text(error))
    if member.appraisal is not None:
        record_outcome(found, member.appraisal, run.committed_bytes, app.clock.now())
    refusal = budget.refusal
    if refusal is not None:
        reason = refusal.text
    state = OPTIMIZED if run.committed else IDLE if refusal is None else WAITING
    return FleetRow(None, name, database, state, reason)


def _check_unchanged(member: Member, schedule: Schedule, snapshot: TableSnapshot) -> None:
    """Refuses to rewrite another table, or to remove rows by former properties: other tables had their turns before.

    Raises:
        ConcurrentChangeError: the table was replaced, or its properties were changed, since the call began.
    """
    if snapshot.table_id != member.table.table_id:
        raise ConcurrentChangeError(f"{member.table.name} was replaced by another table since the call began.")
    check_properties(schedule, snapshot)


def _after(row: FleetRow, ended: FleetRow) -> FleetRow:
    return replace(row, state=ended.state, reason=ended.reason)


FLEET = operation(fleet)
