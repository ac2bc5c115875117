"""Runs simulated processes one step at a time, in an order that a seed decides; time passes when the scheduler says so.

Each thread of a process is a greenlet. It gives control back at each step: an access to the store, the log or a clock,
and each wait. A killed process takes no further step: each of its steps raises ``Killed`` before it has any effect.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from math import inf
from typing import Any

from greenlet import getcurrent, greenlet


class Killed(BaseException):
    """The process was killed: nothing that it does afterwards has any effect."""


class StuckError(Exception):
    """No thread can go on, or the history does not end."""


class Process:
    """A process with a clock of its own.

    Attributes:
        name: for the history.
        skew: milliseconds by which its clock is ahead.
        is_dead: whether it was killed.
        error: what its main thread raised.
    """

    def __init__(self, name: str, skew: int = 0) -> None:
        self.name = name
        self.skew = skew
        self.is_dead = False
        self.has_ended = False
        self.error: BaseException | None = None
        self.paused_until = 0
        self.phase = "start"
        self.memory: dict[str, Any] = {}


class Actor:
    """A thread of a process."""

    __slots__ = ("green", "is_over", "phase", "process", "ready", "wake")

    def __init__(self, process: Process, green: greenlet) -> None:
        self.process = process
        self.green = green
        self.is_over = False
        self.phase = "start"
        self.wake: float = 0
        self.ready: Callable[[], bool] | None = None


class Scheduler:
    """Chooses which thread takes the next step.

    Args:
        seed: of the order.
        now: epoch milliseconds.
        most_steps: a history that takes more steps does not end.
    """

    def __init__(self, seed: int, now: int, most_steps: int = 20_000) -> None:
        self.random = random.Random(seed)
        self.now = now
        self.steps = 0
        self._most_steps = most_steps
        self._actors: list[Actor] = []
        self._by_green: dict[greenlet, Actor] = {}
        self._hub = getcurrent()
        self.nowhere = Process("setup")
        self.failure: BaseException | None = None

    @property
    def actor(self) -> Actor | None:
        """The thread that takes the current step; None outside of all."""
        return self._by_green.get(getcurrent())

    @property
    def process(self) -> Process:
        """The process that takes the current step."""
        actor = self._by_green.get(getcurrent())
        return self.nowhere if actor is None else actor.process

    @property
    def live(self) -> list[Actor]:
        """The threads that have not ended."""
        return self._actors

    def spawn(self, process: Process, work: Callable[[], object]) -> Actor:
        """Adds a thread, which begins with a later step."""
        actor = Actor(process, greenlet(lambda: self._work(actor, work), parent=self._hub))
        self._actors.append(actor)
        self._by_green[actor.green] = actor
        return actor

    def start(self, process: Process, work: Callable[[], object], at: int = 0) -> None:
        """Adds a process with its main thread.

        Args:
            process: the process.
            work: of its main thread.
            at: when it begins, epoch milliseconds.
        """

        def main() -> None:
            try:
                work()
            except Killed:
                pass
            except BaseException as error:  # noqa: BLE001 - judged by the invariants
                process.error = error
            process.has_ended = True

        self.spawn(process, main).wake = at

    def _work(self, actor: Actor, work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - judged by the invariants
            if not actor.process.is_dead:
                actor.process.error = error
        finally:
            actor.is_over = True
            self._actors.remove(actor)
            self._by_green.pop(actor.green, None)

    def run(self) -> None:
        """Runs until all threads have ended.

        Raises:
            StuckError: they do not.
        """
        choose = self.random.random
        while actors := self._actors:
            now = self.now
            runnable = [
                a
                for a in actors
                if (a.wake <= now or (a.ready is not None and a.ready())) and a.process.paused_until <= now
            ]
            if not runnable:
                wakes = [
                    a.process.paused_until if a.wake == inf else max(a.process.paused_until, a.wake)
                    for a in actors
                    if a.wake < inf or a.process.paused_until > now
                ]
                if not wakes:
                    raise StuckError(
                        "no thread can go on: " + ", ".join(f"{a.process.name} in {a.phase}" for a in actors)
                    )
                self.now = int(min(wakes)) + 1
                continue
            self.steps += 1
            if self.steps > self._most_steps:
                raise StuckError(
                    "the history does not end: " + ", ".join(f"{a.process.name} in {a.phase}" for a in actors)
                )
            self.now += int(choose() * 40)
            runnable[int(choose() * len(runnable))].green.switch()
            if self.failure is not None:
                raise self.failure

    def step(self, phase: str) -> None:
        """Lets other threads take steps before the caller's next one.

        Args:
            phase: what the caller is about to do.
        """
        actor = self._by_green.get(getcurrent())
        if actor is None:
            return
        if actor.process.is_dead:
            raise Killed
        actor.phase = actor.process.phase = phase
        actor.wake, actor.ready = self.now, None
        self._hub.switch()
        if actor.process.is_dead:
            raise Killed

    def wait(self, ready: Callable[[], bool] | None, seconds: float | None) -> None:
        """Waits until a condition holds, for a time at most; None = no condition, and any time."""
        actor = self._by_green.get(getcurrent())
        if actor is None:
            if seconds is not None:
                self.now += int(seconds * 1000)
            return
        if actor.process.is_dead:
            raise Killed
        actor.wake = inf if seconds is None else self.now + seconds * 1000
        actor.ready = ready
        self._hub.switch()
        if actor.process.is_dead:
            raise Killed

    def sleep(self, milliseconds: int) -> None:
        """Waits for a time."""
        self.wait(None, milliseconds / 1000)

    def pause(self, process: Process, milliseconds: int) -> None:
        """Lets no thread of a process take a step for a time."""
        process.paused_until = self.now + milliseconds
        self.sleep(milliseconds)

    def kill(self, process: Process) -> None:
        """Kills a process: its threads end at their current step."""
        process.is_dead = process.has_ended = True
        here = getcurrent()
        for actor in [a for a in self._actors if a.process is process and a.green is not here]:
            if actor.green:
                actor.green.parent = here
                actor.green.throw(Killed)
            else:
                # It has not begun.
                actor.is_over = True
                self._actors.remove(actor)
                self._by_green.pop(actor.green, None)

    def end(self) -> None:
        """Ends all threads, after a violation."""
        for process in {actor.process for actor in self._actors}:
            self.kill(process)
