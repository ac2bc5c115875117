"""``CALL use.status``: shows runs, schedules and leases."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from pyspark.sql import SparkSession

from catalog.counted_nouns import counted
from catalog.epoch_millis import moment
from catalog.errors import TableError, UseError
from catalog.insights.statement_notes import StatementNotes, statement_notes
from catalog.jvm.log_probe import qualified
from catalog.jvm.metastore import KnownTable, is_shown
from catalog.properties.checks import described
from catalog.properties.names import in_namespace
from catalog.state import automation
from catalog.state.automation import Automation
from catalog.state.cancel_requests import can_be_asked, cancel_request
from catalog.state.lease import Lease, leases_of
from catalog.state.leased_tables import leased_tables
from catalog.state.suspension import Suspension, suspension_of
from catalog.system_tables.system_table import error_text
from catalog.table.managed_table import ManagedTable
from catalog.table.snapshot import TableSnapshot
from procedures.declare.declaration import Call
from procedures.declare.operation import operation
from procedures.declare.result_rows import ShownRow
from procedures.declare.runs import AUTOMATIC, Run
from procedures.declare.signature import DETAILS
from procedures.insight.recommendation.column_choice import choice_note
from procedures.process.application import application

logger = logging.getLogger(__name__)

IDLE = "idle"
_SHORT = ("table", "state", "run_id", "current", "last_run", "next_run", "last_error", "message")


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


def status_row(
    name: str,
    location: str,
    known: Automation | None = None,
    run: Run | None = None,
    lease: Lease | None = None,
    suspension: Suspension | None = None,
    problem: str | None = None,
    mistakes: Sequence[UseError] = (),
    statements: StatementNotes | None = None,
    properties: Mapping[str, str] | None = None,
    column_choice: str | None = None,
    cancelled_by: str | None = None,
) -> StatusRow:
    """Builds one row from the state of a table and of a run on it. This function is pure.

    Args:
        name: of the table.
        location: its root.
        known: the record of the automatic service of this process.
        run: a live run of this process.
        lease: the table's lease that has not expired.
        suspension: the table's suspension.
        problem: why the table cannot be read.
        mistakes: errors in the table's properties.
        statements: what commits say of the statements that made them; None if nobody asked.
        properties: the properties in force, with their sources; None if nobody asked.
        column_choice: a note about index columns that the service chooses.
        cancelled_by: who has asked the holder of the lease to stop.
    """
    if run is not None or lease is not None:
        state = automation.RUNNING
    elif suspension is not None:
        state = automation.SUSPENDED
    elif problem is not None:
        state = automation.FAILED
    else:
        state = IDLE if known is None else known.state
    strategy = ",".join(known.strategies) if known is not None and known.strategies else None
    notes = [note for note in (suspension.note if suspension else None, known.note if known else None) if note]
    notes += [column_choice] if column_choice else []
    if run is None and lease is not None:
        application_note = f", application {lease.application}" if lease.application else ""
        notes.insert(0, f"runs in {lease.holder}{application_note}")
    if cancelled_by is not None:
        notes.insert(0, f"{cancelled_by} has asked it to stop")
    if statements is not None and statements.plain_total:
        notes.append(f"statements wrote {counted(statements.plain_total, 'file')} plainly: {statements.reasons}")
    if statements is not None and statements.key_errors_total:
        merges = counted(statements.key_errors_total, "MERGE")
        notes.append(f"{merges} looked at all files, since keys could not be read: {statements.key_error_codes}")
    trigger = run.trigger if run else lease.trigger if lease else AUTOMATIC if known else None
    return StatusRow(
        table=name,
        location=location,
        state=state,
        trigger=trigger,
        run_id=run.run_id if run else lease.run_id if lease else None,
        strategy=run.parameters.get("strategy", strategy) if run else strategy,
        current=run.current if run else lease.current if lease else None,
        committed_groups=run.committed if run else lease.committed if lease else None,
        committed_bytes=run.committed_bytes if run else lease.committed_bytes if lease else None,
        started_at=moment(run.started_at if run else lease.acquired_at if lease else None),
        last_run=moment(known.last_run if known else None),
        next_run=moment(known.next_run if known else None),
        last_error=problem or (known.last_error if known else None),
        lease_holder=lease.holder if lease else None,
        lease_expires_at=moment(lease.expires_at if lease else None),
        message="; ".join([*notes, *described(mistakes)]) or None,
        repeated_statements=None if statements is None else statements.repeated,
        plain_files=None if statements is None else statements.plain_total,
        properties=None if properties is None else dict(properties),
        application=lease.application if lease else None,
    )


def _rows(spark: SparkSession, wanted: str | None, *, with_statements: bool) -> Sequence[StatusRow]:
    app = application()
    known: dict[str, tuple[str, Automation | None]] = {
        a.location: (a.table, a) for a in application().automations.all()
    }
    runs: dict[str, list[Run]] = {}
    for run in app.runs.live():
        runs.setdefault(qualified(spark, run.location), []).append(run)
        known.setdefault(qualified(spark, run.location), (run.table, None))
    if wanted is not None:
        table = ManagedTable.find(spark, wanted)
        place = qualified(spark, table.location)
        # Use the requested name: the service may know the table by its path.
        known = {place: (table.name, known[place][1] if place in known else None)}
    else:
        for leased in _leased(spark):
            known.setdefault(qualified(spark, leased.location), (leased.full_name, None))
    rows: list[StatusRow] = []
    for place, (name, record) in known.items():
        if wanted is None and not is_shown(spark, name):
            continue  # this process knows tables that this user may not see
        facts = _of_files(spark, name, with_statements=with_statements)
        leases, live = facts.leases, runs.get(place, [])
        row = partial(
            status_row,
            name,
            place,
            record,
            mistakes=facts.mistakes,
            statements=facts.statements,
            properties=facts.properties,
            column_choice=facts.column_choice,
        )
        rows += [row(run, leases.get(run.run_id)) for run in live]
        others = [lease for run_id, lease in leases.items() if all(run_id != run.run_id for run in live)]
        rows += [row(None, lease, cancelled_by=facts.cancelled_by.get(lease.run_id)) for lease in others]
        if not live and not others:
            rows.append(row(suspension=facts.suspension, problem=facts.problem))
    return rows


@dataclass(frozen=True)
class _Facts:
    """State from the files of a table, or the reason why the table cannot be read."""

    leases: Mapping[str, Lease] = field(default_factory=dict)
    suspension: Suspension | None = None
    mistakes: Sequence[UseError] = ()
    problem: str | None = None
    statements: StatementNotes | None = None
    properties: Mapping[str, str] | None = None
    column_choice: str | None = None
    cancelled_by: Mapping[str, str] = field(default_factory=dict)


def _leased(spark: SparkSession) -> list[KnownTable]:
    """The tables of the metastore on which some process works; none if the metastore cannot be listed."""
    try:
        return leased_tables(spark, application().clock.now())
    except Exception as error:  # noqa: BLE001 - what this process knows is shown all the same
        logger.warning("Runs of other processes are not shown: %s", error_text(error))
        return []


def _of_files(spark: SparkSession, name: str, *, with_statements: bool) -> _Facts:
    """Returns lease, suspension and property errors of a table; empty if the table was dropped in the meantime."""
    try:
        table = ManagedTable.find(spark, name)
        snapshot = table.snapshot()
        notes = statement_notes(snapshot) if with_statements else None
        leases = {lease.run_id: lease for lease in leases_of(table, application().clock.now())}
        requests = {run_id: cancel_request(table, run_id) for run_id in leases if can_be_asked(run_id)}
        properties = _in_force(snapshot) if with_statements else None
        return _Facts(
            leases,
            suspension_of(table),
            snapshot.property_errors,
            statements=notes,
            properties=properties,
            column_choice=choice_note(table, snapshot),
            cancelled_by={run_id: request.by for run_id, request in requests.items() if request is not None},
        )
    except Exception as error:  # noqa: BLE001 - any error of one table is shown in its row
        if isinstance(error, TableError) and error.is_missing:
            return _Facts()
        return _Facts(problem=error_text(error))


def _in_force(snapshot: TableSnapshot) -> dict[str, str]:
    """The properties in force of USE, each with its source."""
    origin = partial(snapshot.inherited.origin, own=snapshot.configuration, columns=snapshot.schema.names)
    return {key: f"{text} ({origin(key)})" for key, text in sorted(snapshot.settings.items()) if in_namespace(key)}


def status(call: Call, table: str | None = None) -> list[StatusRow]:
    """Shows runs of all processes, and the tables that the service of this process optimizes.

    Args:
        table: Shows only this table; all by default.

    Returns:
        A row per run, and a row per table without a run.

    Raises:
        UseError: the table does not exist.
    """
    # Statements are counted in the log, which costs a job.
    with_statements = table is not None and call[DETAILS]
    return sorted(
        _rows(call.spark, table, with_statements=with_statements), key=lambda row: (row.table, row.run_id or "")
    )


STATUS = operation(status, short=_SHORT, details=False)
