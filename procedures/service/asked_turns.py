"""The turns that an owner asks for whatever reads save, in a table with a budget of bytes."""

from __future__ import annotations

from dataclasses import dataclass, field

from procedures.service.failure_streak import FailureStreak
from procedures.service.turn_result import EndedTurn


@dataclass
class AskedTurns:
    """What became of the last of these turns; times are epoch milliseconds.

    Attributes:
        settled: version at which one found nothing more to do.
        has_rest: whether the last one left something to do, for which the next one needs no trigger.
        not_reached: version at which no trigger was reached; the other strategies have their turns all the same.
        failures: turns that failed, or lost to writers, which delay no other strategies.
        paused_until: when the next one may start after such a turn, or after one that was stopped.
    """

    settled: int | None = None
    has_rest: bool = False
    not_reached: int | None = None
    failures: FailureStreak = field(default_factory=lambda: FailureStreak("comparisons by the primary key"))
    paused_until: int = 0

    def may_start(self, now: int, version: int | None) -> bool:
        """Whether the next one may start, as far as the last one decides.

        Args:
            now: epoch milliseconds.
            version: newest version of the table.
        """
        return now >= self.paused_until and (self.not_reached is None or self.not_reached != version)

    def end(self, ended: EndedTurn, now: int, interval: int) -> None:
        """Records the end of one.

        Args:
            ended: the run.
            now: epoch milliseconds.
            interval: milliseconds until the next one after the first that has done nothing.
        """
        outcome, error = ended.result.outcome, ended.result.error
        self.settled, self.not_reached = outcome.settled, None
        self.has_rest = outcome.settled is None
        if error is None and (ended.rewritten or outcome.is_complete):
            self.failures.end()
            return
        # After one that was stopped, the next interval is for the others.
        pause = 2 * interval
        if error is not None or ended.run.stop_reason is None:
            self.failures.add(error)
            pause = self.failures.pause(interval)
        self.paused_until = now + pause
