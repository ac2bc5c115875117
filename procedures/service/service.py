"""The service: a loop that looks at the tables, applies what their changes ask for, and starts the due runs."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession

from catalog.clock import Clock
from catalog.jvm.java_errors import known_error
from catalog.jvm.shim_bridge import ShimBridge
from procedures.application import Application, application
from procedures.service.actions import Action
from procedures.service.execution import Engine, SparkEngine, background_session, is_running, prepare_thread
from procedures.service.service_settings import ServiceSettings
from procedures.service.table_registry import Registry
from procedures.service.watched_tables import SparkTables, Tables
from procedures.service.workers import Spawn, Workers, spawn_thread

logger = logging.getLogger(__name__)

# Every so many looks nothing is taken for granted: another process may have made a table again at the same place.
FULL_LOOK_EVERY = 10
# A service whose Spark is gone has nothing to wait for.
_SECONDS_FOR_PREDECESSOR = 5
CHANGED, DROPPED, RENAMED = "changed", "dropped", "renamed"
SUSPENDED, RESUMED = "suspended", "resumed"


@dataclass(frozen=True)
class Told:
    """A change of which somebody in this process told: the fast path, beside looking.

    Attributes:
        kind: ``changed``, ``dropped``, ``renamed``, ``suspended`` or ``resumed``.
        name: full name of the table.
        location: its root, '' where it is not known.
        before: its name before it was renamed.
    """

    kind: str
    name: str
    location: str = ""
    before: str = ""


class Service:
    """Optimizes tables as their properties ask for, until it is stopped.

    Args:
        spark: session of the application; the service works in a session of its own.
        tables: names or paths of the tables to care for; the whole catalog when left out.
        clock: the time; that of the application when left out.
        app: where the states of its tables show; the application of the process when left out.
        engine: what touches the tables.
        source: what knows the tables.
        spawn: starts a thread.

    Raises:
        TableError: one of ``tables`` is not there, or not a Delta table.
        InvalidArgumentError: a setting of the service is not accepted.
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
    ) -> None:
        self._spark = spark
        self._settings = ServiceSettings.of(spark.conf.get)
        own = background_session(spark) if engine is None or source is None else spark
        self._own = own
        app = app or application()
        self._clock = clock or app.clock
        self._tables = source or SparkTables(own, tables)
        self._told: deque[Told] = deque()
        self._registry = Registry()
        self._wake = threading.Event()
        self._ending = threading.Event()
        self._workers = Workers(engine or SparkEngine(own, app), self._clock, app.automations, self._wake.set, spawn)
        self._workers.quiet = lambda: not self.is_alive
        self._thread: threading.Thread | None = None
        self._looks = 0
        self._paused = False

    # ----------------------------------------------------------------------------------------------- start and stop

    def start(self) -> None:
        """Starts the loop in the background, and listens to what this process does to its tables."""
        with _lock:
            _started.append(self)
        ShimBridge(self._spark).listen(True)
        self._thread = threading.Thread(target=self._loop, name="use-service", daemon=True)
        self._thread.start()

    def stop(self, wait: float | None = None) -> bool:
        """Ends the loop, and the runs that are under way at their next boundary between groups.

        Args:
            wait: seconds to wait for each at most; as long as it takes when left out.

        Returns:
            Whether everything has ended.
        """
        self._ending.set()
        self._wake.set()
        with _lock:
            _started[:] = [service for service in _started if service is not self]
            alone = not _started
        if alone and self.is_alive:
            ShimBridge(self._spark).listen(False)
        self._workers.stop_all("SERVICE_STOPPED", "the optimization service was stopped")
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(wait)
            # The round that was under way may have started another one.
            self._workers.stop_all("SERVICE_STOPPED", "the optimization service was stopped")
        return self._workers.join(wait)

    @property
    def is_alive(self) -> bool:
        """Whether its SparkContext runs."""
        return is_running(self._spark)

    def tell(self, told: Told) -> None:
        """Takes notice of a change, and wakes the loop; returns at once."""
        self._told.append(told)
        self._wake.set()

    def join(self, seconds: float | None = None) -> bool:
        """Waits for the runs that are under way; whether all have ended.

        Args:
            seconds: at most so long per run; as long as it takes when left out.
        """
        return self._workers.join(seconds)

    # ------------------------------------------------------------------------------------------------------- rounds

    def tick(self, look: bool = True) -> None:
        """One round: takes notice of changes, applies what they ask for, starts the runs that are due.

        Args:
            look: whether to look at the tables, as every listener interval.
        """
        self._settings = ServiceSettings.of(self._spark.conf.get)
        if not self._settings.enabled:
            self._pause()
            return
        self._paused = False
        actions: list[Action] = []
        while self._told:
            actions += self._guarded(partial(self._heard, self._told.popleft()))
        if look:
            # A metastore that is away is no reason to leave known tables alone.
            actions += self._guarded(self._look)
            self._workers.look_for_suspensions()
        for action in actions:
            self._guarded(partial(_apply, action, self._workers))
        for table in self._registry.tables():
            self._workers.seen(table.name, table.location, table.version)
        self._workers.start_due(self._settings)

    def _guarded(self, step: Callable[[], list[Action]]) -> list[Action]:
        """The actions of a step of a round, none when it failed: one table's trouble is not that of the others."""
        try:
            return step()
        except Exception as error:  # noqa: BLE001
            self._report(error)
            return []

    def _pause(self) -> None:
        if not self._paused:
            self._paused = True
            self._registry = Registry()
            self._workers.stop_all("SERVICE_DISABLED", "the optimization service was switched off")
        self._told.clear()

    def _look(self) -> list[Action]:
        full = self._looks % FULL_LOOK_EVERY == 0
        self._looks += 1
        listed = self._tables.listed()
        actions = self._registry.keep_only(listed)
        sightings = self._tables.look(self._registry.questions(listed, full))
        return actions + self._registry.take(listed, sightings, full)

    def _heard(self, told: Told) -> list[Action]:
        place = self._tables.add(told.name, told.location) if told.location else None
        if told.kind in (SUSPENDED, RESUMED):
            if place is not None:
                self._workers.suspension_changed(place, told.kind == SUSPENDED)
            return []
        name = told.before or told.name
        known = self._registry.location_of(name)
        actions: list[Action] = []
        if told.kind in (DROPPED, RENAMED) and known is not None and known != place:
            actions += self._registry.keep_only(t.location for t in self._registry.tables() if t.location != known)
        if place is not None:
            one = {place: told.name}
            actions += self._registry.take(one, self._tables.look(self._registry.questions(one, True)))
        return actions

    # --------------------------------------------------------------------------------------------------------- loop

    def _loop(self) -> None:
        try:
            prepare_thread(self._own, self._settings.pool)
        except Exception as error:  # noqa: BLE001 - Spark may be gone already
            self._report(error)
        next_look = self._clock.now()
        while not self._ending.is_set() and self.is_alive:
            self._wake.clear()
            look = self._clock.now() >= next_look
            if look:
                next_look = self._clock.now() + self._settings.listener_interval
            try:
                self.tick(look)
            except Exception as error:  # noqa: BLE001 - the service goes on, whatever happens in a round
                self._report(error)
            self._clock.wait(self._wake, self._seconds_until(next_look))
        # Where Spark was stopped, nobody has asked the workers to end.
        self._workers.stop_all("SERVICE_STOPPED", "the optimization service was stopped")

    def _seconds_until(self, next_look: int) -> float:
        due = self._workers.next_due()
        now = self._clock.now()
        soon = next_look if due is None or due <= now else min(next_look, due)
        return max(soon - now, 1) / 1000

    def _report(self, error: Exception) -> None:
        if not self.is_alive or self._ending.is_set():
            return
        known = known_error(error)
        logger.warning("The optimization service goes on after an error: %s: %s", known.code, known.message)


def _apply(action: Action, workers: Workers) -> list[Action]:
    action.apply(workers)
    return []


_lock = threading.Lock()
_started: list[Service] = []
# The one that attaching has started.
_current: list[Service] = []


def current() -> Service | None:
    """The service that attaching has started, None without one."""
    with _lock:
        found = _current[-1] if _current else None
    return found if found is not None and found.is_alive else None


def start_current(make: Callable[[], Service]) -> Service:
    """Starts the service of the attached application, unless it runs; one whose Spark is gone is replaced."""
    found = current()
    if found is not None:
        return found
    stop_current(_SECONDS_FOR_PREDECESSOR)
    made = make()
    with _lock:
        _current[:] = [made]
    made.start()
    return made


def stop_current(wait: float | None = None) -> None:
    """Stops the service of the attached application, if there is one."""
    with _lock:
        found = _current.pop() if _current else None
    if found is not None:
        found.stop(wait)


def tell(told: Told) -> None:
    """Tells the services of this process of a change; returns at once."""
    with _lock:
        services = list(_started)
    for service in services:
        service.tell(told)
