"""The state of a table under automatic optimization as people see it, in ``use.status`` and the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog.state import automation
from catalog.state.automation import Automation

if TYPE_CHECKING:
    from procedures.service.worker import Worker


def published(worker: Worker) -> Automation:
    """Describes the state of a table.

    Args:
        worker: of the table.
    """
    wait = worker.wait
    streaks = (
        (worker.failures, worker.due_at),
        (worker.asked_turns.failures, worker.asked_turns.paused_until),
        (worker.maintenance_failures, worker.maintains_at),
    )
    error = next((streak.error for streak, _ in streaks if streak.error), None)
    notes = [
        f"a run waits for the hours {worker.schedule.hours}" if worker.is_outside_hours else "",
        wait.note if wait else "",
        worker.place.note,
        *(streak.note(due_at) for streak, due_at in streaks if worker.run is None),
        worker.schedule.note,
        f"the last run skipped {worker.skipped_note}" if worker.skipped_note else "",
    ]
    next_run = worker.due_at if wait is None else wait.until
    by_trigger_only = worker.by_triggers and not worker.retries and wait is None and not worker.is_outside_hours
    next_run_unknown = worker.run is not None or worker.suspended or by_trigger_only
    return Automation(
        worker.name,
        worker.location,
        _state(worker, error),
        worker.schedule.names,
        worker.last_run,
        None if next_run_unknown else next_run,
        error,
        worker.run.run_id if worker.run else None,
        "; ".join(note for note in notes if note) or None,
        worker.place.facts,
    )


def _state(worker: Worker, error: str | None) -> str:
    """See ``Automation.state``."""
    if worker.run is not None:
        return automation.RUNNING
    if worker.suspended:
        return automation.SUSPENDED
    if error is not None:
        return automation.FAILED
    waits = worker.is_outside_hours or worker.wait is not None or worker.place.is_waiting
    return automation.WAITING if waits else automation.SCHEDULED
