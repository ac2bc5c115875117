"""One lease per table, so that two optimizers do not waste each other's work; correctness never depends on it.

A lease may name a stored plan. Then all runs that execute this plan share it: the file names one of them, and each has
a file of its own next to the plan. A run that ends transfers the lease to another run by writing that run's lease
into the file.

Source:
    Leases as expiring locks: Gray and Cheriton, "Leases: an efficient fault-tolerant mechanism" (1989).
"""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from catalog.clock import SYSTEM_CLOCK, Clock
from catalog.epoch_millis import LAST_MILLIS
from catalog.errors import ConcurrentChangeError
from catalog.jvm.raised_errors import file_errors
from catalog.state.cancel_requests import cancel_request, delete_request, delete_requests
from catalog.state.plan_ids import is_plan_id
from catalog.state.renewal import renewed_in_background
from catalog.state.state_files import (
    NOT_ACCESSIBLE,
    Missing,
    StateFolder,
    Unreadable,
    access_problem,
    parse,
    read,
    warn_once,
)

if TYPE_CHECKING:
    from catalog.table.managed_table import ManagedTable

logger = logging.getLogger(__name__)

LEASE_FILE = "lease.json"
# Renewed three times in its time; a crashed holder blocks the table for this long at most.
LEASE_MILLIS = 45_000
RENEWAL_SECONDS = LEASE_MILLIS // 3000
# A lease that ends later than so many lease times from now is invalid: no holder with a correct clock writes it, and a
# wrong clock must not block a table for years.
MOST_LEASE_TIMES = 3

_ADVICE = (
    "The lease is ignored, and the next optimization replaces it. If the warning comes back, delete the file; where "
    "'expires_at' is too large, compare the clocks of the hosts."
)
_BLOCKED_ADVICE = "Optimizations go on without a lease, so that two may do the same work; delete what is there."


@dataclass(frozen=True)
class Lease:
    """The run that optimizes a table.

    Attributes:
        run_id: the holder's run.
        holder: host and process, for people.
        trigger: what started the run.
        acquired_at: epoch milliseconds.
        expires_at: epoch milliseconds; afterwards any run may take it.
        plan: id of the plan that the run executes groups of, None for any other run.
        application: id of the Spark application; None if the file does not record it.
        current: what the run did when it renewed the lease; None for work that cannot be asked to stop.
        committed: groups that it had committed then.
        committed_bytes: input bytes of these groups.
    """

    run_id: str
    holder: str
    trigger: str
    acquired_at: int
    expires_at: int
    plan: str | None = None
    application: str | None = None
    current: str | None = None
    committed: int | None = None
    committed_bytes: int | None = None

    def to_json(self) -> str:
        """The text of the lease's file."""
        return json.dumps(asdict(self), separators=(",", ":"))


def this_process() -> str:
    """Host and process id, as leases and events name it."""
    return f"{socket.gethostname()}:{os.getpid()}"


def parse_lease(text: str, now: int | None = None) -> Lease | Unreadable:
    """The lease in a file's text, or why there is none; total.

    Args:
        text: the text.
        now: epoch milliseconds; a lease that ends more than ``MOST_LEASE_TIMES`` lease times later is none. Left out,
            it may end at any time.
    """
    latest = LAST_MILLIS if now is None else now + MOST_LEASE_TIMES * LEASE_MILLIS
    return parse(
        text,
        lambda fields: Lease(
            run_id=fields.text("run_id"),
            holder=fields.text("holder"),
            trigger=fields.text("trigger"),
            acquired_at=fields.whole_number("acquired_at"),
            expires_at=fields.whole_number("expires_at", most=latest),
            plan=_plan_id_or_none(fields.text_or_none("plan")),
            application=fields.text_or_none("application"),
            current=fields.text_or_none("current"),
            committed=fields.whole_or_none("committed"),
            committed_bytes=fields.whole_or_none("committed_bytes"),
        ),
    )


def _plan_id_or_none(plan: str | None) -> str | None:
    return plan if plan is not None and is_plan_id(plan) else None


def read_lease(table: StateFolder, now: int | None = None) -> Lease | None:
    """The lease on a table, expired or not; None when there is none or it cannot be read.

    Args:
        table: the table.
        now: as for ``parse_lease``.
    """
    lease = read(table, LEASE_FILE, partial(parse_lease, now=now), _ADVICE)
    return None if isinstance(lease, (Missing, Unreadable)) else lease


@dataclass(frozen=True)
class LeasedRun:
    """A run that others can watch and stop through its lease.

    Attributes:
        application: id of the Spark application; None if it is not known.
        progress: returns what the run does, its committed groups and their bytes.
        cancel: asks the run to stop; gets who asked.
    """

    application: str | None
    progress: Callable[[], tuple[str, int, int]]
    cancel: Callable[[str], object]

    def noted(self, lease: Lease) -> Lease:
        """The lease with what the run does now."""
        current, committed, committed_bytes = self.progress()
        return replace(
            lease,
            application=self.application,
            current=current,
            committed=committed,
            committed_bytes=committed_bytes,
        )


@dataclass(frozen=True)
class Acquired:
    """The run holds the lease.

    Attributes:
        is_stored: whether other processes can see it; False if the file system denies writing.
    """

    is_stored: bool = True


@dataclass(frozen=True)
class HeldBy:
    """Another run holds the lease."""

    lease: Lease


def holder_of(table: StateFolder, now: int) -> Lease | None:
    """The unexpired lease on a table, None when the table is free; it ends within ``MOST_LEASE_TIMES`` lease times.

    Args:
        table: the table.
        now: epoch milliseconds.
    """
    lease = read_lease(table, now)
    return lease if lease is not None and lease.expires_at > now else None


def leases_of(table: ManagedTable, now: int) -> list[Lease]:
    """The unexpired leases on a table: one, or those of all runs that execute the same plan.

    Args:
        table: the table.
        now: epoch milliseconds.
    """
    holder = holder_of(table, now)
    if holder is None:
        return []
    others = [] if holder.plan is None else _sharers(table, holder.plan, now)
    return [holder, *(lease for lease in others if lease.run_id != holder.run_id)]


def acquire(
    table: ManagedTable, run_id: str, trigger: str, now: int, plan: str | None = None, run: LeasedRun | None = None
) -> Acquired | HeldBy:
    """Takes the lease, unless another run holds it.

    Args:
        table: the table.
        run_id: the run; it may hold the lease already.
        trigger: what started the run.
        now: epoch milliseconds.
        plan: the plan that the run executes; other runs of the same plan do not block it.
        run: what others can see of the run; None if they cannot stop it.
    """
    held = conflicting_lease(table, run_id, now, plan)
    if held is not None:
        return HeldBy(held)
    mine = Lease(run_id, this_process(), trigger, now, now + LEASE_MILLIS, plan)
    if run is not None:
        mine = run.noted(mine)
    if plan is not None:
        try:
            table.write_state(_sharer_file(plan, run_id), mine.to_json())
        except file_errors() as error:
            warn_once(table, LEASE_FILE, Unreadable(NOT_ACCESSIBLE, access_problem(error)), _BLOCKED_ADVICE)
    # Another run created the file, or the file has expired or cannot be read. What was deleted since the first attempt
    # must not be overwritten: a third run may have created it anew.
    for _ in range(2):
        if table.create_state(LEASE_FILE, mine.to_json()):
            break
        held = conflicting_lease(table, run_id, now, plan)
        if held is not None:
            return _refused(table, run_id, plan, held)
    else:
        try:
            table.write_state(LEASE_FILE, mine.to_json())
        except file_errors() as error:
            warn_once(table, LEASE_FILE, Unreadable(NOT_ACCESSIBLE, access_problem(error)), _BLOCKED_ADVICE)
            return Acquired(is_stored=False)
    # Of two runs that saw the table free, the last one to write the file holds the lease.
    held = conflicting_lease(table, run_id, now, plan)
    return Acquired() if held is None else _refused(table, run_id, plan, held)


def _refused(table: ManagedTable, run_id: str, plan: str | None, held: Lease) -> HeldBy:
    if plan is not None:
        table.delete_state(_sharer_file(plan, run_id))
    return HeldBy(held)


def conflicting_lease(table: ManagedTable, run_id: str | None, now: int, plan: str | None = None) -> Lease | None:
    """The unexpired lease of another run that does not execute the same plan.

    Args:
        table: the table.
        run_id: the run; None = the lease of any run counts.
        now: epoch milliseconds.
        plan: the plan that the run executes.
    """
    lease = holder_of(table, now)
    if lease is None or lease.run_id == run_id or (plan is not None and lease.plan == plan):
        return None
    return lease


@contextmanager
def renewed(
    table: ManagedTable,
    run_id: str,
    trigger: str,
    clock: Clock = SYSTEM_CLOCK,
    plan: str | None = None,
    run: LeasedRun | None = None,
) -> Iterator[None]:
    """Renews an acquired lease in the background while the block runs, and deletes it afterwards.

    Each renewal notes the progress of the run, and looks for a request to stop it.

    Args:
        table: the table.
        run_id: the run that acquired it.
        trigger: what started the run.
        clock: the time.
        plan: the plan that the run executes; if other runs execute it too, one of them gets the lease.
        run: as for ``acquire``.
    """
    acquired = clock.now()

    def renew() -> None:
        now = clock.now()
        mine = Lease(run_id, this_process(), trigger, acquired, now + LEASE_MILLIS, plan)
        if run is not None:
            mine = run.noted(mine)
            request = cancel_request(table, run_id)
            if request is not None:
                run.cancel(request.by)
        if plan is not None:
            table.write_state(_sharer_file(plan, run_id), mine.to_json())
        # Another run holds the lease if this process was suspended for longer than a lease time.
        if conflicting_lease(table, run_id, now, plan) is None:
            table.write_state(LEASE_FILE, mine.to_json())

    def warn(problem: Unreadable) -> None:
        warn_once(table, LEASE_FILE, problem, _BLOCKED_ADVICE)

    def end() -> None:
        _release(table, run_id, plan, clock.now())

    with renewed_in_background(f"use-lease-{run_id}", clock, RENEWAL_SECONDS, renew, end, warn):
        yield


@contextmanager
def exclusive_lease(table: ManagedTable, run_id: str, trigger: str, clock: Clock) -> Iterator[None]:
    """Holds the lease while the block runs.

    Args:
        table: the table.
        run_id: names the work in ``use.status``.
        trigger: who asked.
        clock: the time.

    Raises:
        ConcurrentChangeError: another run holds it.
    """
    held = acquire(table, run_id, trigger, clock.now())
    if isinstance(held, HeldBy):
        raise ConcurrentChangeError(
            f"{table.name} is being optimized by {held.lease.holder}: nothing was changed. Call again when the run has "
            "ended."
        )
    with renewed(table, run_id, trigger, clock):
        yield


def _release(table: ManagedTable, run_id: str, plan: str | None, now: int) -> None:
    others = []
    if plan is not None:
        table.delete_state(_sharer_file(plan, run_id))
        others = _sharers(table, plan, now)
    lease = read_lease(table)
    is_taken_over = lease is not None and lease.run_id != run_id and (plan is None or lease.plan != plan)
    if others or is_taken_over:
        delete_request(table, run_id)
    else:
        # Those to runs that have crashed, too.
        delete_requests(table)
    if lease is None or is_taken_over:
        return
    if plan is not None and others:
        if lease.run_id == run_id:
            _transfer(table, plan, others, now)
        return
    table.delete_state(LEASE_FILE)
    if plan is not None:
        # A run of the plan that has begun since they were listed relies on the lease that was there.
        begun = _sharers(table, plan, now)
        if begun and table.create_state(LEASE_FILE, begun[0].to_json()):
            _transfer(table, plan, begun, now)


def _transfer(table: ManagedTable, plan: str, others: list[Lease], now: int) -> None:
    """Gives the lease to another run of the plan; if that run has ended meanwhile, to the next one."""
    while others:
        heir = others[0]
        table.write_state(LEASE_FILE, heir.to_json())
        others = _sharers(table, plan, now)
        if any(other.run_id == heir.run_id for other in others):
            return
    # All of them have ended: each deleted its own file before it looked at the lease.
    table.delete_state(LEASE_FILE)


def _sharer_file(plan: str, run_id: str) -> str:
    return f"plans/{plan}/runs/{run_id}.json"


def _sharers(table: ManagedTable, plan: str, now: int) -> list[Lease]:
    """The runs that execute a plan, as far as their files have not expired."""
    leases = []
    for name in table.list_state(f"plans/{plan}/runs"):
        lease = read(table, f"plans/{plan}/runs/{name}", partial(parse_lease, now=now), _ADVICE)
        if isinstance(lease, Lease) and lease.plan == plan and lease.expires_at > now:
            leases.append(lease)
    return leases
