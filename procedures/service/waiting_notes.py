"""What a table that does not run waits for, as its state in the automations of the application says it."""

from __future__ import annotations

from catalog.epoch_millis import moment
from catalog.quantities import size_text
from catalog.state.automation import OfferFacts
from catalog.state.fleet_ledger import Refusal
from procedures.fleet.appraisal import Appraisal

QUARANTINE_FAILURES = 5
"""After so many failures in a row, the state of the table says that it is in quarantine."""


def budget_note(refusal: Refusal | None, appraisal: Appraisal | None) -> str:
    """Why a budget does not let the table run; empty if none keeps it waiting.

    Args:
        refusal: of the last run.
        appraisal: what the table offers for its next turn.
    """
    if refusal is not None:
        return f"{refusal.code}: {refusal.message}"
    offer = None if appraisal is None else appraisal.offer
    if offer is None:
        return ""
    if offer.objection is not None:
        return offer.objection
    return f"waits for its turn: {size_text(offer.cost)} to rewrite save reads about {size_text(offer.saving)} per day"


def quarantine_note(attempts: str, failures: int, due_at: int) -> str:
    """Says that a table is tried less often; empty before it has failed many times.

    Args:
        attempts: what has failed, as people name it.
        failures: in a row.
        due_at: when it is tried again, epoch milliseconds.
    """
    if failures < QUARANTINE_FAILURES:
        return ""
    due = f"{moment(due_at):%Y-%m-%d %H:%M:%S} UTC"
    return f"QUARANTINED: {failures} {attempts} in a row failed; the next one is at {due}"


def offer_facts(appraisal: Appraisal | None, waits_since: int | None) -> OfferFacts | None:
    """What the table offers for its next turn; None if it waits for none.

    Args:
        appraisal: what was found.
        waits_since: since when the table could have had a turn, epoch milliseconds.
    """
    offer = None if appraisal is None else appraisal.offer
    if offer is None or waits_since is None:
        return None
    return OfferFacts(offer.cost, offer.saving, offer.is_recorded, offer.is_read, waits_since)
