"""Waits for the lease of a table that another run holds, for a limited time."""

from __future__ import annotations

import threading
from collections.abc import Callable

from catalog.clock import Clock
from catalog.errors import ConcurrentChangeError
from catalog.state.lease import Acquired, HeldBy, Lease

SECONDS_BETWEEN_LOOKS = 5
# The lease of a killed run expires within one lease time.
MOST_SECONDS = 300


class LeaseWait:
    """Waits for the lease of a table; all waits together last ``MOST_SECONDS`` at most.

    Args:
        table: name of the table, for the error.
        clock: the time.
        is_stopped: whether the caller was asked to stop, which ends a wait.
    """

    def __init__(self, table: str, clock: Clock, is_stopped: Callable[[], bool]) -> None:
        self._table = table
        self._clock = clock
        self._is_stopped = is_stopped
        self._seconds_left = MOST_SECONDS

    def until_free(self, holder: Callable[[], Lease | None]) -> None:
        """Waits until no run holds the lease.

        Args:
            holder: reads the unexpired lease.

        Raises:
            ConcurrentChangeError: a run still holds it after ``MOST_SECONDS``, or the caller was asked to stop.
        """
        while (lease := holder()) is not None:
            self._pause(lease)

    def until_acquired(self, acquire: Callable[[], Acquired | HeldBy]) -> None:
        """Waits until the lease is acquired.

        Args:
            acquire: tries to take the lease.

        Raises:
            ConcurrentChangeError: as for ``until_free``.
        """
        while isinstance(outcome := acquire(), HeldBy):
            self._pause(outcome.lease)

    def _pause(self, lease: Lease) -> None:
        if self._seconds_left <= 0 or self._is_stopped():
            raise ConcurrentChangeError(
                f"{self._table} is being optimized by {lease.holder} in run {lease.run_id} ({lease.trigger}), whose "
                f"files must stay: no file was deleted. Waited {MOST_SECONDS - self._seconds_left} seconds. Call again "
                "when the run has ended."
            )
        self._clock.wait(threading.Event(), SECONDS_BETWEEN_LOOKS)
        self._seconds_left -= SECONDS_BETWEEN_LOOKS
