"""The clock, which code that depends on the time takes as an argument, so that tests can replace it."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Provides the time and waits."""

    def now(self) -> int:
        """Epoch milliseconds."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment, for durations; never goes back."""
        ...

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Waits until the event is set, for at most ``seconds``; returns whether it is set."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> int:
        """See ``Clock.now``."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """See ``Clock.monotonic``."""
        return time.monotonic()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """See ``Clock.wait``."""
        return event.wait(seconds)


SYSTEM_CLOCK = SystemClock()
"""The clock that functions use when the caller passes none."""
