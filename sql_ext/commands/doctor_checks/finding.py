"""The result of a check."""

from __future__ import annotations

from dataclasses import dataclass

OK, WARN, FAIL = "ok", "warn", "fail"


@dataclass(frozen=True)
class Finding:
    """One line of the doctor.

    Attributes:
        check: subject of the check.
        state: ``ok``, ``warn`` (works, or may work, with a caveat) or ``fail``.
        message: the result.
        advice: how to fix the problem; None if there is none.
    """

    check: str
    state: str
    message: str
    advice: str | None = None

    @property
    def line(self) -> str:
        """The finding as one line of output."""
        return f"{self.state:<5} {self.check:<12} {self.message}" + (f" -> {self.advice}" if self.advice else "")
