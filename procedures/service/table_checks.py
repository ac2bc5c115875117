"""What the service asks about a table before it starts a run, with a time limit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from catalog.errors import FileSystemError
from catalog.properties.optimization_properties import Triggers
from procedures.service.execution import Engine
from procedures.service.timed_calls import TimedCalls
from procedures.service.worker import Worker

_Answer = TypeVar("_Answer")
CHECK_SECONDS, FILES_SECONDS = 10.0, 60.0
"""A check of a table, such as whether it is suspended, ends after so long; one that lists its files takes longer."""


@dataclass(frozen=True)
class TableChecks:
    """Checks of tables with a time limit, so that a file system without an answer blocks no other table.

    Attributes:
        engine: accesses the tables.
        pool: scheduler pool of the jobs.
        calls: makes the checks.
    """

    engine: Engine
    pool: str
    calls: TimedCalls = field(default_factory=TimedCalls)

    def suspended(self, locations: Collection[str]) -> Mapping[str, bool | Exception]:
        """Whether tables are suspended, or what was raised; a table without an answer in time is missing."""
        checks = {place: self._prepared(partial(self.engine.suspended, place)) for place in locations}
        return self.calls.answers(checks, CHECK_SECONDS)

    def may_run(self, questions: Mapping[Worker, Triggers]) -> dict[Worker, tuple[bool, bool] | Exception]:
        """Whether tables are suspended, and whether their runs may start; all are asked at the same time.

        Args:
            questions: for the worker of each table, its triggers. One of them has to be reached, if there are any.

        Returns:
            Two answers for each table, or what was raised: a ``FileSystemError`` if there is no answer in time, or an
            earlier check has not ended.
        """
        answers: dict[Worker, tuple[bool, bool] | Exception] = {}
        # The first list of files of a large table takes longer.
        for seconds, is_of_files in ((CHECK_SECONDS, False), (FILES_SECONDS, True)):
            asked = {w: triggers for w, triggers in questions.items() if triggers.of_files == is_of_files}
            checks = {w.location: self._prepared(partial(self._check, w, triggers)) for w, triggers in asked.items()}
            answered = self.calls.answers(checks, seconds)
            late = FileSystemError(f"No answer within {seconds:g} seconds; other tables do not wait for it.")
            answers |= {worker: answered.get(worker.location, late) for worker in asked}
        return answers

    def _check(self, worker: Worker, triggers: Triggers) -> tuple[bool, bool]:
        suspended = self.engine.suspended(worker.location)
        return suspended, not suspended and (not triggers.any or self._is_reached(worker, triggers))

    def _is_reached(self, worker: Worker, triggers: Triggers) -> bool:
        if triggers.commits is not None:
            after = -1 if worker.settled is None else worker.settled
            newest, most = worker.version or 0, triggers.commits
            if self.engine.commits(worker.location, after, newest, most) >= most:
                return True
        if not triggers.of_files:
            return False
        files = self.engine.files(worker.name)
        return (
            (triggers.unindexed_bytes is not None and files.unindexed_bytes >= triggers.unindexed_bytes)
            or (
                triggers.unindexed_share is not None
                and files.unindexed_bytes > 0
                and files.unindexed_bytes >= triggers.unindexed_share * files.bytes
            )
            or (triggers.small_files is not None and files.small_files >= triggers.small_files)
        )

    def _prepared(self, check: Callable[[], _Answer]) -> Callable[[], _Answer]:
        def prepared() -> _Answer:
            self.engine.prepare(self.pool)
            return check()

        return prepared
