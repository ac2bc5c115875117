"""Lines whose text is wrapped beside their label, to fit the width of a terminal."""

from __future__ import annotations

import shutil
import sys
import textwrap

# The text gets this many columns even on a narrower terminal.
_LEAST_WIDTH = 20


def hanging(line: str, margin: int, width: int) -> str:
    """Returns a line wrapped at blanks; words are not broken, because they may be paths to copy.

    Args:
        line: a label and a text.
        margin: where the text begins, in characters.
        width: of the terminal, in characters.
    """
    return textwrap.fill(
        line[margin:],
        max(width, margin + _LEAST_WIDTH),
        initial_indent=line[:margin],
        subsequent_indent=" " * margin,
        break_long_words=False,
        break_on_hyphens=False,
    )


def terminal_width() -> int | None:
    """Returns the width of the terminal that shows standard output, in characters; None in a pipe or a file."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
