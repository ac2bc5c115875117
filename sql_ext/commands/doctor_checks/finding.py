"""The result of a check."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

OK, WARN, FAIL = "ok", "warn", "fail"
# Columns of a terminal before the message, and for it.
_MARGIN, _LEAST_WIDTH = 19, 20


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
        lines = textwrap.wrap(
            self._first_part,
            max(width, _MARGIN + _LEAST_WIDTH),
            subsequent_indent=" " * _MARGIN,
            drop_whitespace=True,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return "\n".join([*lines, *([f"{'':<{_MARGIN}}-> {self.advice}"] if self.advice else [])])
