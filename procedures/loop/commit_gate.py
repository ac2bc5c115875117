"""The commit of a rewrite waits for a moment in which it fails no statement of another session."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

from catalog.clock import Clock
from catalog.errors import ConcurrentChangeError
from catalog.insights.recent_statements import Statement, StatementTail
from catalog.insights.statement_pace import next_pause
from catalog.table.snapshot import TableSnapshot
from procedures.declare.runs import Run

# A commit that was held takes half of it on a busy machine, and longer where a look at the log takes longer.
LEAST_PAUSE_MILLIS = 100
_LOOKS_PER_PAUSE = 4
# Of a pause, what is left for writing the commit after its last check for conflicts.
_WRITE_MILLIS = LEAST_PAUSE_MILLIS // 2
# So long a pause leaves time for a whole commit.
_AMPLE_MILLIS = 2_000
# Between two looks for the next commit.
_LOOK_SECONDS = 0.005


class CommitGate:
    """Opens right after a statement, if the next one is not about to begin.

    A writer that sends one statement after another has none under way right after a commit.

    Args:
        snapshot: the newest version.
        statements: those of the quiet period, at least one.
        millis: the quiet period; after so long without a statement, the gate opens.
        run: whose request to stop ends a wait.
        clock: the time.
    """

    def __init__(
        self, snapshot: TableSnapshot, statements: Sequence[Statement], millis: int, run: Run, clock: Clock
    ) -> None:
        self._run, self._clock = run, clock
        self._tail = StatementTail(snapshot)
        self._spans = [statement.span for statement in statements]
        # The clock of a writer may be ahead.
        self._until = min(max(statement.time for statement in statements), clock.now()) + millis
        self._is_ample = False
        # By the monotonic clock, until when the commit may be written; before the wait for a pause, never.
        self._latest = -math.inf

    def wait_for_statement(self) -> None:
        """Waits until a statement has ended; after a quiet period, no longer.

        The commit then conflicts with it, so that Delta checks for conflicts before the attempt that counts.

        Raises:
            ConcurrentChangeError: the run was asked to stop.
        """
        pause = self._wait(None)
        self._is_ample = pause is None or pause >= _AMPLE_MILLIS

    def wait_for_pause(self, version: int) -> int:
        """Waits until a statement has ended, and the next one is not about to begin; see ``TableTransaction.hold``.

        If the check for conflicts after a wait has used up the pause, the next call waits for another one.

        Raises:
            ConcurrentChangeError: the run was asked to stop, or all statements of a quiet period followed each other
                too fast.
        """
        if not self._is_ample and self._clock.monotonic() > self._latest:
            left = self._wait(LEAST_PAUSE_MILLIS)
            self._latest = math.inf if left is None else self._clock.monotonic() + (left - _WRITE_MILLIS) / 1000
        return max(version, self._tail.version + 1)

    def _wait(self, least_millis: int | None) -> float | None:
        """Waits for a statement with such a pause after it; returns the pause that is left, None if nobody knows it."""
        clock, never = self._clock, threading.Event()
        # Statements that ended before the wait: the next one may have begun.
        self._spans += self._tail.new_spans()
        looked, count = clock.monotonic(), len(self._spans)
        while clock.now() < self._until:
            if self._run.stop_reason is not None:
                raise ConcurrentChangeError("The run was asked to stop while it waited for the end of a statement")
            clock.wait(never, _LOOK_SECONDS)
            begun = clock.monotonic()
            new = self._tail.new_spans()
            if new:
                self._spans += new
                now = clock.monotonic()
                expected = next_pause(self._spans)
                left = None if expected is None else expected - (now - looked) * 1000
                needed = max(least_millis or 0, _LOOKS_PER_PAUSE * (now - begun) * 1000)
                if least_millis is None or left is None or left >= needed:
                    return left
            looked = begun
        if len(self._spans) > count:
            raise ConcurrentChangeError("Statements follow each other without a pause in which a rewrite fails none")
        return None
