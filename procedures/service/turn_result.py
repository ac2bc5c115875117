"""A turn of a table: its strategies, then its maintenance, and what they have done."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from catalog.errors import ConcurrentChangeError
from catalog.state.fleet_ledger import TOO_LARGE, Refusal
from catalog.system_tables.system_table import error_text
from procedures.declare.runs import Run
from procedures.service.execution import Engine, RunOutcome, Turn
from procedures.service.schedule import Schedule

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class TurnResult:
    """The result of a run.

    Attributes:
        outcome: of its strategies.
        error: code and message of the error of its strategies; None if there was none.
        maintained: the maintenance that it has done.
        maintenance_errors: code and message of each error of its maintenance.
        has_conflict: whether a concurrent write ended one of its steps.
    """

    outcome: RunOutcome = field(default_factory=lambda: RunOutcome(None))
    error: str | None = None
    maintained: tuple[str, ...] = ()
    maintenance_errors: tuple[str, ...] = ()
    has_conflict: bool = False

    @property
    def problems(self) -> tuple[str, ...]:
        """All errors, those of strategies first."""
        return self.maintenance_errors if self.error is None else (self.error, *self.maintenance_errors)


@dataclass(frozen=True)
class EndedTurn:
    """A run that has ended.

    Attributes:
        run: the run.
        turn: what it was allowed to rewrite.
        result: what it has done.
    """

    run: Run
    turn: Turn
    result: TurnResult

    @property
    def refusal(self) -> Refusal | None:
        """Why a budget refused bytes or the run; None if none did."""
        return self.turn.budget.refusal

    @property
    def is_too_large(self) -> bool:
        """Whether no budget of this size will ever allow what comes next."""
        return self.refusal is not None and self.refusal.code == TOO_LARGE

    @property
    def rewritten(self) -> int:
        """Bytes that it has rewritten."""
        return self.run.committed_bytes

    @property
    def found_lease(self) -> bool:
        """Whether another process was optimizing the table."""
        return self.result.outcome.totals.lease_held


def run_turn(
    engine: Engine, run: Run, schedule: Schedule, maintenance: Collection[str], pool: str, turn: Turn
) -> TurnResult:
    """Optimizes and maintains a table within the budgets of the fleet.

    The maintenance runs even if the optimization has failed: files age, and the log grows, in any case.

    Args:
        engine: accesses the table.
        run: the run; it begins no further step after it was asked to stop.
        schedule: the strategies to run, and the parameters.
        maintenance: the maintenance that is due.
        pool: scheduler pool of the jobs.
        turn: what the run may rewrite.

    Returns:
        The result. Errors are part of it, and not raised.
    """
    errors: list[str] = []
    has_conflict = False

    def attempt(step: Callable[[], _Result], default: _Result) -> _Result:
        nonlocal has_conflict
        try:
            return step()
        except ConcurrentChangeError:
            has_conflict = True
        except Exception as error:  # noqa: BLE001 - shown in the table's state; the next run retries
            errors.append(error_text(error))
        return default

    outcome, maintained = RunOutcome(None), []
    with turn.budget.running(run) as refused:
        if refused is not None:
            return TurnResult()
        if schedule.strategies and turn.is_affordable():
            outcome = attempt(partial(engine.run, run, schedule, pool, turn), outcome)
        of_strategies = len(errors)
        for name in maintenance:
            work = partial(engine.maintain, run, schedule, name, pool)
            if run.stop_reason is None and attempt(work, False):
                maintained.append(name)
    return TurnResult(
        outcome,
        next(iter(errors[:of_strategies]), None),
        tuple(maintained),
        tuple(errors[of_strategies:]),
        has_conflict,
    )
