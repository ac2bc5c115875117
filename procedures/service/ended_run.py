"""A run of the service that has ended, for metrics, logs and people."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from procedures.declare.runs import Stop
from procedures.service.service_metrics import COMPLETED, CONFLICT, FAILED, LEASE_HELD, STOPPED, RunTotals

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class EndedRun:
    """A run of the service that has ended.

    Attributes:
        table: full name.
        started_at: epoch milliseconds.
        duration_ms: time taken.
        totals: of its groups.
        problems: the errors that it has raised, each as its code and a sentence.
        has_conflict: whether a concurrent write ended one of its steps.
        stop: why it ended early; None if nothing has stopped it.
        maintained: the maintenance that it has done.
        refusal: why a budget refused it; '' if none did.
        saving: bytes that reads are expected to save per day; None if the run was not appraised.
    """

    table: str
    started_at: int
    duration_ms: int
    totals: RunTotals = field(default_factory=RunTotals)
    problems: tuple[str, ...] = ()
    has_conflict: bool = False
    stop: Stop | None = None
    maintained: tuple[str, ...] = ()
    refusal: str = ""
    saving: float | None = None

    @property
    def outcome(self) -> str:
        """One of ``RUN_OUTCOMES``."""
        if self.problems:
            return FAILED
        if self.has_conflict or self.totals.ended_by_conflict:
            return CONFLICT
        if self.totals.lease_held:
            return LEASE_HELD
        return COMPLETED if self.stop is None else STOPPED


RunReceiver: TypeAlias = Callable[[EndedRun], object]
"""A function that is called with each run that has ended, in the thread of the run."""


def log_problems(run: EndedRun) -> None:
    """Logs the errors of a run as warnings.

    Args:
        run: the run.
    """
    for problem in run.problems:
        logger.warning("%s: automatic optimization failed: %s", run.table, problem)
    if run.has_conflict:
        logger.info("%s: conflict with another writer; the next run continues", run.table)
