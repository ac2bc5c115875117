"""The budgets of a fleet, for a run of a service: it spends bytes before each group, and counts as a run meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from catalog.clock import Clock
from catalog.errors import UseError
from catalog.properties.fleet_properties import Pool
from catalog.state.fleet_ledger import RUN_MILLIS, FleetLedger, LedgerState, OpenRun, Refusal
from catalog.state.lease import this_process
from catalog.state.renewal import renewed_in_background
from catalog.state.state_files import Unreadable, access_problem
from procedures.declare.runs import Run, Stop

logger = logging.getLogger(__name__)

NOT_ACCESSIBLE = "BUDGET_NOT_ACCESSIBLE"
# A group has at most this share of a budget, apart from a last file.
_GROUPS_OF_A_BUDGET = 4


class RunBudget:
    """What one run may spend.

    Args:
        ledger: opens the ledger.
        pools: the budgets of the table; without any, everything is allowed and no ledger is read.
        database: of the table; None if it is named by its path.
        clock: the time.
        exhausted: called with the first refusal after a budget is used up.

    Attributes:
        refusal: why bytes or the run were refused; None as long as they were not.
    """

    def __init__(
        self,
        ledger: Callable[[], FleetLedger],
        pools: Sequence[Pool],
        database: str | None,
        clock: Clock,
        exhausted: Callable[[Refusal], object] = lambda _: None,
    ) -> None:
        self._ledger = ledger
        self._pools = tuple(pools)
        self._database = database or ""
        self._clock = clock
        self._exhausted = exhausted
        self.refusal: Refusal | None = None

    @property
    def group_bytes(self) -> int | None:
        """Bytes of a group at most; None = unlimited."""
        limits = [pool.max_bytes for pool in self._pools if pool.max_bytes is not None]
        return max(1, min(limits) // _GROUPS_OF_A_BUDGET) if limits else None

    def spend(self, size: int) -> Stop | None:
        """Spends the bytes of a group that is about to begin, whether or not it will be committed.

        Args:
            size: its input bytes.

        Returns:
            Why they are refused; None if they are spent.
        """
        if self.group_bytes is None:
            return None
        return self._asked(lambda state: state.spend(self._pools, self._database, size, self._clock.now()))

    def has_room(self, size: int) -> bool:
        """Whether some bytes may be spent now; spends nothing. If not, ``refusal`` says why.

        Args:
            size: the bytes.
        """
        if self.group_bytes is None:
            return True
        return self._asked(lambda state: state.has_room(self._pools, size, self._clock.now())) is None

    @contextmanager
    def running(self, run: Run) -> Iterator[Stop | None]:
        """Counts a run as one under way while the block runs.

        Args:
            run: the run.

        Yields:
            Why the run is refused; None if it may go on.
        """
        if all(pool.max_runs is None for pool in self._pools):
            yield None
            return
        now = self._clock.now()
        mine = OpenRun(run.run_id, run.table, self._database, this_process(), now + RUN_MILLIS)
        refused = self._asked(lambda state: state.begin(self._pools, mine, now))
        if refused is not None:
            yield refused
            return

        def renew() -> None:
            self._ledger().change(lambda state: (state.renew(mine, self._clock.now()), None))

        def end() -> None:
            self._ledger().change(lambda state: (state.end(run.run_id), None))

        seconds = RUN_MILLIS / 3000
        with renewed_in_background(f"use-fleet-{run.run_id}", self._clock, seconds, renew, end, partial(_warn, run)):
            yield None

    def _asked(self, step: Callable[[LedgerState], tuple[LedgerState, Refusal | None]]) -> Stop | None:
        try:
            refusal = self._ledger().change(step)
        except (Py4JError, PySparkException, UseError, OSError) as error:
            # The budget holds even if nobody can tell what is left of it.
            refusal = Refusal(NOT_ACCESSIBLE, f"the ledger of the fleet: {access_problem(error)}", None)
        if refusal is None:
            return None
        self.refusal = refusal
        if refusal.is_first:
            self._exhausted(refusal)
        return Stop(refusal.code, refusal.message)


def _warn(run: Run, problem: Unreadable) -> None:
    logger.warning("%s: its run %s may be missing in the ledger of the fleet: %s", run.table, run.run_id, problem)
