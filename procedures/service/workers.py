"""All workers of the service, and their runs, each in its own thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TypeVar

from catalog.clock import Clock
from catalog.errors import UseError
from catalog.properties.fleet_properties import Pool
from catalog.state import automation
from catalog.state.automation import Automation, Automations
from catalog.system_tables.system_table import error_text
from procedures.declare.runs import AUTOMATIC, Run
from procedures.fleet.appraisal import Appraisal
from procedures.fleet.budget import RunBudget
from procedures.fleet.offer import Offer
from procedures.service.cluster_load import ClusterLoad
from procedures.service.ended_run import RunReports
from procedures.service.execution import Engine, Turn
from procedures.service.schedule import Schedule
from procedures.service.service_settings import ServiceSettings
from procedures.service.table_checks import TableChecks
from procedures.service.turn_questions import DueTurn, TurnQuestions, next_asked
from procedures.service.turn_result import EndedTurn, TurnResult, run_turn
from procedures.service.turns import next_turns
from procedures.service.worker import Worker

logger = logging.getLogger(__name__)

_Outcome = TypeVar("_Outcome")
# Tables that are appraised at the same time; each is planned, and nothing is rewritten.
_APPRAISALS = 4
# A budget that does not say when it may allow more, and a lease of another process, are asked again after this time:
# a service that was killed is replaced within a minute.
_RETRY_MILLIS = 10_000
# So long a round begins to ask tables whether a run may start.
_CHECKING_SECONDS = 10.0
Spawn = Callable[[str, Callable[[], None]], threading.Thread | None]


def spawn_thread(name: str, work: Callable[[], None]) -> threading.Thread:
    """Starts a thread that does not keep the process alive."""
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


class Workers:
    """The workers by location.

    Args:
        engine: accesses the tables.
        clock: provides the time.
        automations: stores the states of the tables.
        wake: called when a run has ended.
        spawn: starts a thread.
        reports: reports the runs that have ended.
    """

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        automations: Automations,
        wake: Callable[[], None],
        spawn: Spawn,
        reports: RunReports,
    ) -> None:
        self._automations = automations
        self._engine = engine
        self._clock = clock
        self._wake = wake
        self._spawn = spawn
        self._reports = reports
        self._lock = threading.RLock()
        self._workers: dict[str, Worker] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._interval = ServiceSettings().optimization_interval
        self._ledger_folder: str | None = None
        self._questions = TurnQuestions(
            TableChecks(engine, ServiceSettings().pool), clock, self._interval, self._present
        )

    # ---------------------------------------------------------------------------------------- what actions ask for

    def start(self, name: str, location: str, schedule: Schedule, version: int) -> None:
        """Starts the worker of a table, or replaces its schedule; a worker that ends with its run is replaced then."""
        with self._lock:
            worker = self._workers.get(location)
            if worker is None:
                worker = Worker(name, location, schedule, self._clock.now(), self._automations)
                self._workers[location] = worker
                worker.version = version
                worker.publish()
                return
            worker.name, worker.version = name, version
            worker.change(schedule, self._clock.now())

    def stop(self, location: str, code: str, why: str) -> None:
        """Ends the worker of a table; its current run stops at the next boundary between groups."""
        with self._lock:
            worker = self._workers.get(location)
            if worker is None:
                self._automations.remove(location)
            elif worker.run is not None:
                worker.ends_with_run, worker.next_schedule, worker.failures.error = True, None, None
                worker.run.request_stop(code, why)
            else:
                del self._workers[location]
                self._automations.remove(location)

    def refuse(self, name: str, location: str, strategies: str, error: UseError) -> None:
        """Ends the worker of a table with invalid properties; the error remains visible."""
        with self._lock:
            self.stop(location, "PROPERTIES_CHANGED", "the table's properties are invalid")
            worker = self._workers.get(location)
            text = error_text(error)
            if worker is not None:
                worker.failures.error = text
                return
            names = tuple(part.strip() for part in strategies.split(",") if part.strip())
            self._automations.put(Automation(name, location, automation.FAILED, names, last_error=text))

    def update(
        self, name: str, location: str, version: int, database: str | None = None, pools: tuple[Pool, ...] = ()
    ) -> None:
        """Updates the name, the newest version and the budgets of a table."""
        with self._lock:
            worker = self._workers.get(location)
            if worker is None:
                return
            renamed = worker.name != name
            worker.database = database
            worker.share(pools)
            # A run that has just ended may have committed newer versions.
            worker.name, worker.version = name, max(version, worker.version or 0)
            if renamed:
                worker.publish()

    def suspension_changed(self, location: str, suspended: bool) -> None:
        """Records a suspension or its end."""
        with self._lock:
            worker = self._workers.get(location)
            if worker is None:
                return
            if suspended:
                worker.suspend(self._clock.now(), self._interval)
                if worker.run is not None:
                    worker.run.request_stop("SUSPENDED", "automatic optimization of the table was suspended")
            else:
                worker.resume(self._clock.now())

    # -------------------------------------------------------------------------------------------------------- runs

    def start_due(self, settings: ServiceSettings) -> None:
        """Starts runs of due tables, up to the limit; tables that have waited longest come first."""
        now = self._clock.now()
        self._interval, self._ledger_folder = settings.optimization_interval, settings.fleet_location
        checks = replace(self._questions.checks, pool=settings.pool)
        self._questions = replace(self._questions, checks=checks, interval=self._interval)
        with self._lock:
            for worker in self._workers.values():
                worker.limit_pauses(now, self._interval)
                worker.stop_after_hours(now)
            due = sorted((w for w in self._workers.values() if w.is_due(now)), key=lambda w: (w.due_at, w.name))
            due = [worker for worker in due if not worker.waits_for_hours(now)]
            idle = [worker for worker in self._workers.values() if worker.run is None]
            free = settings.max_tables - self._running(now)
            turns = next_turns(due, idle, free, now, self._interval)
        started = [(worker, worker.startable_strategies(now)) for worker in turns.start]
        self._start_some([*((worker, ()) for worker in turns.maintain), *started], free, turns.is_ranked, settings)
        self._appraise_some([worker for worker in turns.appraise if worker.is_due(now)], settings)
        with self._lock:
            still_due = set(due)
            waiting = any(w.run is None and (w.is_appraising or w in still_due) for w in idle)
            if waiting and self._running(now) >= settings.max_tables:
                self._make_room(now)

    def _start_some(self, turns: Sequence[DueTurn], free: int, is_ranked: bool, settings: ServiceSettings) -> None:
        """Starts runs, each with the strategies that may start; a few tables are asked at the same time."""
        now, begun = self._clock.now(), self._clock.monotonic()
        load: ClusterLoad | None = None
        left = turns
        if any(worker.wait is not None for worker, _ in turns):
            load = self._load(settings)
            if load.is_busy:
                # Those that wait for the cluster are asked again after all others. Statements may end a wait meanwhile.
                with self._lock:
                    left = sorted(turns, key=lambda turn: 0 if turn[0].wait is None else turn[0].wait.since)
        while left and free > 0:
            if self._clock.monotonic() - begun >= _CHECKING_SECONDS:
                # The loop must look at the tables again; then it goes on.
                if any(worker.wait is None for worker, _ in left):
                    self._wake()
                return
            asked = next_asked(left, free, now)
            left = left[len(asked) :]
            for worker, strategies, maintenance in self._questions.startable(asked, now):
                if free > 0:
                    # Other jobs are counted once in a round, and only if a run has something to do.
                    load = self._load(settings) if load is None else load
                    free -= self._begins(worker, strategies, maintenance, settings.pool, load, is_ranked=is_ranked)

    def stop_suspended_runs(self) -> None:
        """Stops the runs of tables that another process has suspended."""
        with self._lock:
            running = [worker for worker in self._workers.values() if worker.run is not None]
        suspended = self._questions.checks.suspended([worker.location for worker in running])
        for worker in running:
            answer = suspended.get(worker.location, False)
            if isinstance(answer, Exception):
                logger.warning("%s: cannot determine whether it is suspended: %s", worker.name, error_text(answer))
            elif answer:
                self.suspension_changed(worker.location, True)

    def next_due(self) -> int | None:
        """Returns when the next worker is due by the interval, epoch milliseconds."""
        with self._lock:
            times = [w.due_at for w in self._workers.values() if w.run is None and not w.by_triggers]
        return min(times, default=None)

    @contextmanager
    def _present(self, worker: Worker) -> Iterator[bool]:
        """Holds the lock, and says whether the worker was not removed during a check of its table."""
        with self._lock:
            yield self._workers.get(worker.location) is worker

    def _load(self, settings: ServiceSettings) -> ClusterLoad:
        """The load of the cluster; an idle one if it cannot be determined."""
        try:
            queue = self._engine.queue(settings.pool)
        except Exception as error:  # noqa: BLE001 - runs do not depend on it
            logger.warning("Cannot determine whether the cluster is busy: %s", error_text(error))
            return ClusterLoad(0, 0)
        limit = settings.max_queued_tasks
        return ClusterLoad(queue.tasks, queue.cores if limit is None else limit)

    def _checked(self, worker: Worker, check: Callable[[], _Outcome]) -> _Outcome | None:
        """The result of a check of a table; None if it failed, which the state of the table shows."""
        try:
            return check()
        except Exception as error:  # noqa: BLE001 - an error of one table must not affect others
            with self._present(worker) as is_present:
                if is_present:
                    worker.record_failed_check(error_text(error), self._clock.now(), self._interval)
            return None

    def _running(self, now: int) -> int:
        """How many runs are under way, apart from those without progress for too long."""
        return sum(worker.run is not None and not worker.hangs(now) for worker in self._workers.values())

    def _appraise_some(self, workers: Sequence[Worker], settings: ServiceSettings) -> None:
        """Finds out what tables offer, a few at a time, each in a thread of its own."""
        now = self._clock.now()
        with self._lock:
            busy = sum(w.is_appraising and not w.hangs(now) for w in self._workers.values())
            chosen = workers[: max(0, _APPRAISALS - busy)]
            for worker in chosen:
                worker.begin_appraisal(now)
        for worker in chosen:
            appraise = partial(self._appraise, worker, settings.pool)
            self._checked(worker, partial(self._spawn, "use-appraise", appraise))

    def _appraise(self, worker: Worker, pool: str) -> None:
        now = self._clock.now()
        budget = self._budget(worker)

        def check() -> Appraisal | None:
            if not self._questions.may_start(worker, now):
                return None
            if worker.asks(now):
                return Appraisal(worker.version or 0, Offer.asked(budget.group_bytes or 1))
            known = worker.place.appraisal
            is_same = known is not None and known.version == worker.version and worker.knows_kind_of_offer(now)
            if is_same and not self._engine.read_since(worker.location, worker.place.appraised_at):
                return known
            strategies = worker.due_strategies(now)
            run = Run(worker.name, worker.location, AUTOMATIC, worker.schedule.parameters, now)
            return self._engine.appraise(run, worker.schedule.only(strategies), pool, budget.group_bytes)

        appraisal = self._checked(worker, check)
        with self._present(worker) as is_present:
            if appraisal is not None and is_present:
                worker.end_appraisal(appraisal, self._clock.now(), self._interval)
            worker.is_appraising = False
        self._wake()

    def _budget(self, worker: Worker) -> RunBudget:
        ledger = partial(self._engine.ledger, self._ledger_folder)
        exhausted = partial(self._reports.budget_used_up, worker.name)
        return RunBudget(ledger, worker.pools, worker.database, self._clock, exhausted)

    def _begins(
        self,
        worker: Worker,
        strategies: Collection[str],
        maintenance: Collection[str],
        pool: str,
        load: ClusterLoad,
        *,
        is_ranked: bool,
    ) -> bool:
        """Begins a run, unless it waits for the cluster or the worker was removed during the checks of its table."""
        now = self._clock.now()
        with self._present(worker) as is_present:
            if not is_present or worker.waits_for(load, now, self._interval):
                return False
            turn = Turn(self._budget(worker), worker.place.appraisal if is_ranked and strategies else None)
            run, schedule = worker.begin(now, strategies), worker.schedule.only(strategies)
        work = partial(self._work, worker, run, schedule, maintenance, pool, turn)
        try:
            thread = self._spawn(f"use-optimize-{run.run_id}", work)
        except Exception as error:  # noqa: BLE001 - a run without a thread would never end
            text = error_text(error)
            failed = TurnResult(error=text) if schedule.strategies else TurnResult(maintenance_errors=(text,))
            self._end_run(worker, EndedTurn(run, turn, failed))
            return True
        if thread is not None and thread.is_alive():
            with self._lock:
                self._threads[run.run_id] = thread
        return True

    def _work(
        self, worker: Worker, run: Run, schedule: Schedule, maintenance: Collection[str], pool: str, turn: Turn
    ) -> None:
        result = run_turn(self._engine, run, schedule, maintenance, pool, turn)
        self._end_run(worker, EndedTurn(run, turn, result))

    def _end_run(self, worker: Worker, ended: EndedTurn) -> None:
        """Reports and records the end of a run."""
        self._reports.ended(worker.name, ended)
        with self._lock:
            self._threads.pop(ended.run.run_id, None)
            if worker.ends_with_run:
                self._leave(worker)
            else:
                worker.end(ended, self._clock.now(), min(self._interval, _RETRY_MILLIS), self._interval)
        self._wake()

    def _leave(self, worker: Worker) -> None:
        self._workers.pop(worker.location, None)
        worker.run = None
        if worker.next_schedule is not None:
            # Another table may be at this place: versions and runs of the former one mean nothing to it.
            version = worker.version or 0
            self.start(worker.name, worker.location, worker.next_schedule, version)
            self.update(worker.name, worker.location, version, worker.database, worker.pools)
        elif worker.failures.error is None:
            self._automations.remove(worker.location)
        else:
            worker.publish()

    def _make_room(self, now: int) -> None:
        """Stops runs that have used up their interval at the next boundary, because other tables wait."""
        with self._lock:
            for worker in self._workers.values():
                if worker.run is not None and now - worker.run.started_at >= self._interval:
                    worker.run.request_stop("YIELDED", "other tables are waiting")

    # --------------------------------------------------------------------------------------------------------- end

    def stop_all(self, code: str, why: str) -> None:
        """Ends every worker."""
        with self._lock:
            for location in list(self._workers):
                self.stop(location, code, why)

    def join(self, seconds: float | None = None) -> bool:
        """Waits for the current runs and returns whether all have ended.

        Args:
            seconds: maximum time per run; unlimited by default.
        """
        with self._lock:
            threads = list(self._threads.values())
        for thread in threads:
            thread.join(seconds)
        return not any(thread.is_alive() for thread in threads)
