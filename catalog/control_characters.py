"""Control characters in names and values, which people read as parts of a line."""

from __future__ import annotations

import re

# They end a line or control a terminal. Halves of surrogate pairs cannot be encoded.
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


def without_control_characters(text: str) -> str:
    """Returns a text with a blank in place of its line ends and other control characters.

    Args:
        text: a text that may have names of tables and columns, and values.
    """
    return _CONTROL_CHARACTERS.sub(" ", text)
