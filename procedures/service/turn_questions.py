"""Which due tables may start a run: they are asked a few at a time, and their workers record the answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from catalog.clock import Clock
from catalog.properties.optimization_properties import Triggers
from catalog.system_tables.system_table import error_text
from procedures.service.table_checks import TableChecks
from procedures.service.worker import Worker

# Tables that are asked at the same time.
_MOST_ASKED = 16
# The same for tables whose files are listed, which takes a job and memory for each.
_MOST_LISTED = 2
DueTurn = tuple[Worker, tuple[str, ...]]
"""A worker, and the strategies that may start if a trigger is reached."""


@dataclass(frozen=True)
class TurnQuestions:
    """Questions to tables whose turn it is.

    Attributes:
        checks: asks the tables.
        clock: provides the time.
        interval: between two runs of a table, in milliseconds.
        present: holds the lock of the workers, and says whether a worker was not removed meanwhile.
    """

    checks: TableChecks
    clock: Clock
    interval: int
    present: Callable[[Worker], AbstractContextManager[bool]]

    def may_start(self, worker: Worker, now: int) -> bool:
        """Whether a due worker has something to do; reads the table only if necessary."""
        if worker.is_settled:
            self._skip_turn(worker, now)
            return False
        return self._asked({worker: worker.next_triggers(now)}, now).get(worker, (True, False))[1]

    def startable(self, turns: Sequence[DueTurn], now: int) -> list[tuple[Worker, tuple[str, ...], tuple[str, ...]]]:
        """Asks the tables of some turns at the same time.

        Returns:
            The workers whose run may start, each with its strategies and its maintenance.
        """
        questions: dict[Worker, Triggers] = {}
        maintained = {worker: worker.due_maintenance(now) for worker, _ in turns}
        for worker, strategies in turns:
            is_waiting = bool(strategies) and not worker.is_settled
            if is_waiting or maintained[worker]:
                questions[worker] = worker.next_triggers(now) if is_waiting else Triggers()
            if worker.is_settled if strategies else not maintained[worker]:
                self._skip_turn(worker, now)
        answers = self._asked(questions, now)
        # A trigger that cannot be evaluated keeps nobody from maintenance.
        failed = {w: Triggers() for w, asked in questions.items() if maintained[w] and w not in answers and asked.any}
        of_failed = self._asked(failed, now)
        startable = []
        for worker, strategies in turns:
            reached = answers.get(worker, (True, False))[1]
            suspended = (of_failed if worker in failed else answers).get(worker, (True, False))[0]
            chosen = strategies if reached and not worker.is_settled else ()
            maintenance = () if suspended else maintained[worker]
            if chosen or maintenance:
                startable.append((worker, chosen, maintenance))
        return startable

    def _asked(self, questions: Mapping[Worker, Triggers], now: int) -> dict[Worker, tuple[bool, bool]]:
        """Whether tables are suspended, and whether a trigger is reached; maintenance needs none.

        A table whose check fails is missing, and so is one that was removed meanwhile.
        """
        answers: dict[Worker, tuple[bool, bool]] = {}
        versions = {worker: worker.version for worker in questions}
        for worker, answer in self.checks.may_run(questions).items():
            with self.present(worker) as is_present:
                if not is_present:
                    continue
                if isinstance(answer, Exception):
                    worker.record_failed_check(error_text(answer), self.clock.now(), self.interval)
                    continue
                answers[worker] = answer
                worker.suspended, reached = answer
                if worker.suspended:
                    worker.suspend(now, self.interval)
                elif not reached:
                    worker.record_not_reached(versions[worker], now)
        return answers

    def _skip_turn(self, worker: Worker, now: int) -> None:
        with self.present(worker) as is_present:
            if is_present:
                worker.skip_turn(now, self.interval)


def next_asked(left: Sequence[DueTurn], free: int, now: int) -> Sequence[DueTurn]:
    """Returns the first turns, up to the one with which so many runs are expected to start as may start.

    Args:
        left: turns whose tables were not asked yet, in their order.
        free: runs that may start.
        now: epoch milliseconds.
    """
    expected = listed = 0
    for number, (worker, _) in enumerate(left[:_MOST_ASKED], start=1):
        triggers = worker.next_triggers(now)
        expected += not triggers.any
        listed += triggers.of_files
        if expected >= free or listed >= _MOST_LISTED:
            return left[:number]
    return left[:_MOST_ASKED]
