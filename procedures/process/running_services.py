"""The services that run in this process, and the changes of tables that they are notified of."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

# The runs of a service whose Spark has stopped end soon.
_SECONDS_FOR_PREDECESSOR = 5
CHANGED, DROPPED, RENAMED = "changed", "dropped", "renamed"
SUSPENDED, RESUMED = "suspended", "resumed"


@dataclass(frozen=True)
class CatalogChange:
    """A change of a table by this process, which the service need not detect by polling.

    Attributes:
        kind: ``changed``, ``dropped``, ``renamed``, ``suspended`` or ``resumed``.
        name: full name of the table.
        location: its root; '' if unknown.
        before: its earlier name if it was renamed.
    """

    kind: str
    name: str
    location: str = ""
    before: str = ""


class RunningService(Protocol):
    """A service as others see it."""

    @property
    def is_alive(self) -> bool:
        """Whether its Spark application runs."""

    def start(self) -> None:
        """Starts it."""

    def stop(self, wait: float | None = None) -> bool:
        """Stops it; returns whether everything has ended within ``wait`` seconds."""

    def notify(self, change: CatalogChange) -> None:
        """Tells it of a change; returns at once."""


class RunningServices:
    """The services of one process; safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listening: list[RunningService] = []
        self._attached: RunningService | None = None

    def listen(self, service: RunningService) -> None:
        """Notifies a service of changes from now on."""
        with self._lock:
            self._listening.append(service)

    def ignore(self, service: RunningService) -> bool:
        """Notifies a service no longer.

        Returns:
            Whether no service is left to notify.
        """
        with self._lock:
            self._listening = [other for other in self._listening if other is not service]
            return not self._listening

    def notify(self, change: CatalogChange) -> None:
        """Notifies all services of a change; returns at once."""
        with self._lock:
            services = list(self._listening)
        for service in services:
            service.notify(change)

    @property
    def attached(self) -> RunningService | None:
        """The running service that ``attach`` started, if any."""
        with self._lock:
            service = self._attached
        return service if service is not None and service.is_alive else None

    def start_attached(self, make: Callable[[], RunningService]) -> RunningService:
        """Starts the service of the attached application unless it runs; replaces one whose Spark has stopped.

        Args:
            make: makes the service.
        """
        running = self.attached
        if running is not None:
            return running
        self.stop_attached(_SECONDS_FOR_PREDECESSOR)
        service = make()
        with self._lock:
            self._attached = service
        service.start()
        return service

    def stop_attached(self, wait: float | None = None) -> None:
        """Stops the service of the attached application, if there is one.

        Args:
            wait: maximum seconds to wait for each of its runs; unlimited by default.
        """
        with self._lock:
            service, self._attached = self._attached, None
        if service is not None:
            service.stop(wait)
