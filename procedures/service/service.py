"""The service: a loop that checks the tables, applies their changes and starts the runs that are due."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from pyspark.sql import SparkSession

from catalog.clock import Clock
from catalog.jvm.application_metrics import ApplicationMetrics
from catalog.jvm.java_errors import known_error
from catalog.jvm.log_probe import LATE
from catalog.jvm.shim_bridge import ShimBridge
from catalog.properties.inherited import InheritedProperties
from procedures.process.application import Application, application
from procedures.process.running_services import DROPPED, RENAMED, RESUMED, SUSPENDED, CatalogChange
from procedures.service.actions import Action
from procedures.service.ended_run import RunReceiver, RunReports, log_problems
from procedures.service.execution import Engine, SparkEngine, background_session, is_running, prepare_thread
from procedures.service.look_times import LookTimes
from procedures.service.service_metrics import ServiceMetrics
from procedures.service.service_settings import ServiceSettings
from procedures.service.table_registry import Registry
from procedures.service.watched_tables import SparkTables, Tables
from procedures.service.workers import Spawn, Workers, spawn_thread

logger = logging.getLogger(__name__)

# The loop is alive if it has looked at the tables within so many intervals, or within the least time.
_LATE_INTERVALS, _LEAST_LATE_MILLIS = 4, 60_000
Exchange: TypeAlias = Callable[[Mapping[str, int]], Mapping[str, int]]


class Service:
    """Optimizes tables according to their properties until it is stopped.

    Args:
        spark: session of the application; the service works in its own session.
        tables: names or paths of the tables to optimize; the whole catalog by default.
        clock: provides the time; the clock of the application by default.
        app: stores the states of the tables; the application of the process by default.
        engine: accesses the tables.
        source: lists and checks the tables.
        spawn: starts a thread.
        metrics: counts the runs; its own by default.
        exchange: sends the numbers of the service to Spark's metrics and returns all numbers of the application.
        on_run: is called with each run that has ended; errors are logged by default.

    Raises:
        TableError: one of ``tables`` does not exist or is not a Delta table.
        InvalidArgumentError: a setting of the service is invalid.
    """

    def __init__(
        self,
        spark: SparkSession,
        tables: Sequence[str] | None = None,
        *,
        clock: Clock | None = None,
        app: Application | None = None,
        engine: Engine | None = None,
        source: Tables | None = None,
        spawn: Spawn = spawn_thread,
        metrics: ServiceMetrics | None = None,
        exchange: Exchange | None = None,
        on_run: RunReceiver = log_problems,
    ) -> None:
        self._spark = spark
        self._settings = ServiceSettings.of(spark.conf.get)
        background = background_session(spark) if engine is None or source is None else spark
        self._background = background
        app = app or application()
        self._services = app.services
        self._clock = clock or app.clock
        self._tables = source or SparkTables(background, tables)
        self._pending_changes: deque[CatalogChange] = deque()
        self._forget_tables()
        self._wake = threading.Event()
        self._ending = threading.Event()
        self._automations = app.automations
        self._metrics = metrics or ServiceMetrics()
        self._exchange = exchange or (ApplicationMetrics(background).exchange if engine is None else dict)
        engine = engine or SparkEngine(background, app)
        reports = RunReports(self._clock, app.notifications, self._metrics, on_run, lambda: not self.is_alive)
        self._workers = Workers(engine, self._clock, app.automations, self._wake.set, spawn, reports)
        self._thread: threading.Thread | None = None
        self._last_look = self._clock.monotonic()
        self._paused = False

    # ----------------------------------------------------------------------------------------------- start and stop

    def start(self) -> None:
        """Starts the loop in the background and listens to changes of tables by this process."""
        self._services.listen(self)
        ShimBridge(self._spark).listen(True)
        self._thread = threading.Thread(target=self._loop, name="use-service", daemon=True)
        self._thread.start()

    def stop(self, wait: float | None = None) -> bool:
        """Stops the loop, and stops running optimizations at their next boundary between groups.

        Args:
            wait: maximum seconds to wait for each; unlimited by default.

        Returns:
            Whether everything has ended.
        """
        self._ending.set()
        self._wake.set()
        is_last = self._services.ignore(self)
        if is_last and self.is_alive:
            ShimBridge(self._spark).listen(False)
        self._workers.stop_all("SERVICE_STOPPED", "the optimization service was stopped")
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(wait)
            # The last round may have started another run.
            self._workers.stop_all("SERVICE_STOPPED", "the optimization service was stopped")
        return self._workers.join(wait)

    @property
    def is_alive(self) -> bool:
        """Whether its SparkContext runs."""
        return is_running(self._spark)

    def problem(self) -> str | None:
        """Returns why its loop does not work, in one line; None if it does."""
        if self._ending.is_set():
            return "the service is stopping"
        if not self.is_alive:
            return "Spark has stopped"
        if self._thread is None or not self._thread.is_alive():
            return "the loop of the service has ended"
        elapsed = self._clock.monotonic() - self._last_look
        if elapsed * 1000 <= max(_LATE_INTERVALS * self._settings.listener_interval, _LEAST_LATE_MILLIS):
            return None
        return f"the last look at the tables was {int(elapsed)} seconds ago"

    def notify(self, change: CatalogChange) -> None:
        """Queues a change and wakes the loop; returns at once."""
        self._pending_changes.append(change)
        self._wake.set()

    def join(self, seconds: float | None = None) -> bool:
        """Waits for running optimizations and returns whether all have ended.

        Args:
            seconds: maximum time per run; unlimited by default.
        """
        return self._workers.join(seconds)

    # ------------------------------------------------------------------------------------------------------- rounds

    def tick(self, look: bool = True) -> None:
        """Runs one round: processes changes, applies the resulting actions and starts the runs that are due.

        Args:
            look: whether to check the tables, as in every listener interval.
        """
        self._run_round(look)
        if look:
            self._last_look = self._clock.monotonic()
        self._guarded(self._exchange_metrics)

    def _run_round(self, look: bool) -> None:
        self._settings = ServiceSettings.of(self._spark.conf.get)
        if not self._settings.enabled:
            self._pause()
            return
        self._paused = False
        actions: list[Action] = []
        while self._pending_changes:
            actions += self._guarded(partial(self._process_change, self._pending_changes.popleft()))
        if look:
            # If the metastore is unavailable, the known tables are still looked at and optimized.
            actions += self._guarded(self._list)
            actions += self._guarded(self._look)
            self._workers.stop_suspended_runs()
        for action in actions:
            self._guarded(partial(_apply, action, self._workers))
        for table in self._registry.take_updated():
            self._workers.update(table.name, table.location, table.version, table.database, table.pools)
        self._workers.start_due(self._settings)

    def _exchange_metrics(self) -> list[Action]:
        samples = self._metrics.service_samples(self._automations.all(), self._clock.now())
        numbers = {sample.metric.spark_name(sample.label_value): sample.value for sample in samples}
        self._metrics.record_reads(self._exchange(numbers))
        return []

    def _guarded(self, step: Callable[[], list[Action]]) -> list[Action]:
        """Returns the actions of a step; none if it failed, because an error of one table must not affect others."""
        try:
            return step()
        except Exception as error:  # noqa: BLE001
            self._report(error)
            return []

    def _pause(self) -> None:
        if not self._paused:
            self._paused = True
            self._forget_tables()
            self._workers.stop_all("SERVICE_DISABLED", "the optimization service was turned off")
        self._pending_changes.clear()

    def _forget_tables(self) -> None:
        self._registry, self._looks = Registry(), LookTimes()
        self._listed: dict[str, str] = {}

    def _list(self) -> list[Action]:
        if self._looks.lists_tables(len(self._listed)):
            self._listed = dict(self._tables.listed())
            self._looks.keep_only(self._listed)
        return []

    def _look(self) -> list[Action]:
        inherited = self._tables.inherited(self._listed.values())
        actions = self._registry.refresh(self._listed, inherited)
        now, interval = self._clock.now(), self._settings.listener_interval
        # A run is skipped if its table is not known to have changed.
        runs = (table.location for table in self._automations.all() if now < (table.next_run or 0) <= now + interval)
        return actions + self._check(self._looks.due(self._listed, now, interval, set(runs)), inherited)

    def _check(self, due: Mapping[str, bool], inherited: Callable[[str], InheritedProperties]) -> list[Action]:
        sightings = self._tables.look(self._registry.questions(due))
        actions, now = self._registry.update(due, self._listed, sightings, inherited), self._clock.now()
        for location, sighting in zip(due, sightings, strict=True):
            table = self._registry.updated(location)
            if sighting.state == LATE:
                self._looks.record_late(location)
            elif table is None:
                self._looks.record(location, None, now)
            else:
                self._looks.record(location, now if table.modified < 0 else table.modified, now)
        return actions

    def _process_change(self, change: CatalogChange) -> list[Action]:
        place = self._tables.add(change.name, change.location) if change.location else None
        if change.kind in (SUSPENDED, RESUMED):
            if place is not None:
                self._workers.suspension_changed(place, change.kind == SUSPENDED)
            return []
        known = self._registry.location_of(change.before or change.name)
        actions: list[Action] = []
        if change.kind in (DROPPED, RENAMED) and known is not None and known != place:
            self._listed.pop(known, None)
            actions += self._registry.remove(known)
        if place is not None:
            self._listed[place] = change.name
            actions += self._check({place: True}, self._tables.inherited([change.name]))
        return actions

    # --------------------------------------------------------------------------------------------------------- loop

    def _loop(self) -> None:
        try:
            prepare_thread(self._background, self._settings.pool)
        except Exception as error:  # noqa: BLE001 - Spark may have stopped already
            self._report(error)
        # The time of day may be set back, and the looks must go on.
        next_look = self._clock.monotonic()
        while not self._ending.is_set() and self.is_alive:
            self._wake.clear()
            look = self._clock.monotonic() >= next_look
            if look:
                next_look = self._clock.monotonic() + self._settings.listener_interval / 1000
            try:
                self.tick(look)
            except Exception as error:  # noqa: BLE001 - the service continues after any error in a round
                self._report(error)
            self._clock.wait(self._wake, self._seconds_until(next_look))
        # If Spark was stopped, the workers have not been stopped yet.
        self._workers.stop_all("SERVICE_STOPPED", "the optimization service was stopped")

    def _seconds_until(self, next_look: float) -> float:
        seconds = next_look - self._clock.monotonic()
        due, now = self._workers.next_due(), self._clock.now()
        if due is not None and due > now:
            seconds = min(seconds, (due - now) / 1000)
        return max(seconds, 0.001)

    def _report(self, error: Exception) -> None:
        if not self.is_alive or self._ending.is_set():
            return
        known = known_error(error)
        logger.warning("The optimization service continues after an error: %s: %s", known.code, known.message)


def _apply(action: Action, workers: Workers) -> list[Action]:
    action.apply(workers)
    return []
