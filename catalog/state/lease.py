"""One lease per table, so that two optimizers do not waste each other's work; correctness never depends on it.

Source:
    Leases as expiring locks: Gray and Cheriton, "Leases: an efficient fault-tolerant mechanism" (1989).
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from catalog.clock import SYSTEM_CLOCK, Clock
from catalog.history.moments import LAST_MILLIS
from catalog.state.state_files import NOT_ACCESSIBLE, Missing, Unreadable, access_problem, parse, read, warn_once
from catalog.table.managed_table import ManagedTable

logger = logging.getLogger(__name__)

LEASE_FILE = "lease.json"
# Renewed three times in its time; a crashed holder blocks the table for this long at most.
LEASE_MILLIS = 60_000
# A lease that ends later than so many lease times from now is none: no holder with a correct clock writes it, and a
# wrong clock must not block a table for years.
MOST_LEASE_TIMES = 3

_ADVICE = (
    "The lease is ignored, and the next optimization replaces it. If the warning comes back, delete the file; where "
    "'expires_at' is too large, compare the clocks of the hosts."
)
_BLOCKED_ADVICE = "Optimizations go on without a lease, so that two may do the same work; delete what is there."


@dataclass(frozen=True)
class Lease:
    """Who optimizes a table.

    Attributes:
        run_id: the holder's run.
        holder: host and process, for people.
        trigger: who asked for the run.
        acquired_at: epoch milliseconds.
        expires_at: epoch milliseconds; afterwards anybody may take it.
    """

    run_id: str
    holder: str
    trigger: str
    acquired_at: int
    expires_at: int

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
            acquired_at=fields.whole("acquired_at"),
            expires_at=fields.whole("expires_at", most=latest),
        ),
    )


def read_lease(table: ManagedTable, now: int | None = None) -> Lease | None:
    """The lease on a table, expired or not; None when there is none or it cannot be read.

    Args:
        table: the table.
        now: as for ``parse_lease``.
    """
    lease = read(table, LEASE_FILE, partial(parse_lease, now=now), _ADVICE)
    return None if isinstance(lease, (Missing, Unreadable)) else lease


@dataclass(frozen=True)
class Acquired:
    """The run holds the lease.

    Attributes:
        is_stored: whether other processes can see it; False where the file system does not let anybody write it.
    """

    is_stored: bool = True


@dataclass(frozen=True)
class HeldBy:
    """Another run holds the lease."""

    lease: Lease


def holder_of(table: ManagedTable, now: int) -> Lease | None:
    """The unexpired lease on a table, None when the table is free; it ends within ``MOST_LEASE_TIMES`` lease times.

    Args:
        table: the table.
        now: epoch milliseconds.
    """
    lease = read_lease(table, now)
    return lease if lease is not None and lease.expires_at > now else None


def acquire(table: ManagedTable, run_id: str, trigger: str, now: int) -> Acquired | HeldBy:
    """Takes the lease, unless another run holds it.

    Args:
        table: the table.
        run_id: the run that asks; it may hold the lease already.
        trigger: who asked for the run.
        now: epoch milliseconds.
    """
    held = _lease_of_another(table, run_id, now)
    if held is not None:
        return HeldBy(held)
    mine = Lease(run_id, this_process(), trigger, now, now + LEASE_MILLIS)
    if not table.create_state(LEASE_FILE, mine.to_json()):
        # Another run created the file since; otherwise the file has expired, or cannot be read.
        held = _lease_of_another(table, run_id, now)
        if held is not None:
            return HeldBy(held)
        try:
            table.write_state(LEASE_FILE, mine.to_json())
        except (Py4JError, PySparkException, OSError) as error:
            warn_once(table, LEASE_FILE, Unreadable(NOT_ACCESSIBLE, access_problem(error)), _BLOCKED_ADVICE)
            return Acquired(is_stored=False)
    # Of two runs that saw the table free, the last one to write the file holds the lease.
    held = _lease_of_another(table, run_id, now)
    return Acquired() if held is None else HeldBy(held)


def _lease_of_another(table: ManagedTable, run_id: str, now: int) -> Lease | None:
    lease = holder_of(table, now)
    return lease if lease is not None and lease.run_id != run_id else None


@contextmanager
def renewed(table: ManagedTable, run_id: str, trigger: str, clock: Clock = SYSTEM_CLOCK) -> Iterator[None]:
    """Renews an acquired lease in the background while the block runs, and deletes it afterwards.

    Args:
        table: the table.
        run_id: the run that acquired it.
        trigger: who asked for the run.
        clock: the time.
    """
    ended = threading.Event()
    acquired = clock.now()

    def keep() -> None:
        # This thread also deletes the lease: the caller's thread may be interrupted, and then cannot write files.
        while not clock.wait(ended, LEASE_MILLIS / 3000):
            attempt(renew)
        attempt(partial(_release, table, run_id))

    def renew() -> None:
        now = clock.now()
        # Another run holds the lease if this process was suspended for longer than a lease time.
        if _lease_of_another(table, run_id, now) is None:
            lease = Lease(run_id, this_process(), trigger, acquired, now + LEASE_MILLIS)
            table.write_state(LEASE_FILE, lease.to_json())

    def attempt(step: Callable[[], None]) -> None:
        try:
            step()
        except (Py4JError, PySparkException, OSError) as error:
            # Correctness does not depend on the lease: the run goes on, and the next attempt may succeed.
            problem = Unreadable(NOT_ACCESSIBLE, access_problem(error))
            warn_once(table, LEASE_FILE, problem, _BLOCKED_ADVICE)

    thread = threading.Thread(target=keep, name=f"use-lease-{run_id}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _release(table: ManagedTable, run_id: str) -> None:
    lease = read_lease(table)
    if lease is not None and lease.run_id == run_id:
        table.delete_state(LEASE_FILE)
