"""What the automatic service of this process knows of each table, for whoever wants to look."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

SCHEDULED, WAITING, RUNNING, SUSPENDED, FAILED = "scheduled", "waiting", "running", "suspended", "failed"


@dataclass(frozen=True)
class Automation:
    """A table under automatic optimization, or with a manual run under way.

    Attributes:
        table: full name.
        location: the table's root in its one spelling; see ``log_probe.qualified``.
        state: ``scheduled``, ``waiting`` (due, while the cluster is busy), ``running``, ``suspended`` or ``failed``.
        strategies: names, in the order in which they are asked; what the properties say where they are wrong.
        last_run: end of the last run, epoch milliseconds.
        next_run: when the next one is due, epoch milliseconds; None when only a trigger of the table can tell.
        last_error: code and text of the last error, None after a run that went well.
        run_id: of the run under way.
        note: what its owner should know, such as properties that do not count.
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


class Automations:
    """The tables that this process takes care of, by location."""

    def __init__(self) -> None:
        """Starts empty."""
        self._lock = threading.Lock()
        self._by_location: dict[str, Automation] = {}

    def put(self, automation: Automation) -> None:
        """Adds a table, or replaces what was known of it."""
        with self._lock:
            self._by_location[automation.location] = automation

    def remove(self, location: str) -> None:
        """Forgets a table."""
        with self._lock:
            self._by_location.pop(location, None)

    def get(self, location: str) -> Automation | None:
        """What is known of a table."""
        with self._lock:
            return self._by_location.get(location)

    def all(self) -> Sequence[Automation]:
        """All tables, by name."""
        with self._lock:
            return sorted(self._by_location.values(), key=lambda a: a.table)
