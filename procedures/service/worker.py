"""One table's worker: when its next run is due, what became of the last one, and what others may know of it."""

from __future__ import annotations

from catalog.state import automation
from catalog.state.automation import Automation, Automations
from procedures.optimizer.runs import AUTOMATIC, Run
from procedures.service.schedule import Wish


class Worker:
    """The schedule of a table and its run; decides, and touches no table.

    Not safe for threads: ``Workers`` calls it under its lock.

    Args:
        name: full name of the table.
        location: its root; the worker's identity.
        wish: what it asks for.
        now: epoch milliseconds; the first run is due at once.
        automations: shows the state of the table.
    """

    def __init__(self, name: str, location: str, wish: Wish, now: int, automations: Automations) -> None:
        self._automations = automations
        self.name = name
        self.location = location
        self.wish = wish
        self.due_at = now
        self.run: Run | None = None
        self.version: int | None = None
        """Newest version that is known of."""
        self.settled: int | None = None
        """Version at which a run found nothing more to do."""
        self.measured: int | None = None
        """Version at which the triggers were last looked at."""
        self.last_run: int | None = None
        self.last_error: str | None = None
        self.passed_over = ""
        """What the last run left alone and why, for people."""
        self.retries = False
        """Whether the last run left something to do, so that the next one waits for the interval and for no trigger."""
        self.suspended = False
        self.next_wish: Wish | None = None
        """What to do when the run under way has ended, where the properties changed meanwhile."""
        self.leaving = False
        """Whether the worker ends with the run under way."""

    # ------------------------------------------------------------------------------------------------- what to do next

    def is_due(self, now: int) -> bool:
        """Whether it is time to think of a run."""
        if self.run is not None:
            return False
        if self.by_triggers and not self.retries and not self.suspended:
            # Triggers are looked at whenever the table changed, and say themselves whether it is time.
            return self.version != self.settled and self.version != self.measured
        return now >= self.due_at

    @property
    def by_triggers(self) -> bool:
        """Whether triggers start its runs, and not the interval."""
        return self.wish.triggers.any

    @property
    def is_settled(self) -> bool:
        """Whether nothing was committed to the table since a run found nothing more to do."""
        return self.settled is not None and self.version == self.settled

    def pass_by(self, now: int, interval: int) -> None:
        """Leaves this turn out."""
        self.due_at = now + interval
        self.publish()

    def not_reached(self) -> None:
        """No trigger says that it is time: the next commit may."""
        self.measured = self.version
        self.retries = False
        self.last_error = None
        self.publish()

    def look_failed(self, error: str, now: int, interval: int) -> None:
        """The table could not be looked at."""
        self.last_error = error
        self.retries = True
        self.pass_by(now, interval)

    def change(self, wish: Wish, now: int) -> None:
        """Takes a new wish: at once when idle, after the run that is under way otherwise."""
        self.leaving = False
        if self.run is not None:
            self.next_wish = wish
            return
        self.wish = wish
        self.settled = self.measured = None
        self.last_error = None
        self.passed_over = ""
        self.retries = self.suspended = False
        self.due_at = now
        self.publish()

    # ----------------------------------------------------------------------------------------------------------- a run

    def begin(self, now: int) -> Run:
        """Begins a run."""
        self.run = Run(self.name, self.location, AUTOMATIC, self.wish.parameters, now)
        self.due_at = now
        self.publish()
        return self.run

    def end(self, settled: int | None, error: str | None, now: int, interval: int, note: str = "") -> None:
        """Ends the run that is under way.

        Args:
            settled: version at which it found nothing more to do; None when it ended for another reason.
            error: code and text of its error.
            now: epoch milliseconds.
            interval: between the beginnings of two runs, milliseconds.
            note: what it left alone and why, for people.
        """
        begun = now if self.run is None else self.run.started_at
        self.run = None
        self.last_run = now
        self.last_error = error
        self.passed_over = note
        self.settled = settled
        self.retries = settled is None
        self.measured = None
        if settled is not None and (self.version is None or self.version < settled):
            self.version = settled
        # A run that takes longer than the interval is followed by the tables that wait, which are due for longer.
        self.due_at = now + interval if error is not None else max(begun + interval, now)
        if self.next_wish is not None:
            wish, self.next_wish = self.next_wish, None
            self.change(wish, now)
        else:
            self.publish()

    # --------------------------------------------------------------------------------------------- what others may know

    @property
    def state(self) -> str:
        """As ``Automation.state``."""
        if self.run is not None:
            return automation.RUNNING
        if self.suspended:
            return automation.SUSPENDED
        return automation.FAILED if self.last_error else automation.SCHEDULED

    def publish(self) -> None:
        """Shows the state of the table to the other parts of the process."""
        notes = [self.wish.note, f"the last run passed over {self.passed_over}" if self.passed_over else ""]
        untold = self.run is not None or self.suspended or (self.by_triggers and not self.retries)
        self._automations.put(
            Automation(
                self.name,
                self.location,
                self.state,
                self.wish.strategies,
                self.last_run,
                None if untold else self.due_at,
                self.last_error,
                self.run.run_id if self.run else None,
                "; ".join(note for note in notes if note) or None,
            )
        )
