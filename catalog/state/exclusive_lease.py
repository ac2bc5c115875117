"""The lease of a table for work during which no optimization may run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from catalog.clock import Clock
from catalog.errors import ConcurrentChangeError
from catalog.state.lease import HeldBy, acquire, renewed
from catalog.table.managed_table import ManagedTable


@contextmanager
def exclusive_lease(table: ManagedTable, run_id: str, trigger: str, clock: Clock) -> Iterator[None]:
    """Holds the lease while the block runs.

    Args:
        table: the table.
        run_id: names the work in ``use.status``.
        trigger: what started it: ``call``, ``manual``, ``automatic`` or ``cli``.
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
