"""Notifications of the service: what it tells the functions that a user has registered."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

logger = logging.getLogger(__name__)

ALERT, RECOVERED, RUN_FAILED, BUDGET_USED_UP = "alert", "recovered", "run_failed", "budget_used_up"


@dataclass(frozen=True)
class Notification:
    """Something that happened to a table.

    Attributes:
        kind: ``alert``: a threshold of health is crossed. ``recovered``: it no longer is. ``run_failed``: a run of the
            service failed. ``budget_used_up``: a budget of the fleet is used up; told once in a period.
        table: full name of the table.
        at: epoch milliseconds.
        message: one sentence.
        values: what was measured, by name; empty for a failed run.
    """

    kind: str
    table: str
    at: int
    message: str
    values: Mapping[str, float] = field(default_factory=dict)


Receiver = Callable[[Notification], object]


class Subscription:
    """A registered function; ``cancel`` ends it."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    def cancel(self) -> None:
        """Ends the subscription; a second call does nothing."""
        self._end()


class Notifications:
    """The registered functions of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._receivers: dict[int, Receiver] = {}
        self._next = 0

    def subscribe(self, receiver: Receiver) -> Subscription:
        """Registers a function, which is called in a thread of the service.

        Args:
            receiver: the function.
        """
        with self._lock:
            self._next += 1
            number = self._next
            self._receivers[number] = receiver

        def end() -> None:
            with self._lock:
                self._receivers.pop(number, None)

        return Subscription(end)

    def send(self, notification: Notification) -> None:
        """Calls all functions; an error of one is logged, and the others are called.

        Args:
            notification: what happened.
        """
        with self._lock:
            receivers = list(self._receivers.values())
        for receiver in receivers:
            try:
                receiver(notification)
            except Exception as error:  # noqa: BLE001, PERF203 - one function must not stop others
                logger.warning("A receiver of %s of %s failed: %s", notification.kind, notification.table, error)
