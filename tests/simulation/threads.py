"""The clock and the threads of simulated processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simulation.scheduler import Actor, Scheduler


class SimulatedClock:
    """The clock of the process that takes the current step; see ``catalog.clock.Clock``."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def now(self) -> int:
        """See ``Clock.now``."""
        return self._scheduler.now + self._scheduler.process.skew

    def monotonic(self) -> float:
        """See ``Clock.monotonic``."""
        return self._scheduler.now / 1000

    def wait(self, event: Any, seconds: float) -> bool:
        """See ``Clock.wait``."""
        self._scheduler.wait(event.is_set, seconds)
        return bool(event.is_set())


class SimulatedThreading:
    """Stands for the module ``threading`` in modules of the product.

    Args:
        scheduler: whose threads they are.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        def thread(target: Callable[[], object], name: str = "", daemon: bool = False) -> SimulatedThread:
            return SimulatedThread(scheduler, target)

        self.Thread = thread
        self.Event = SimulatedEvent
        self.Lock = lambda: SimulatedLock(scheduler)
        self.current_thread = lambda: scheduler.actor
        self.main_thread = lambda: scheduler.nowhere


class SimulatedEvent:
    """See ``threading.Event``."""

    __slots__ = ("_is_set",)

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        """See ``threading.Event.set``."""
        self._is_set = True

    def is_set(self) -> bool:
        """See ``threading.Event.is_set``."""
        return self._is_set


class SimulatedThread:
    """See ``threading.Thread``; it works for the process that makes it."""

    def __init__(self, scheduler: Scheduler, target: Callable[[], object]) -> None:
        self._scheduler = scheduler
        self._target = target
        self._process = scheduler.process
        self._actor: Actor | None = None

    def start(self) -> None:
        """See ``threading.Thread.start``."""
        self._actor = self._scheduler.spawn(self._process, self._target)

    def is_alive(self) -> bool:
        """See ``threading.Thread.is_alive``."""
        return self._actor is not None and not self._actor.is_over

    def join(self, timeout: float | None = None) -> None:
        """Waits for the end, even if a timeout is set: nothing interrupts the product's loops of waits."""
        self._scheduler.wait(lambda: not self.is_alive(), None)


class SimulatedLock:
    """See ``threading.Lock``."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._is_held = False

    def __enter__(self) -> None:
        while self._is_held:
            self._scheduler.wait(lambda: not self._is_held, None)
        self._is_held = True

    def __exit__(self, *_: object) -> None:
        self._is_held = False
