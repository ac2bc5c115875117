"""The place of a table among those that wait for a share of a budget: what it offers, and since when it waits."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.quantities import size_text
from catalog.state.automation import OfferFacts
from catalog.state.fleet_ledger import Refusal
from procedures.fleet.appraisal import Appraisal
from procedures.fleet.offer import Offer

MOST_DOUBLINGS_OF_LOOKS = 4
"""A table that is not worth a turn is looked at again after 16 intervals at the latest."""


@dataclass
class QueuePlace:
    """The place of one table; times are epoch milliseconds.

    Attributes:
        refusal: why a budget refused the last run.
        appraisal: what the table offers for its next turn.
        appraised_at: when that was found.
        waits_since: since when the table could have had a turn.
    """

    refusal: Refusal | None = None
    appraisal: Appraisal | None = None
    appraised_at: int = 0
    waits_since: int | None = None
    _looks_in_vain: int = 0
    _before_turn: tuple[Appraisal | None, int | None] = (None, None)

    @property
    def is_waiting(self) -> bool:
        """Whether the table waits for a budget or for its turn."""
        return self.refusal is not None or self.appraisal is not None

    @property
    def offer(self) -> Offer | None:
        """What the table offers; None if it offers nothing, or nobody knows."""
        return None if self.appraisal is None else self.appraisal.offer

    def waited(self, now: int) -> int:
        """Milliseconds for which the table could have had a turn."""
        return 0 if self.waits_since is None else now - self.waits_since

    def leave(self) -> None:
        """Gives the place up."""
        self.refusal = self.appraisal = self.waits_since = None

    def begin_turn(self) -> None:
        """Leaves the queue for a run, after which a budget may give the place back."""
        self._before_turn = self.appraisal, self.waits_since
        self.leave()

    def end_turn(self, refusal: Refusal | None, rewritten: int) -> bool:
        """Records the end of a run; one that a budget refused, and that rewrote nothing, has its place back.

        Args:
            refusal: why a budget refused bytes or the run; None if none did.
            rewritten: bytes that the run has rewritten.

        Returns:
            Whether the run rewrote what the table had offered, and nothing refused the rest.
        """
        appraisal, waits_since = self._before_turn
        self.refusal = refusal
        if refusal is not None and not rewritten:
            self.appraisal, self.waits_since = appraisal, waits_since
        elif appraisal is not None and appraisal.offer is not None and appraisal.offer.is_asked:
            # The other strategies have waited all the same.
            self.waits_since = waits_since
        return refusal is None and appraisal is not None and rewritten > 0

    def offers(self, appraisal: Appraisal, now: int) -> None:
        """Records what the table offers.

        Args:
            appraisal: it has an offer; the one that is known if nobody has read the table since.
            now: when that was found.
        """
        self._looks_in_vain = 0 if appraisal is not self.appraisal else self._looks_in_vain + 1
        self.appraisal, self.appraised_at = appraisal, now
        self.waits_since = now if self.waits_since is None else self.waits_since

    def pause(self, interval: int) -> int:
        """Milliseconds until somebody looks again at an offer that is not worth a turn.

        They double with each look as long as nobody reads the table.

        Args:
            interval: milliseconds until the first look.
        """
        return interval << min(self._looks_in_vain, MOST_DOUBLINGS_OF_LOOKS)

    def is_known(self, version: int, now: int, interval: int) -> bool:
        """Whether it is known what the table offers: by its newest version, or by a look in the last interval.

        Reads may make an offer worthwhile that was not.

        Args:
            version: the newest one.
            now: epoch milliseconds.
            interval: time between the starts of two runs, milliseconds.
        """
        if self.appraisal is None or self.appraisal.offer is None:
            return False
        is_current = self.appraisal.version >= version and self.appraisal.offer.is_worthwhile
        return is_current or 0 <= now - self.appraised_at < interval

    @property
    def note(self) -> str:
        """Why a budget does not let the table run, for people; empty if none keeps it waiting."""
        if self.refusal is not None:
            return self.refusal.text
        offer = self.offer
        if offer is None:
            return ""
        if offer.objection is not None:
            return offer.objection
        if offer.is_asked:
            return "waits for its turn: the table asks for compaction by its primary key"
        cost, saving = size_text(offer.cost), size_text(offer.saving)
        return f"waits for its turn: {cost} to rewrite save reads about {saving} per day"

    @property
    def facts(self) -> OfferFacts | None:
        """What the table offers, for display; None if it waits for no turn."""
        offer = self.offer
        if offer is None or self.waits_since is None:
            return None
        return OfferFacts(offer.cost, offer.saving, offer.is_recorded, offer.is_read, self.waits_since, offer.is_asked)
