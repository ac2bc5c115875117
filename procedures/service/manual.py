"""The manual trigger: one run in the background, asked for by ``ALTER TABLE use_catalog.… SET TBLPROPERTIES``."""

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
from catalog.table.managed_table import ManagedTable
from procedures.application import Application, application
from procedures.optimizer.engine import optimize
from procedures.optimizer.report import PassedOver, passed_over
from procedures.optimizer.runs import MANUAL, Run
from procedures.selection import strategy
from procedures.service.execution import background_session, is_running, prepare_thread
from procedures.service.schedule import Wish
from procedures.service.service_settings import ServiceSettings
from procedures.service.workers import Spawn, spawn_thread

logger = logging.getLogger(__name__)

ALREADY_RUNNING, AUTOMATIC, SUSPENDED = "ALREADY_RUNNING", "AUTOMATIC", "SUSPENDED"

_begin = threading.Lock()


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

    An ignored trigger is no error: it becomes a row of the table's ``optimizations`` with its reason. So does what the
    run finds and leaves alone, and that it finds nothing to do.

    Args:
        spark: session that asks.
        name: the table.
        properties: ``use.optimization.type`` and what else is asked for.
        spawn: starts a thread.
        app: whose runs, automations and clock it uses; the application of the process when left out.

    Raises:
        UseError: the table is none that can be optimized, or a property is not accepted.
    """
    app = app or application()
    wish = Wish.of_trigger(properties)
    own = background_session(spark)
    table = ManagedTable.find(own, name)
    configuration = _check_index(table, wish)
    # Two triggers at once: the second must see the run of the first.
    with _begin:
        reason = _why_not(table, configuration, app)
        outcome = Ignored(reason) if reason else app.runs.begin(Run.of(table, MANUAL, wish.parameters, app.clock))
    if isinstance(outcome, Ignored):
        _record_ignored(table, wish, outcome.reason, app)
        return outcome
    run = outcome
    pool = ServiceSettings.of(spark.conf.get).pool
    spawn(f"use-optimize-{run.run_id}", lambda: _work(own, table, wish, run, pool, app))
    return Started(run.run_id)


def _check_index(table: ManagedTable, wish: Wish) -> dict[str, str]:
    """The table's properties; refuses a table that the strategies cannot work on."""
    snapshot = table.snapshot()
    index = snapshot.index_configuration
    needing = [name for name in wish.strategies if strategy(name).needs_index_columns]
    if index is None and needing:
        raise IndexConfigurationError.no_columns(table.name, needing[0], snapshot.property_errors)
    return snapshot.configuration


def _why_not(table: ManagedTable, configuration: Mapping[str, str], app: Application) -> str | None:
    """The reason code for which a trigger is ignored, None when it is not."""
    place = qualified(table.spark, table.location)
    running = app.runs.live(lambda run: qualified(table.spark, run.location) == place)
    if running or lease.holder_of(table, app.clock.now()) is not None:
        return ALREADY_RUNNING
    if effective_type(configuration) is not None:
        return AUTOMATIC
    return SUSPENDED if suspension_of(table) is not None else None


def _record_ignored(table: ManagedTable, wish: Wish, reason: str, app: Application) -> None:
    logger.info("%s: a manual trigger was ignored: %s", table.name, reason)
    now = app.clock.now()
    record_ignored(table, event_without_commit(",".join(wish.strategies), MANUAL, reason, wish.parameters, (now, now)))


def _keep_passed_over(table: ManagedTable, wish: Wish, run: Run, left: PassedOver, app: Application) -> None:
    """Keeps a row of what a run left alone: nobody reads its report."""
    reason = ALREADY_RUNNING if left.reason == "LEASE_HELD" else left.reason
    logger.info("%s: manual run %s passed over %s", table.name, run.run_id, left.text)
    inputs = FilesTotals(left.files, left.bytes) if left.files else None
    times = run.started_at, app.clock.now()
    strategies = left.strategy or ",".join(wish.strategies)
    record_ignored(table, event_without_commit(strategies, MANUAL, reason, wish.parameters, times, inputs))


def _work(spark: SparkSession, table: ManagedTable, wish: Wish, run: Run, pool: str, app: Application) -> None:
    place = qualified(spark, table.location)
    before = app.automations.get(place)
    app.automations.put(Automation(table.name, place, automation.RUNNING, wish.strategies, run_id=run.run_id))
    try:
        prepare_thread(spark, pool)
        rows = optimize(table, wish.settings(), run, app=app)
        for left in passed_over(rows):
            _keep_passed_over(table, wish, run, left, app)
    except Exception as error:  # noqa: BLE001 - nobody waits for it: what happened is kept with the table
        if is_running(spark):
            _failed(table, wish, run, error, app)
    finally:
        app.runs.end(run)
        after = app.automations.get(place)
        if after is not None and after.run_id == run.run_id:
            app.automations.remove(place)
            if before is not None:
                app.automations.put(before)


def _failed(table: ManagedTable, wish: Wish, run: Run, error: Exception, app: Application) -> None:
    known = known_error(error)
    logger.warning("%s: manual run %s failed: %s", table.name, run.run_id, known.message)
    if run.current == "planning" and not run.committed:
        # What fails later has been kept with its group.
        times = run.started_at, app.clock.now()
        strategies = ",".join(wish.strategies)
        record_failure(table, event_without_commit(strategies, MANUAL, "NOT_STARTED", wish.parameters, times), known)
