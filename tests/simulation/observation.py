"""Watches what runs of the product do: who holds a lease, who rewrites a group of a plan, and what a budget allows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from catalog.state.lease import Acquired
from procedures.lifecycle.purge import reclamation
from procedures.loop import stored_plan_run, table_optimizer
from simulation.faults import CONFLICT, LOST_ANSWER
from simulation.scheduler import Process

if TYPE_CHECKING:
    from simulation.world import World

# Leases and claims exclude each other unless a process stands still, a clock is wrong, or a state file is damaged.
_KEEPING_EXCLUSION = frozenset({CONFLICT, LOST_ANSWER})
# A run looks for requests three times in 45 seconds.
_MOST_MILLIS_TO_STOP = 25_000


class Observation:
    """What the runs of a history do, and the invariants about it.

    Args:
        world: the history.

    Attributes:
        spent: bytes that the budget of the fleet has allowed.
        most_spent: bytes that it may allow; None without a limit.
        holds_exclusion: whether leases and claims exclude each other in this history.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.spent = 0
        self.most_spent: int | None = None
        self.holds_exclusion = _KEEPING_EXCLUSION.issuperset(world.faults.kinds)
        self._running = 0
        self._held: set[tuple[str, Process]] = set()
        self._cancelled: dict[str, int] = {}

    def replacements(self) -> list[tuple[Any, str, Any]]:
        """The attributes of the product that are watched, with what takes their place."""
        lease, rewrite = table_optimizer.TableLease, stored_plan_run.rewrite
        acquire, renewed = lease.acquire, lease.renewed
        acquire_for_purge, renewed_for_purge = reclamation.acquire, reclamation.renewed

        def watched_acquire(this: Any) -> Any:
            acquired = acquire(this)
            if isinstance(acquired, Acquired):
                self._world.scheduler.process.memory["run"] = this.run.run_id
                self._begin(f"lease {this.plan or this.run.run_id}", "lease ")
            return acquired

        @contextmanager
        def watched_renewed(this: Any) -> Iterator[None]:
            with renewed(this), self._ending(f"lease {this.plan or this.run.run_id}"):
                yield

        def watched_acquire_for_purge(table: Any, run_id: str, *more: Any) -> Any:
            acquired = acquire_for_purge(table, run_id, *more)
            if isinstance(acquired, Acquired):
                self._begin(f"lease {run_id}", "lease ")
            return acquired

        @contextmanager
        def watched_renewed_for_purge(table: Any, run_id: str, *more: Any) -> Iterator[None]:
            with renewed_for_purge(table, run_id, *more), self._ending(f"lease {run_id}"):
                yield

        def watched_rewrite(table: Any, group: Any, context: Any) -> Any:
            name = f"group {context.parameters['plan']}/{context.parameters['group']}"
            self._begin(name, name)
            with self._ending(name):
                return rewrite(table, group, context)

        return [
            (lease, "acquire", watched_acquire),
            (lease, "renewed", watched_renewed),
            (reclamation, "acquire", watched_acquire_for_purge),
            (reclamation, "renewed", watched_renewed_for_purge),
            (stored_plan_run, "rewrite", watched_rewrite),
        ]

    @contextmanager
    def _ending(self, name: str) -> Iterator[None]:
        try:
            yield
        finally:
            self._held.discard((name, self._world.scheduler.process))

    def _begin(self, name: str, excluded: str) -> None:
        process = self._world.scheduler.process
        others = {n for n, p in self._held if n.startswith(excluded) and p is not process and not p.is_dead}
        shared = name.startswith("lease ") and others == {name}
        free = not self.holds_exclusion or not others or shared
        self._world.invariants.check(free, f"exclusion: {name} and {sorted(others)}")
        self._held.add((name, process))

    def on_purge(self) -> None:
        """A purge deletes a file only while it holds the lease."""
        self._check_lease("a purge deletes a file")

    def _check_lease(self, what: str) -> None:
        process = self._world.scheduler.process
        holds = any(p is process and name.startswith("lease ") for name, p in self._held)
        self._world.invariants.check(holds or not self.holds_exclusion, f"exclusion: {what} without the lease")

    # ------------------------------------------------------------------------------------------------------ requests

    def on_cancel(self, run_id: str) -> None:
        """Somebody has asked a run to stop."""
        self._cancelled.setdefault(run_id, self._world.scheduler.now)

    def on_begin(self) -> None:
        """A run begins a group only while it holds the lease, and none after it was asked to stop."""
        self._check_lease("a run begins a group")
        world = self._world
        asked = self._cancelled.get(world.scheduler.process.memory.get("run", ""))
        goes_on = asked is not None and world.scheduler.now > asked + _MOST_MILLIS_TO_STOP
        world.invariants.check(not goes_on or not world.is_calm, "requests: a run goes on although it was cancelled")

    # ------------------------------------------------------------------------------------------------------- budgets

    @contextmanager
    def counted(self, most: int | None) -> Iterator[None]:
        """Counts a run that the fleet has allowed.

        Args:
            most: runs at the same time.
        """
        self._running += 1
        are_few = most is None or self._running <= most
        self._world.invariants.check(are_few or not self.holds_exclusion, f"budget: {self._running} runs at a time")
        try:
            yield
        finally:
            self._running -= 1

    def on_spent(self, size: int, refused: object) -> None:
        """The budget of the fleet is not exceeded."""
        if refused is None and self.most_spent is not None:
            self.spent += size
            text = f"budget: {self.spent} of {self.most_spent} bytes were spent"
            self._world.invariants.check(self.spent <= self.most_spent, text)
