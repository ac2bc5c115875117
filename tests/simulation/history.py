"""What happened in a history, step by step, and the violation that ended it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


class Violation(BaseException):
    """An invariant does not hold; no code of the product handles it."""


@dataclass
class History:
    """One history.

    Attributes:
        seed: makes it again.
        entries: time in milliseconds since the start, process, and what it did.
        violation: the invariant that did not hold; None if all did.
        steps: how many steps the processes took.
    """

    seed: int
    entries: list[tuple[int, str, str]] = field(default_factory=list)
    violation: str | None = None
    steps: int = 0
    kinds: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()

    def text(self, last: int | None = None) -> str:
        """The history for people.

        Args:
            last: only so many of the last entries; all when left out.
        """
        entries = self.entries if last is None else self.entries[-last:]
        return "\n".join([self._head(), *_lines(entries), f"violation: {self.violation}"])

    def _head(self) -> str:
        faults = ", ".join(self.kinds) or "none"
        return f"seed {self.seed}; processes: {', '.join(self.actors)}; faults: {faults}; {self.steps} steps"


def _lines(entries: Iterable[tuple[int, str, str]]) -> Iterable[str]:
    for time, process, what in entries:
        yield f"{time:>10,} ms  {process:<14} {what}"
