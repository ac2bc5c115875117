"""The clock of the service, which tests replace."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Provides the time and waits."""

    def now(self) -> int:
        """Epoch milliseconds."""
        ...

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Waits until the event is set, for at most ``seconds``; returns whether it is set."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> int:
        """Epoch milliseconds."""
        return time.time_ns() // 1_000_000

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """See ``Clock.wait``."""
        return event.wait(seconds)
