"""The manual trigger: ``ALTER TABLE use_catalog.… SET TBLPROPERTIES`` starts one run in the background."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from catalog.errors import IndexConfigurationError
from catalog.history.event_store import record_failure, record_ignored
from catalog.history.events import FilesTotals, event_without_commit
from catalog.jvm.java_errors import known_error
from catalog.jvm.log_probe import qualified
from catalog.properties.optimization_properties import effective_type
from catalog.state import automation, lease
from catalog.state.automation import Automation
from catalog.state.suspension import suspension_of
from catalog.table.managed_table import ManagedTable, check_rights_of
from procedures.declare.runs import MANUAL, Run
from procedures.loop.report import LEASE_HELD, PassedOver, passed_over
from procedures.loop.table_optimizer import optimize
from procedures.process.application import Application, application
from procedures.selection import strategy
from procedures.service.execution import background_session, is_running, prepare_thread
from procedures.service.schedule import Schedule
from procedures.service.service_settings import ServiceSettings
from procedures.service.workers import Spawn, spawn_thread

logger = logging.getLogger(__name__)

ALREADY_RUNNING, AUTOMATIC, SUSPENDED = "ALREADY_RUNNING", "AUTOMATIC", "SUSPENDED"

_begin_lock = threading.Lock()


@dataclass(frozen=True)
class Started:
    """A trigger that has started a run."""

    run_id: str


@dataclass(frozen=True)
class Ignored:
    """A trigger that has started no run, and the reason code."""

    reason: str


def trigger(
    spark: SparkSession,
    name: str,
    properties: Mapping[str, str],
    spawn: Spawn = spawn_thread,
    app: Application | None = None,
) -> Started | Ignored:
    """Starts one optimization in the background, unless there is a reason to ignore the trigger.

    An ignored trigger is not an error: it adds a row to the table's ``optimizations`` with its reason. A run adds rows
    for what it skips, or if it finds nothing to do.

    Args:
        spark: session of the caller.
        name: the table.
        properties: ``use.optimization.type`` and further properties.
        spawn: starts a thread.
        app: provides the runs, automations and clock; the application of the process by default.

    Returns:
        The started run, or the reason why the trigger was ignored.

    Raises:
        UseError: the table cannot be optimized, or a property or a setting of the service is invalid.
    """
    app = app or application()
    schedule = Schedule.of_trigger(properties)
    pool = ServiceSettings.of(spark.conf.get).pool
    background = background_session(spark)
    table = ManagedTable.find(background, name)
    # The caller's session may have another catalog than the sessions of the application.
    check_rights_of(spark, table.name)
    configuration = _check_index(table, schedule)
    # Of two concurrent triggers, the second must see the run of the first.
    with _begin_lock:
        reason = _reason_to_ignore(table, configuration, app)
        outcome = Ignored(reason) if reason else app.runs.begin(Run.of(table, MANUAL, schedule.parameters, app.clock))
    if isinstance(outcome, Ignored):
        _record_ignored(table, schedule, outcome.reason, app)
        return outcome
    run = outcome
    try:
        spawn(f"use-optimize-{run.run_id}", lambda: _work(background, table, schedule, run, pool, app))
    except BaseException:
        # A run without a thread would never end.
        app.runs.end(run)
        raise
    return Started(run.run_id)


def _check_index(table: ManagedTable, schedule: Schedule) -> dict[str, str]:
    """Returns the properties of the table; rejects a table that the strategies cannot optimize."""
    snapshot = table.snapshot()
    index = snapshot.index_configuration
    needing = [name for name in schedule.strategies if strategy(name).needs_index_columns]
    if index is None and needing:
        raise IndexConfigurationError.no_columns(table.name, needing[0], snapshot.property_errors)
    return snapshot.settings


def _reason_to_ignore(table: ManagedTable, configuration: Mapping[str, str], app: Application) -> str | None:
    """Returns the reason code if a trigger is ignored; None otherwise."""
    place = qualified(table.spark, table.location)
    running = app.runs.live(lambda run: qualified(table.spark, run.location) == place)
    if running or lease.holder_of(table, app.clock.now()) is not None:
        return ALREADY_RUNNING
    if effective_type(configuration) is not None:
        return AUTOMATIC
    return SUSPENDED if suspension_of(table) is not None else None


def _record_ignored(table: ManagedTable, schedule: Schedule, reason: str, app: Application) -> None:
    logger.info("%s: a manual trigger was ignored: %s", table.name, reason)
    now = app.clock.now()
    record_ignored(
        table, event_without_commit(",".join(schedule.strategies), MANUAL, reason, schedule.parameters, (now, now))
    )


def _record_skipped(table: ManagedTable, schedule: Schedule, run: Run, skipped: PassedOver, app: Application) -> None:
    """Records an event for the files that a run skipped, because its report is not shown."""
    reason = ALREADY_RUNNING if skipped.reason == LEASE_HELD else skipped.reason
    logger.info("%s: manual run %s skipped %s", table.name, run.run_id, skipped.text)
    inputs = FilesTotals(skipped.files, skipped.bytes) if skipped.files else None
    times = run.started_at, app.clock.now()
    strategies = skipped.strategy or ",".join(schedule.strategies)
    record_ignored(table, event_without_commit(strategies, MANUAL, reason, schedule.parameters, times, inputs))


def _work(spark: SparkSession, table: ManagedTable, schedule: Schedule, run: Run, pool: str, app: Application) -> None:
    place = qualified(spark, table.location)
    before = app.automations.get(place)
    app.automations.put(Automation(table.name, place, automation.RUNNING, schedule.strategies, run_id=run.run_id))
    try:
        prepare_thread(spark, pool)
        rows = optimize(table, schedule.settings(), run, app=app)
        for skipped in passed_over(rows):
            _record_skipped(table, schedule, run, skipped, app)
    except Exception as error:  # noqa: BLE001 - no caller waits for the run, so its error is recorded with the table
        if is_running(spark):
            _failed(table, schedule, run, error, app)
    finally:
        app.runs.end(run)
        after = app.automations.get(place)
        if after is not None and after.run_id == run.run_id:
            app.automations.remove(place)
            if before is not None:
                app.automations.put(before)


def _failed(table: ManagedTable, schedule: Schedule, run: Run, error: Exception, app: Application) -> None:
    known = known_error(error)
    logger.warning("%s: manual run %s failed: %s", table.name, run.run_id, known.message)
    if run.current == "planning" and not run.committed:
        # Later failures are recorded with their groups.
        times = run.started_at, app.clock.now()
        strategies = ",".join(schedule.strategies)
        record_failure(
            table, event_without_commit(strategies, MANUAL, "NOT_STARTED", schedule.parameters, times), known
        )
