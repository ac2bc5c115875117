"""Which faults a history has, and where they strike; decided by the seed of the history."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Set

from pyspark.errors import PySparkException

from simulation.scheduler import Killed, Scheduler

CONFLICT, LOST_ANSWER, TORN_WRITE, DELAYED_WRITE = "conflict", "lost answer", "torn write", "delayed write"
LATE_LISTING, THROTTLING, KILL, PAUSE, SKEW = "late listing", "throttling", "kill", "pause", "clock skew"
FAULTS = (CONFLICT, LOST_ANSWER, TORN_WRITE, DELAYED_WRITE, LATE_LISTING, THROTTLING, KILL, PAUSE, SKEW)

# Of a step to which the fault can happen, in a history that has the fault.
_RATES = {
    CONFLICT: 0.3,
    LOST_ANSWER: 0.4,
    TORN_WRITE: 0.08,
    DELAYED_WRITE: 0.06,
    LATE_LISTING: 0.3,
    THROTTLING: 0.03,
    KILL: 0.014,
    PAUSE: 0.01,
    SKEW: 1.0,
}
_BURST = 15.0
_AT_EACH_STEP = frozenset({KILL, PAUSE, SKEW, THROTTLING})
MOST_SKEW = 3_600_000


class StoreError(PySparkException):
    """The store or the log refuses, or does not answer."""


class Faults:
    """The faults of one history.

    Args:
        seed: of the history.
        scheduler: runs it.
        phases: counts the faults by the phase of each process that was under way, and by fault.

    Attributes:
        kinds: the faults that the history has.
    """

    def __init__(self, seed: int, scheduler: Scheduler, phases: Counter[tuple[str, str]]) -> None:
        self._random = random.Random(f"faults {seed}")
        self._scheduler = scheduler
        self._phases = phases
        count = self._random.choice((0, 0, 1, 2, 2, 3, 4))
        chosen: list[str] = self._random.sample(FAULTS, count)
        if SKEW in chosen and KILL not in chosen and self._random.random() < 0.5:
            # A wrong clock matters most if its process leaves something behind.
            chosen.append(KILL)
        self.kinds: Set[str] = dict.fromkeys(chosen).keys()
        self.are_over = False
        self._busy_until = 0
        self.on_fault = lambda _: None

    def skew(self) -> int:
        """Milliseconds by which the clock of a new process is ahead."""
        if SKEW not in self.kinds or self._random.random() < 0.3:
            return 0
        return int((2 * self._random.random() - 1) * MOST_SKEW)

    def strikes(self, kind: str, scale: float = 1.0) -> bool:
        """Whether a fault happens now.

        Args:
            kind: the fault.
            scale: factor of its rate.
        """
        if kind not in self.kinds or self.are_over:
            return False
        if kind == THROTTLING and self._scheduler.now < self._busy_until:
            scale *= _BURST
        if self._random.random() >= _RATES[kind] * scale:
            return False
        if self._scheduler.actor is None:
            return False
        if kind in (THROTTLING, LOST_ANSWER):
            # A store in trouble stays in trouble for a while.
            self._busy_until = self._scheduler.now + 500
        self.count(kind)
        self.on_fault(kind)
        return True

    def count(self, kind: str) -> None:
        """Counts a fault for the phases in which processes are."""
        for actor in self._scheduler.live:
            self._phases[actor.phase, kind] += 1

    def milliseconds(self, most: int) -> int:
        """A random time."""
        return int(self._random.random() * most)

    def share(self) -> float:
        """A random number below 1."""
        return self._random.random()

    def before(self, phase: str) -> None:
        """Takes a step, in which the process may be killed, paused or refused.

        Args:
            phase: what it is about to do.

        Raises:
            StoreError: the store is too busy.
        """
        scheduler = self._scheduler
        scheduler.step(phase)
        if self.are_over or self.kinds.isdisjoint(_AT_EACH_STEP):
            return
        process = scheduler.process
        if self.strikes(KILL):
            scheduler.kill(process)
            raise Killed
        if self.strikes(PAUSE):
            # All threads of a suspended process stand still.
            milliseconds = self.milliseconds(200_000)
            scheduler.pause(process, milliseconds)
        if process.skew:
            self.count(SKEW)
        if self.strikes(THROTTLING):
            raise StoreError("503 SlowDown: please reduce your request rate")
