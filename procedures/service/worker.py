"""The worker of a table: when its next run is due, the outcome of the last one, and its published state."""

from __future__ import annotations

from collections.abc import Collection

from catalog.properties.fleet_properties import Pool
from catalog.properties.lifecycle_properties import Pace
from catalog.properties.optimization_properties import Triggers
from catalog.state import automation
from catalog.state.automation import Automation, Automations
from procedures.declare.runs import AUTOMATIC, Run
from procedures.fleet.appraisal import Appraisal
from procedures.service.asked_turns import AskedTurns
from procedures.service.cluster_load import ClusterLoad, Wait
from procedures.service.failure_streak import LONGEST_PAUSE_MILLIS, FailureStreak
from procedures.service.last_runs import LastRuns
from procedures.service.queue_place import MOST_DOUBLINGS_OF_LOOKS, QueuePlace
from procedures.service.schedule import Schedule
from procedures.service.turn_result import EndedTurn, TurnResult

# Rows are compared so often at most if the owner lists the strategy without a pace, and bytes are limited.
_PACE_OF_ASKED = Pace(interval=3_600_000)
HANGING_MILLIS = 3_600_000
"""Other tables do not wait for a run without any progress for so long."""


class Worker:
    """The schedule of a table and its current run. It decides when to run and accesses no table.

    It is not thread-safe: ``Workers`` calls it under its lock.

    Args:
        name: full name of the table.
        location: its root, which identifies the worker.
        schedule: the strategies to run.
        now: epoch milliseconds; the first run is due at once.
        automations: stores the state of the table.
    """

    def __init__(self, name: str, location: str, schedule: Schedule, now: int, automations: Automations) -> None:
        self._automations = automations
        self.name = name
        self.location = location
        self.schedule = schedule
        self.due_at = now
        """When the next run of strategies may start, unless triggers start it."""
        self.maintains_at = now
        """When the next maintenance may start; a table that waits for a budget is maintained all the same."""
        self.run: Run | None = None
        self.version: int | None = None
        """Newest known version."""
        self.settled: int | None = None
        """Version at which a run found nothing more to do."""
        self.measured: int | None = None
        """Version at which the triggers were last evaluated."""
        self.last_run: int | None = None
        self.failures = FailureStreak("attempts")
        """Runs of strategies and checks that failed."""
        self.asked_turns = AskedTurns()
        """What the owner asks for, where it has turns of its own."""
        self.maintenance_failures = FailureStreak("attempts at maintenance")
        """Runs whose maintenance failed, which delays no strategies."""
        self.skipped_note = ""
        """The files that the last run skipped and why, for display."""
        self.retries = False
        """Whether the next run is considered after the interval, although nothing was committed."""
        self.has_rest = False
        """Whether the last run left something to do, for which the next one needs no trigger."""
        self.suspended = False
        self.wait: Wait | None = None
        """The wait of a due run for the cluster."""
        self.database: str | None = None
        self.pools: tuple[Pool, ...] = ()
        """The budgets that the table shares with others."""
        self.place = QueuePlace()
        """What the table offers for its next turn, and since when it waits."""
        self.is_appraising = False
        self._strategies_failed = False
        """Whether the last run of strategies failed, which neither maintenance nor a plan mends."""
        self._progress = now, ""
        """When it was last seen what the run does, and what that was."""
        self.is_outside_hours = False
        """Whether a due run waits for the hours in which runs may start."""
        self.next_schedule: Schedule | None = None
        """The schedule after the current run, if the properties changed during it."""
        self.ends_with_run = False
        """Whether the worker ends with the current run; with a next schedule, a new worker takes its place."""
        self._running: frozenset[str] = frozenset()
        """The strategies of the current run, or of the last one."""
        self._last_runs = LastRuns()

    # ------------------------------------------------------------------------------------------------- what to do next

    def is_due(self, now: int) -> bool:
        """Whether the conditions of a run have to be checked."""
        if self.run is not None or self.is_appraising:
            return False
        return self._is_time(now) or bool(self.due_maintenance(now))

    def _is_time(self, now: int) -> bool:
        """Whether strategies may start, as far as intervals and changes of the table decide."""
        # What a comparison has left needs no trigger.
        retries = self.retries or (self.asked_turns.has_rest and self.asks(now))
        if self.by_triggers and not retries and not self.suspended:
            # Triggers are evaluated whenever the table changed.
            return self.version != self.settled and self.version != self.measured
        return now >= self.due_at

    @property
    def by_triggers(self) -> bool:
        """Whether triggers start its runs instead of the interval."""
        return self.schedule.triggers.any

    def next_triggers(self, now: int) -> Triggers:
        """The triggers of its next turn; own commits of a run that has ended early would count as an optimization."""
        has_rest = self.asked_turns.has_rest if self.asks(now) else self.has_rest
        return Triggers() if has_rest else self.schedule.triggers

    @property
    def is_settled(self) -> bool:
        """Whether nothing was committed to the table since a run found nothing more to do."""
        return self.settled is not None and self.version == self.settled

    def due_strategies(self, now: int) -> tuple[str, ...]:
        """Returns the strategies that may run: all without a pace, and those whose pace is met.

        In a table with a budget of bytes, what the owner asks for has turns of its own, which come first.
        """
        asked = self.schedule.asked if self.has_byte_limit else frozenset()
        paces = {
            name: self.schedule.paces.get(name, _PACE_OF_ASKED if name in asked else None)
            for name in self.schedule.strategies
        }
        due = self._last_runs.due(paces, now, self.version or 0)
        if not self.asked_turns.may_start(now, self.version):
            due = tuple(name for name in due if name not in asked)
        return tuple(name for name in due if name in asked) or due

    def asks(self, now: int) -> bool:
        """Whether its next turn is one that the owner asks for, and that nobody plans beforehand."""
        return self.has_byte_limit and not self.schedule.asked.isdisjoint(self.due_strategies(now))

    def knows_offer(self, now: int, interval: int) -> bool:
        """Whether it is known what the next turn offers; see ``QueuePlace.is_known``."""
        return self.knows_kind_of_offer(now) and self.place.is_known(self.version or 0, now, interval)

    def knows_kind_of_offer(self, now: int) -> bool:
        """Whether the offer that is known is one of the next turn: only with a budget are there two kinds of turns."""
        offer = self.place.offer
        return offer is not None and (not self.has_byte_limit or offer.is_asked == self.asks(now))

    def startable_strategies(self, now: int) -> tuple[str, ...]:
        """Returns the strategies that may start now; none if the table is only due for maintenance."""
        return self.due_strategies(now) if self._is_time(now) else ()

    def due_maintenance(self, now: int) -> tuple[str, ...]:
        """Returns the maintenance that is due."""
        if now < self.maintains_at:
            return ()
        return self._last_runs.due(self.schedule.maintenance_paces, now, self.version or 0)

    def limit_pauses(self, now: int, interval: int) -> None:
        """Shortens pauses that are longer than any that a worker makes: the clock was set back since they began.

        Args:
            now: epoch milliseconds.
            interval: time between the starts of two runs, milliseconds.
        """
        longest = max(interval << MOST_DOUBLINGS_OF_LOOKS, LONGEST_PAUSE_MILLIS, *(p.period for p in self.pools))
        before, latest = (self.due_at, self.maintains_at), now + longest
        self.due_at, self.maintains_at = min(self.due_at, latest), min(self.maintains_at, latest)
        self.asked_turns.paused_until = min(self.asked_turns.paused_until, latest)
        if (self.due_at, self.maintains_at) != before:
            self.publish()

    def skip_turn(self, now: int, interval: int) -> None:
        """Skips this turn."""
        self.wait = None
        self.due_at = now + interval
        self.publish()

    def waits_for(self, load: ClusterLoad, now: int, interval: int) -> bool:
        """Whether a due run waits for the cluster, for one interval at most; the state of the table shows it.

        Args:
            load: the load of the cluster.
            now: epoch milliseconds.
            interval: time between the starts of two runs, milliseconds.
        """
        since = now if self.wait is None else min(self.wait.since, now)
        if not load.is_busy or now - since >= interval:
            return False
        self.wait = Wait(since, since + interval, load)
        self.publish()
        return True

    def waits_for_hours(self, now: int) -> bool:
        """Whether a due run waits for the hours in which runs may start; the state of the table shows it.

        Args:
            now: epoch milliseconds.
        """
        hours = self.schedule.hours
        was_outside, self.is_outside_hours = self.is_outside_hours, hours is not None and not hours.contains(now)
        if hours is not None and self.is_outside_hours:
            begin = hours.next_begin(now)
            self.due_at, self.maintains_at = max(self.due_at, begin), begin
        if self.is_outside_hours or was_outside:
            self.publish()
        return self.is_outside_hours

    def stop_after_hours(self, now: int) -> None:
        """Stops the current run at the next boundary if the hours in which runs may start have ended.

        Args:
            now: epoch milliseconds.
        """
        hours = self.schedule.hours
        if self.run is not None and hours is not None and not hours.contains(now):
            self.run.request_stop("OUTSIDE_HOURS", f"the hours of runs, {hours}, have ended")

    def begin_appraisal(self, now: int) -> None:
        """Records that somebody is judging what the table offers."""
        self.is_appraising = True
        self._progress = now, ""

    def hangs(self, now: int) -> bool:
        """Whether the run, or the appraisal, has made no progress for too long, so that others do not wait for it.

        Args:
            now: epoch milliseconds.
        """
        run = self.run
        seen = "" if run is None else f"{run.run_id} {run.committed} {run.current}"
        if seen != self._progress[1]:
            self._progress = now, seen
        return now - self._progress[0] >= HANGING_MILLIS

    def end_appraisal(self, appraisal: Appraisal, now: int, interval: int) -> None:
        """Records what the table offers for its next turn.

        Args:
            appraisal: what it offers.
            now: epoch milliseconds.
            interval: time between the starts of two runs, milliseconds.
        """
        self.is_appraising = False
        if appraisal.offer is None or not self._strategies_failed:
            self._succeeded()
        if appraisal.offer is None:
            self.place.appraisal = self.place.waits_since = None
            # A pace that was met meanwhile is that of a turn of its own.
            strategies = () if self.asks(now) else self.due_strategies(now)
            done = self.schedule.asked if self.asked_turns.settled == appraisal.version else frozenset()
            if appraisal.is_settled and done.union(strategies).issuperset(self.schedule.strategies):
                self.settled, self.retries = appraisal.version, False
            self.has_rest = self.has_rest and not appraisal.is_settled
            # A run would have found nothing.
            self._last_runs.record(strategies, now, appraisal.version)
            self.skip_turn(now, interval)
            return
        self.place.offers(appraisal, now)
        if not appraisal.offer.is_worthwhile and self.has_byte_limit:
            # What the owner asks for does not wait until this offer is looked at again.
            self.due_at = now + (interval if self.schedule.asked else self.place.pause(interval))
        self.publish()

    def share(self, pools: tuple[Pool, ...]) -> None:
        """Sets the budgets that the table shares; without a limit of bytes, the owner's turns are like all others."""
        self.pools = pools
        if self.asked_turns.failures.count and not self.has_byte_limit:
            self.asked_turns = AskedTurns()

    @property
    def has_byte_limit(self) -> bool:
        """Whether the table shares a budget of bytes."""
        return any(pool.max_bytes is not None for pool in self.pools)

    def record_not_reached(self, version: int | None, now: int) -> None:
        """Records that no trigger was reached; the next commit may reach one.

        Args:
            version: the newest one that was known when the table was asked.
            now: epoch milliseconds.
        """
        self.wait = self.failures.error = None
        if self.has_rest and self.asks(now):
            # What the others have left needs no trigger.
            self.asked_turns.not_reached = version
        else:
            self.measured, self.retries = version, False
        self.publish()

    def record_failed_check(self, error: str, now: int, interval: int) -> None:
        """Records that the table could not be read."""
        self.is_appraising = False
        self.retries = True
        self.failures.add(error)
        self.skip_turn(now, self.failures.pause(interval))
        self.maintains_at = max(self.maintains_at, self.due_at)

    def change(self, schedule: Schedule, now: int) -> None:
        """Replaces the schedule: at once if idle, otherwise after the current run."""
        if self.run is not None:
            self.next_schedule = schedule
            return
        self.schedule = schedule
        self._leave_queue()
        self._succeeded()
        self.maintenance_failures.end()
        self.asked_turns = AskedTurns()
        self.settled = self.measured = None
        self.skipped_note = ""
        self.retries = self.has_rest = self.suspended = self.is_outside_hours = False
        self.due_at = self.maintains_at = now
        self.publish()

    def suspend(self, now: int, interval: int) -> None:
        """Records that the table is suspended. It does not keep its place among the tables that wait for a budget.

        Args:
            now: epoch milliseconds.
            interval: milliseconds until the next check whether it is suspended.
        """
        self.suspended = True
        self._leave_queue()
        self.due_at = self.maintains_at = now + interval
        self.publish()

    def resume(self, now: int) -> None:
        """Records the end of a suspension; the next run may start at once.

        Args:
            now: epoch milliseconds.
        """
        self.suspended, self.measured = False, None
        self.due_at = self.maintains_at = now
        self.publish()

    def _succeeded(self) -> None:
        self.failures.end()
        self._strategies_failed = False

    def _leave_queue(self) -> None:
        self.wait = None
        self.place.leave()

    # ----------------------------------------------------------------------------------------------------------- a run

    def begin(self, now: int, strategies: Collection[str]) -> Run:
        """Starts a run of some of the strategies; one without any, for maintenance, does not take the table's turn."""
        self._running = frozenset(strategies)
        self.wait = None
        if strategies:
            self.place.begin_turn()
            self.due_at = now
        self.run = Run(self.name, self.location, AUTOMATIC, self.schedule.parameters, now)
        self.publish()
        return self.run

    def end(self, ended: EndedTurn, now: int, retry: int, interval: int) -> None:
        """Ends the current run; the state of the table shows what it waits for.

        Args:
            ended: the run.
            now: epoch milliseconds.
            retry: milliseconds until the next attempt, where another process or a budget does not say when it may
                succeed.
            interval: time between the starts of two runs, milliseconds.
        """
        outcome = ended.result.outcome
        started = now if self.run is None else min(self.run.started_at, now)
        self.run = None
        self.last_run = now
        self.skipped_note = outcome.note
        if outcome.settled is not None:
            self.version = max(self.version or 0, outcome.settled)
        self._record_ended(ended, started, now)
        if self.next_schedule is not None:
            schedule, self.next_schedule = self.next_schedule, None
            self.change(schedule, now)
            return
        # After a run that takes longer than the interval, the waiting tables run first: they have been due for longer.
        next_start = max(started + interval, now)
        self._end_maintenance(ended.result, now, interval)
        self.maintains_at = max(self.maintains_at, next_start)
        if self._running:
            self._end_strategies(ended, next_start, now, retry, interval)
        else:
            if not self._strategies_failed:
                self._succeeded()
            if ended.refusal is not None and not self.suspended:
                self.maintains_at = now + retry
        if ended.found_lease:
            self.due_at = min(self.due_at, now + retry)
        self.publish()

    def _record_ended(self, ended: EndedTurn, started: int, now: int) -> None:
        """Records what has run, for the paces."""
        version, is_complete = self.version or 0, ended.result.outcome.is_complete
        self._last_runs.record(ended.result.maintained, started, version)
        if is_complete:
            self._last_runs.record(self._running, started, version)
        elif self._is_asked_turn and (ended.rewritten or ended.is_too_large):
            # One comparison for each pace: what is left follows in the next one, and other strategies have their turn.
            self._last_runs.record(self._running, now, version)

    def _end_strategies(self, ended: EndedTurn, next_start: int, now: int, retry: int, interval: int) -> None:
        """Records the end of a run that took the table's turn; see ``end``."""
        error, settled, is_asked = ended.result.error, ended.result.outcome.settled, self._is_asked_turn
        self.due_at = max(self.due_at, next_start)
        if is_asked:
            if (ended.rewritten or ended.refusal is None) and not ended.found_lease:
                self.asked_turns.end(ended, now, interval)
        elif error is not None:
            self._strategies_failed = True
            self.failures.add(error)
            self.due_at = max(self.due_at, now + self.failures.pause(interval))
        else:
            self._succeeded()
        # The strategies whose pace was not met may have something to do.
        self.settled = settled if self._running.issuperset(self.schedule.strategies) else None
        # One trigger starts the turn that the owner asks for and that of the others, if there are any.
        self.retries = self.settled is None
        self.has_rest = settled is None or (is_asked and self.retries)
        self.measured = None
        if self.suspended:
            return
        has_rewritten_offer = self.place.end_turn(ended.refusal, ended.rewritten)
        if ended.refusal is not None:
            self.due_at = max(now + 1, ended.refusal.until or now + (interval if ended.is_too_large else retry))
            if not self.maintenance_failures.count:
                self.maintains_at = min(self.maintains_at, self.due_at)
            self.retries = True
        elif self.failures.error is None and (has_rewritten_offer or (is_asked and not self.asks(now))):
            # Others may be worth more now; if not, it goes on at once.
            self.due_at = now

    @property
    def _is_asked_turn(self) -> bool:
        """Whether the current run, or the last one, is a turn that the owner asks for."""
        return self.has_byte_limit and bool(self._running) and self._running <= self.schedule.asked

    def _end_maintenance(self, result: TurnResult, now: int, interval: int) -> None:
        if result.maintenance_errors:
            self.maintenance_failures.add(result.maintenance_errors[0])
            self.maintains_at = now + self.maintenance_failures.pause(interval)
            if not self.schedule.strategies:
                self.due_at = max(self.due_at, self.maintains_at)
        elif result.maintained:
            self.maintenance_failures.end()

    @property
    def state(self) -> str:
        """See ``Automation.state``."""
        if self.run is not None:
            return automation.RUNNING
        if self.suspended:
            return automation.SUSPENDED
        if self._error is not None:
            return automation.FAILED
        waits = self.is_outside_hours or self.wait is not None or self.place.is_waiting
        return automation.WAITING if waits else automation.SCHEDULED

    @property
    def _error(self) -> str | None:
        return self.failures.error or self.asked_turns.failures.error or self.maintenance_failures.error

    def publish(self) -> None:
        """Updates the state of the table in the automations of the application."""
        wait = self.wait
        notes = [
            f"a run waits for the hours {self.schedule.hours}" if self.is_outside_hours else "",
            wait.note if wait else "",
            self.place.note,
            "" if self.run is not None else self.failures.note(self.due_at),
            "" if self.run is not None else self.asked_turns.failures.note(self.asked_turns.paused_until),
            "" if self.run is not None else self.maintenance_failures.note(self.maintains_at),
            self.schedule.note,
            f"the last run skipped {self.skipped_note}" if self.skipped_note else "",
        ]
        next_run = self.due_at if wait is None else wait.until
        by_trigger_only = self.by_triggers and not self.retries and wait is None and not self.is_outside_hours
        next_run_unknown = self.run is not None or self.suspended or by_trigger_only
        self._automations.put(
            Automation(
                self.name,
                self.location,
                self.state,
                self.schedule.names,
                self.last_run,
                None if next_run_unknown else next_run,
                self._error,
                self.run.run_id if self.run else None,
                "; ".join(note for note in notes if note) or None,
                self.place.facts,
            )
        )
