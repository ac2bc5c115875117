"""The state of each table that the automatic service of this process optimizes, for display."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

SCHEDULED, WAITING, RUNNING, SUSPENDED, FAILED = "scheduled", "waiting", "running", "suspended", "failed"


@dataclass(frozen=True)
class OfferFacts:
    """What a table offers for a share of a budget, as the service has found out.

    Attributes:
        cost: bytes to rewrite.
        saving: bytes that reads are expected not to read, per day.
        is_recorded: whether recorded reads say so.
        is_read: whether a scan has read the table since its last turn.
        since: since when it waits for its turn, epoch milliseconds.
        is_asked: whether the owner asks for the rewrite, whatever reads save.
    """

    cost: int
    saving: float
    is_recorded: bool
    is_read: bool
    since: int
    is_asked: bool = False


@dataclass(frozen=True)
class Automation:
    """A table under automatic optimization, or with a manual run under way.

    Attributes:
        table: full name.
        location: the table's root in its one spelling; see ``log_probe.qualified``.
        state: ``scheduled``, ``waiting`` (due, and waits for the cluster, its hours, a budget or its turn),
            ``running``, ``suspended`` or ``failed``.
        strategies: names, in order of priority; the text of the property if it is invalid.
        last_run: end of the last run, epoch milliseconds.
        next_run: when the next one is due, epoch milliseconds; None when it depends on a trigger of the table.
        last_error: code and text of the last error, None after a successful run.
        run_id: of the run under way.
        note: information for its owner, such as properties that have no effect.
        offer: what it offers while it waits for its turn.
    """

    table: str
    location: str
    state: str
    strategies: tuple[str, ...] = ()
    last_run: int | None = None
    next_run: int | None = None
    last_error: str | None = None
    run_id: str | None = None
    note: str | None = None
    offer: OfferFacts | None = None


class Automations:
    """The tables that this process optimizes, by location."""

    def __init__(self) -> None:
        """Starts empty."""
        self._lock = threading.Lock()
        self._by_location: dict[str, Automation] = {}

    def put(self, automation: Automation) -> None:
        """Adds a table, or replaces its state."""
        with self._lock:
            self._by_location[automation.location] = automation

    def remove(self, location: str) -> None:
        """Forgets a table."""
        with self._lock:
            self._by_location.pop(location, None)

    def get(self, location: str) -> Automation | None:
        """Returns the state of a table."""
        with self._lock:
            return self._by_location.get(location)

    def all(self) -> Sequence[Automation]:
        """All tables, by name."""
        with self._lock:
            return sorted(self._by_location.values(), key=lambda a: a.table)
