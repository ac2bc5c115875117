"""Runs of the service that have ended, for metrics, notifications and logs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from catalog.clock import Clock
from catalog.state.fleet_ledger import Refusal
from procedures.declare.runs import Stop
from procedures.process.notifications import BUDGET_USED_UP, RUN_FAILED, Notification, Notifications
from procedures.service.service_metrics import (
    COMPLETED,
    CONFLICT,
    FAILED,
    LEASE_HELD,
    STOPPED,
    RunTotals,
    ServiceMetrics,
)
from procedures.service.turn_result import EndedTurn

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


class RunReports:
    """Reports ended runs and used-up budgets.

    Args:
        clock: provides the time.
        notifications: gets the failures of runs, and the budgets that are used up.
        metrics: counts the runs.
        receiver: is called with each run.
        is_silent: whether failed runs are not passed to the receiver, because Spark has stopped.
    """

    def __init__(
        self,
        clock: Clock,
        notifications: Notifications,
        metrics: ServiceMetrics,
        receiver: RunReceiver,
        is_silent: Callable[[], bool],
    ) -> None:
        self._clock = clock
        self._notifications = notifications
        self._metrics = metrics
        self._receiver = receiver
        self._is_silent = is_silent

    def ended(self, table: str, ended: EndedTurn) -> None:
        """Reports a run that has ended.

        Args:
            table: full name.
            ended: the run.
        """
        now = self._clock.now()
        run, result, refusal, offer = ended.run, ended.result, ended.refusal, ended.turn.offer
        report = EndedRun(
            table,
            run.started_at,
            now - run.started_at,
            result.outcome.totals,
            result.problems,
            result.has_conflict,
            run.stop_reason,
            result.maintained,
            "" if refusal is None else refusal.text,
            None if offer is None else offer.saving,
        )
        if report.problems:
            self._notifications.send(Notification(RUN_FAILED, table, now, report.problems[0]))
        self._metrics.record_run(report.outcome, report.totals, table)
        if report.problems and self._is_silent():
            return
        try:
            self._receiver(report)
        except Exception as error:  # noqa: BLE001 - a closed stream must not stop the service
            logger.warning("A receiver of the runs of %s failed: %s", table, error)

    def budget_used_up(self, table: str, refusal: Refusal) -> None:
        """Reports that a budget of the fleet is used up.

        Args:
            table: full name of the table whose run was refused.
            refusal: why.
        """
        logger.warning("A budget of the fleet is used up: %s", refusal.text)
        self._notifications.send(Notification(BUDGET_USED_UP, table, self._clock.now(), refusal.text))
