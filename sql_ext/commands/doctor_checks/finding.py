"""The result of a check."""

from __future__ import annotations

from dataclasses import dataclass

from sql_ext.commands.hanging_lines import hanging

OK, WARN, FAIL = "ok", "warn", "fail"
# Where messages begin.
_MARGIN = 19


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
        """Returns the finding for a terminal.

        If one line is too long, the message is wrapped. The advice then has a line of its own, which is not wrapped,
        because it may be a command to copy.

        Args:
            width: of the terminal, in characters.
        """
        if len(self.line) <= width:
            return self.line
        text = hanging(self._first_part, _MARGIN, width)
        return f"{text}\n{'':<{_MARGIN}}-> {self.advice}" if self.advice else text
