"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass

OK, WARN, FAIL = "ok", "warn", "fail"


@dataclass(frozen=True)
class Finding:
    """One line of the doctor.

    Attributes:
        check: what was looked at.
        state: ``ok``, ``warn`` (works, or may work, and should be known) or ``fail``.
        message: what was found.
        advice: what to do about it; None where nothing is to be done.
    """

    check: str
    state: str
    message: str
    advice: str | None = None

    @property
    def line(self) -> str:
        """For people."""
        return f"{self.state:<5} {self.check:<12} {self.message}" + (f" -> {self.advice}" if self.advice else "")
