"""What others may know of a worker: the row of its table in the automations of the application."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog.epoch_millis import moment
from catalog.quantities import size_text
from catalog.state.automation import FAILED, RUNNING, SCHEDULED, SUSPENDED, WAITING, Automation, OfferFacts

if TYPE_CHECKING:
    from procedures.service.worker import Worker

QUARANTINE_FAILURES = 5
"""After so many failures in a row, the state of the table says that it is in quarantine."""


def automation_of(worker: Worker) -> Automation:
    """Returns the state of a worker, with what it waits for and why."""
    wait = worker.wait
    next_run = worker.due_at if wait is None else wait.until
    by_trigger_only = worker.by_triggers and not worker.retries and wait is None and not worker.is_outside_hours
    next_run_unknown = worker.run is not None or worker.suspended or by_trigger_only
    return Automation(
        worker.name,
        worker.location,
        _state(worker),
        worker.schedule.names,
        worker.last_run,
        None if next_run_unknown else next_run,
        worker.last_error,
        worker.run.run_id if worker.run else None,
        "; ".join(note for note in _notes(worker) if note) or None,
        _offer_facts(worker),
    )


def _state(worker: Worker) -> str:
    if worker.run is not None:
        return RUNNING
    if worker.suspended:
        return SUSPENDED
    if worker.last_error:
        return FAILED
    waits = (worker.wait, worker.refusal, worker.appraisal)
    return WAITING if worker.is_outside_hours or any(each is not None for each in waits) else SCHEDULED


def _notes(worker: Worker) -> list[str]:
    """What it waits for, first the hours and last the files that its last run skipped; some are empty."""
    return [
        f"a run waits for the hours {worker.schedule.hours}" if worker.is_outside_hours else "",
        worker.wait.note if worker.wait else "",
        _budget_note(worker),
        _quarantine_note(worker),
        worker.schedule.note,
        f"the last run skipped {worker.skipped_note}" if worker.skipped_note else "",
    ]


def _budget_note(worker: Worker) -> str:
    if worker.refusal is not None:
        return f"{worker.refusal.code}: {worker.refusal.message}"
    offer = None if worker.appraisal is None else worker.appraisal.offer
    if offer is None:
        return ""
    if offer.objection is not None:
        return offer.objection
    return f"waits for its turn: {size_text(offer.cost)} to rewrite save reads about {size_text(offer.saving)} per day"


def _quarantine_note(worker: Worker) -> str:
    if worker.failures < QUARANTINE_FAILURES or worker.run is not None:
        return ""
    due = f"{moment(worker.due_at):%Y-%m-%d %H:%M:%S} UTC"
    return f"QUARANTINED: {worker.failures} attempts in a row failed; the next one is at {due}"


def _offer_facts(worker: Worker) -> OfferFacts | None:
    offer = None if worker.appraisal is None else worker.appraisal.offer
    if offer is None or worker.waits_since is None:
        return None
    return OfferFacts(offer.cost, offer.saving, offer.is_recorded, offer.is_read, worker.waits_since)
