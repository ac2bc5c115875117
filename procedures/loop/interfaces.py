"""What the optimizer's loop needs from its surroundings, as protocols: tests replace each part by a fake."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from catalog.clock import Clock
from catalog.errors import UseError
from catalog.state.lease import Acquired, HeldBy, Lease
from procedures.declare.runs import Runs, Stop
from procedures.groups.group import Group
from procedures.groups.plan import Arrivals, Plan
from procedures.rewrite.results import RewriteResult


@dataclass(frozen=True)
class PlanRequest:
    """What the next plan may contain.

    Attributes:
        most_groups: groups wanted at most.
        most_bytes: once the groups have this many bytes, no further one is wanted; None = no limit.
        batch_bytes: bytes of a batch at most, after conflicts; None = as the settings say.
        arrivals: which unindexed files are left to the next run; None = none.
        failed: by strategy, paths of files whose groups were not committed because of a conflict, and are to be planned
            again.
        left_out: strategies whose groups no budget of this size pays for.
    """

    most_groups: int = 1
    most_bytes: int | None = None
    batch_bytes: int | None = None
    arrivals: Arrivals | None = None
    failed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()


class Planner(Protocol):
    """Chooses the files of the next iteration."""

    def plan(self, request: PlanRequest) -> Plan:
        """Plans groups on the newest version of the table.

        Raises:
            UseError: the settings do not fit the table.
        """
        ...


class RunLease(Protocol):
    """The lease on the table, for one run."""

    def holder(self) -> Lease | None:
        """The unexpired lease of any run; None when the table is free."""
        ...

    def acquire(self) -> Acquired | HeldBy:
        """Takes the lease, unless another run holds it."""
        ...

    def renewed(self) -> AbstractContextManager[None]:
        """Renews the acquired lease while the block runs, and releases it afterwards."""
        ...


class EventRecorder(Protocol):
    """Keeps the events of a run with the table."""

    def reconcile(self) -> None:
        """Stores the events of commits that an earlier process could not store."""
        ...

    def committed(self, result: RewriteResult) -> None:
        """Stores the event of a committed group; never fails."""
        ...

    def failed(self, group: Group, started_at: int, error: UseError) -> None:
        """Stores the event of a group that was not committed; never fails.

        Args:
            group: what was to be rewritten.
            started_at: epoch milliseconds.
            error: why it failed.
        """
        ...


class ProgressDisplay(Protocol):
    """Shows the progress of a run."""

    def planned(self, size: int, note: str) -> None:
        """Shows the groups that begin now: their bytes, and what they are."""
        ...

    def done(self, size: int) -> None:
        """Counts the bytes of a group that has ended, whether or not it was committed."""
        ...


class GroupThreads(Protocol):
    """Starts the threads in which groups are rewritten."""

    def start(self, number: int, work: Callable[[], None]) -> threading.Thread:
        """Starts a thread for the group of this number."""
        ...

    def prepare(self) -> None:
        """Prepares the calling thread, which ``start`` has started, for the work of its group."""
        ...


@dataclass(frozen=True)
class OptimizerParts:
    """The surroundings of one run.

    Attributes:
        table: full name, for messages.
        planner: chooses files.
        check_writable: raises when the table's folder cannot be written; called before the first rewrite.
        rewrite: rewrites one group in one commit.
        threads: where groups are rewritten.
        lease: the table's lease.
        events: the table's events.
        progress: begins the display of the progress.
        interrupted: whether the caller was asked to stop, as a cancelled JDBC statement asks.
        runs: the runs of this process.
        clock: the time.
        spend: asks a budget for the bytes of a group that is about to begin; returns why they are refused. None = there
            is no budget.
    """

    table: str
    planner: Planner
    check_writable: Callable[[], None]
    rewrite: Callable[[Group], RewriteResult]
    threads: GroupThreads
    lease: RunLease
    events: EventRecorder
    progress: Callable[[], AbstractContextManager[ProgressDisplay]]
    interrupted: Callable[[], bool]
    runs: Runs
    clock: Clock
    spend: Callable[[int], Stop | None] | None = None
