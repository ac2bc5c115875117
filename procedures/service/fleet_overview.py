"""The fleet as ``use.fleet`` shows it: tables in the order in which the budget goes to them, and sums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from pyspark.sql import SparkSession

from catalog.epoch_millis import moment
from catalog.jvm.log_probe import FAILED as UNREADABLE
from catalog.jvm.log_probe import LATE
from catalog.jvm.metastore import database_of
from catalog.jvm.session_threads import in_threads
from catalog.properties.fleet_properties import Pool
from catalog.state.automation import RUNNING, SUSPENDED, Automation, Automations
from catalog.state.fleet_ledger import MOST_AHEAD_MILLIS, LedgerState
from catalog.state.lease import Lease, holder_of
from catalog.state.suspension import suspension_of
from catalog.system_tables.system_table import error_text
from catalog.table.managed_table import ManagedTable
from procedures.declare.result_rows import INT, ShownRow
from procedures.fleet.appraisal import Appraisal
from procedures.fleet.offer import Offer
from procedures.fleet.outcome_files import turns_of
from procedures.fleet.outcomes import Outcome, correction
from procedures.fleet.ranking import ranked
from procedures.service.action import KnownTable
from procedures.service.schedule import InvalidSchedule, Schedule, schedule_of
from procedures.service.table_registry import Registry
from procedures.service.watched_tables import SparkTables

READY, IDLE, UNKNOWN, FAILED, TOTAL = "ready", "idle", "unknown", "failed", "total"
_MILLIS_PER_DAY = 86_400_000
_WINDOWS = (1, 7, 30)


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
class Member:
    """A table that the service looks after.

    Attributes:
        table: its last known state.
        schedule: what is done with it.
        appraisal: what it offers; None if nobody has looked.
        offer: the worth and the cost of its next turn; None if it has none, or nobody has looked.
        waited: milliseconds for which it has waited for its turn.
        problem: why it cannot be looked at.
        suspension: why it has no turn; None if it is not suspended.
        lease: of the run that optimizes it, in any process; None if there is none.
        automation: its state in the service of this process.
        outcomes: of its earlier turns.
    """

    table: KnownTable
    schedule: Schedule | None
    appraisal: Appraisal | None = None
    offer: Offer | None = None
    waited: int = 0
    problem: str | None = None
    suspension: str | None = None
    lease: Lease | None = None
    automation: Automation | None = None
    outcomes: Sequence[Outcome] = ()


def members_of(spark: SparkSession, automations: Automations, now: int, database: str | None = None) -> list[Member]:
    """The tables that a service looks after, with what is known of them without planning.

    Looks go on until each table has answered, as long as any does. One of which nobody can tell whether a service looks
    after it has a problem.

    Args:
        spark: session whose metastore counts.
        automations: the tables of the service of this process.
        now: epoch milliseconds.
        database: only its tables; None = all.
    """
    tables = SparkTables(spark)
    listed = {location: name for location, name in tables.listed().items() if database in (None, database_of(name))}
    registry, inherited = Registry(), tables.inherited(listed.values())
    due, unseen = dict.fromkeys(listed, True), dict[str, str]()
    while due:
        sightings = tables.look(registry.questions(due))
        registry.update(due, listed, sightings, inherited)
        unseen |= {place: seen.detail for place, seen in zip(due, sightings, strict=True) if seen.state == UNREADABLE}
        late = {place: True for place, seen in zip(due, sightings, strict=True) if seen.state == LATE}
        if len(late) == len(due):
            unseen |= dict.fromkeys(late, "its file system does not answer")
            break
        due = late

    def member(table: KnownTable) -> Member | None:
        return member_of(spark, table, automations.get(table.location), now)

    members = [found for found in in_threads(spark, member, registry.take_updated()) if found is not None]
    return [*members, *(_unseen(place, listed[place], why, automations) for place, why in unseen.items())]


def _unseen(location: str, name: str, why: str, automations: Automations) -> Member:
    table = KnownTable(name, location, "", -1, {}, database=database_of(name))
    return Member(table, None, problem=f"It cannot be read: {why}.", automation=automations.get(location))


def member_of(spark: SparkSession, table: KnownTable, automation: Automation | None, now: int) -> Member | None:
    """Returns a table with what is known of it without planning; None if a service has nothing to rewrite in it.

    Args:
        spark: session that finds the table.
        table: the table.
        automation: its state in the service of this process.
        now: epoch milliseconds.
    """
    schedule = schedule_of(table.configuration)
    if isinstance(schedule, InvalidSchedule):
        return Member(table, None, problem=error_text(schedule.error), automation=automation)
    if not isinstance(schedule, Schedule) or not schedule.strategies:
        return None
    member = Member(table, schedule, automation=automation)
    try:
        found = ManagedTable.find(spark, table.name)
        suspension = suspension_of(found)
        note = None if suspension is None else suspension.note
        member = replace(member, outcomes=turns_of(found).outcomes, suspension=note, lease=holder_of(found, now))
    except Exception as error:  # noqa: BLE001 - whatever is wrong with one table is shown in its row
        return replace(member, problem=error_text(error))
    return with_automation(member, automation, now)


def with_automation(member: Member, automation: Automation | None, now: int) -> Member:
    """Returns a member with another state in the service of this process, and with what it offers there.

    Args:
        member: the member.
        automation: the state.
        now: epoch milliseconds.
    """
    facts = None if automation is None else automation.offer
    if facts is None:
        return replace(member, automation=automation, offer=None, waited=0)
    offer = Offer(facts.saving, facts.cost, facts.is_recorded, facts.is_read, facts.is_asked)
    return replace(member, automation=automation, offer=offer, waited=max(0, now - facts.since))


def in_order(members: Iterable[Member]) -> list[Member]:
    """The members with an offer in the order of the ranking, then the others by name."""
    members = list(members)
    order = ranked([m for m in members if m.offer is not None], lambda m: (m.offer or _NO_OFFER, m.waited))
    placed = set(map(id, order))
    rest = sorted((m for m in members if id(m) not in placed), key=lambda m: m.table.name)
    return [*order, *rest]


_NO_OFFER = Offer(0.0, 0, False)


def fleet_rows(members: Iterable[Member], ledger: LedgerState, now: int) -> list[FleetRow]:
    """A row for each table in its order, for each database, and for all tables.

    Args:
        members: the tables.
        ledger: what was spent.
        now: epoch milliseconds.
    """
    ordered = in_order(members)
    rows = [_row(number, member, ledger, now) for number, member in enumerate(ordered, start=1)]
    databases = sorted({member.table.database for member in ordered if member.table.database is not None})
    sums = [_sums(name, [m for m in ordered if m.table.database == name], ledger, now) for name in databases]
    return [*rows, *sums, _sums(None, ordered, ledger, now)]


def _row(number: int, member: Member, ledger: LedgerState, now: int) -> FleetRow:
    offer, automation, newest = member.offer, member.automation, member.outcomes[-1] if member.outcomes else None
    refusal = None if offer is None else ledger.refusal(member.table.pools, _first_bytes(member), now)
    reason: str | None = None
    lease = member.lease if member.lease is not None and member.lease.expires_at > now else None
    if member.problem is not None:
        state, reason = FAILED, member.problem
    elif lease is not None and (automation is None or automation.state != RUNNING):
        state, reason = RUNNING, f"run {lease.run_id} of {lease.holder}"
    elif member.suspension is not None:
        state, reason = SUSPENDED, member.suspension
    elif automation is not None:
        state, reason = automation.state, automation.last_error or automation.note
    elif offer is not None:
        state, reason = READY, offer.objection or (None if refusal is None else refusal.text)
    else:
        state = UNKNOWN if member.appraisal is None else IDLE
    is_ranked = offer is not None and offer.is_worthwhile
    measured = None if newest is None else newest.measured_saving
    return FleetRow(
        rank=number if is_ranked else None,
        table=member.table.name,
        database=member.table.database,
        state=state,
        reason=reason,
        cost_bytes=None if offer is None else offer.cost,
        saving_per_day=None if offer is None else round(offer.saving),
        saving_per_byte=None if offer is None else offer.saving_per_byte,
        is_recorded=None if offer is None else offer.is_recorded,
        waiting_since=moment(now - member.waited) if offer is not None and member.waited else None,
        last_run=moment(newest.at if newest is not None else automation.last_run if automation is not None else None),
        last_bytes=None if newest is None else newest.cost,
        predicted_saving=None if newest is None else round(newest.saving),
        measured_saving=None if measured is None else round(measured),
        correction=correction(member.outcomes) if member.outcomes else None,
    )


def _first_bytes(member: Member) -> int:
    return 1 if member.appraisal is None else max(1, member.appraisal.first_bytes)


def _sums(database: str | None, members: Sequence[Member], ledger: LedgerState, now: int) -> FleetRow:
    pools = {pool.database: pool for member in members for pool in member.table.pools}
    pool = pools.get(database)
    offers = [member.offer for member in members if member.offer is not None]
    outcomes = [outcome for member in members for outcome in member.outcomes]
    spent = [ledger.spent_of(database, now - days * _MILLIS_PER_DAY) for days in _WINDOWS]
    saved = [round(sum(o.saved_since(now - days * _MILLIS_PER_DAY, now) for o in outcomes)) for days in _WINDOWS]
    return FleetRow(
        rank=None,
        table=None,
        database=database,
        state=TOTAL,
        cost_bytes=sum(offer.cost for offer in offers),
        saving_per_day=round(sum(offer.saving for offer in offers)),
        budget_bytes=None if pool is None else pool.max_bytes,
        budget_left=_left(pool, ledger, now),
        spent_day=spent[0],
        spent_week=spent[1],
        spent_month=spent[2],
        saved_day=saved[0],
        saved_week=saved[1],
        saved_month=saved[2],
    )


def _left(pool: Pool | None, ledger: LedgerState, now: int) -> int | None:
    if pool is None or pool.max_bytes is None:
        return None
    return max(0, pool.max_bytes - ledger.spent_of(pool.database, now - pool.period, now + MOST_AHEAD_MILLIS))
