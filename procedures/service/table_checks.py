"""What the service asks about a table before it starts a run, with a time limit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from catalog.errors import FileSystemError
from catalog.properties.optimization_properties import Triggers
from procedures.service.execution import Engine
from procedures.service.worker import Worker

_Answer = TypeVar("_Answer")
CHECK_SECONDS, FILES_SECONDS = 10.0, 60.0
"""A check of a table, such as whether it is suspended, ends after so long; one that lists its files takes longer."""


@dataclass(frozen=True)
class TableChecks:
    """Checks of tables, each in a thread of its own, so that a file system without an answer blocks no other table.

    All checks raise a ``FileSystemError`` if there is no answer in time.

    Attributes:
        engine: accesses the tables.
        pool: scheduler pool of the jobs.
    """

    engine: Engine
    pool: str

    def is_suspended(self, location: str) -> bool:
        """Whether a table is suspended."""
        return self._in_time(partial(self.engine.suspended, location), CHECK_SECONDS)

    def may_run(self, worker: Worker, triggers: Triggers) -> tuple[bool, bool]:
        """Whether a table is suspended, and whether a run may start.

        Args:
            worker: of the table.
            triggers: one of them has to be reached, if there are any.
        """

        def check() -> tuple[bool, bool]:
            suspended = self.engine.suspended(worker.location)
            return suspended, not suspended and (not triggers.any or self._is_reached(worker, triggers))

        # The first list of files of a large table takes longer.
        return self._in_time(check, FILES_SECONDS if triggers.of_files else CHECK_SECONDS)

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

    def _in_time(self, check: Callable[[], _Answer], seconds: float) -> _Answer:
        answers: list[_Answer | BaseException] = []

        def work() -> None:
            try:
                self.engine.prepare(self.pool)
                answers.append(check())
            except BaseException as error:  # noqa: BLE001 - raised by the thread that waits
                answers.append(error)

        thread = threading.Thread(target=work, name="use-check", daemon=True)
        thread.start()
        thread.join(seconds)
        if not answers:
            raise FileSystemError(f"No answer within {seconds:g} seconds; other tables do not wait for it.")
        if isinstance(answers[0], BaseException):
            raise answers[0]
        return answers[0]
