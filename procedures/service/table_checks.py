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

    def may_run(self, worker: Worker, triggers: Triggers) -> tuple[bool, bool]:
        """Whether a table is suspended, and whether a run may start.

        Args:
            worker: of the table.
            triggers: one of them has to be reached, if there are any.

        Raises:
            FileSystemError: there is no answer in time, or an earlier check has not ended.
        """

        def check() -> tuple[bool, bool]:
            suspended = self.engine.suspended(worker.location)
            return suspended, not suspended and (not triggers.any or self._is_reached(worker, triggers))

        # The first list of files of a large table takes longer.
        seconds, place = FILES_SECONDS if triggers.of_files else CHECK_SECONDS, worker.location
        answer = self.calls.answers({place: self._prepared(check)}, seconds).get(place)
        if answer is None:
            raise FileSystemError(f"No answer within {seconds:g} seconds; other tables do not wait for it.")
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _is_reached(self, worker: Worker, triggers: Triggers) -> bool:
        if triggers.commits is not None:
            after = -1 if worker.settled is None else worker.settled
            if self.engine.commits(worker.location, after, triggers.commits) >= triggers.commits:
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
