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
        return self._first_part + (f" -> {self.advice}" if self.advice else "")

    @property
    def _first_part(self) -> str:
        return f"{self.state:<5} {self.check:<12} {self.message}"

    def fitted(self, width: int) -> str:
        """Returns the finding for a terminal: the advice has a line of its own if one line is too long.

        Args:
            width: of the terminal, in characters.
        """
        if self.advice is None or len(self.line) <= width:
            return self.line
        return f"{self._first_part}\n{'':<19}-> {self.advice}"
