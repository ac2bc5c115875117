"""Failures in a row, after which a table is tried less and less often."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.epoch_millis import moment

LONGEST_PAUSE_MILLIS = 86_400_000
"""Time after which a table that keeps failing is tried again, at the latest."""
QUARANTINE_FAILURES = 5
"""After so many failures in a row, the state of the table says that it is in quarantine."""


@dataclass
class FailureStreak:
    """The failures since the last success.

    Attributes:
        attempts: what fails, as people name it.
        count: failures in a row.
        error: code and message of the last one; None after a success.
    """

    attempts: str
    count: int = 0
    error: str | None = None

    def add(self, error: str | None) -> None:
        """Counts a failure; one that only lost to others has no error."""
        self.count, self.error = self.count + 1, error

    def end(self) -> None:
        """Ends the streak: an attempt succeeded."""
        self.count, self.error = 0, None

    def pause(self, interval: int) -> int:
        """Milliseconds until the next attempt: twice as long for each failure, up to a day.

        Args:
            interval: milliseconds after the first failure.
        """
        return max(interval, min(interval << min(self.count - 1, 20), LONGEST_PAUSE_MILLIS))

    def note(self, due_at: int) -> str:
        """Says that the table is tried less often; empty before it has failed many times.

        Args:
            due_at: when it is tried again, epoch milliseconds.
        """
        if self.count < QUARANTINE_FAILURES:
            return ""
        due = f"{moment(due_at):%Y-%m-%d %H:%M:%S} UTC"
        return f"QUARANTINED: {self.count} {self.attempts} in a row failed; the next one is at {due}"
