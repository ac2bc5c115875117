"""SQL text as its statements."""

from __future__ import annotations

import re

# What may hold a semicolon that ends nothing: texts, quoted names and comments. Raw texts know no escapes. An open one
# reaches to the end, where Spark's parser finds it.
_OPAQUE = re.compile(
    r"""
    (?<![A-Za-z0-9_])[rR]'[^']*(?:'|\Z)      | (?<![A-Za-z0-9_])[rR]"[^"]*(?:"|\Z)
    | '(?:\\.|[^'\\])*(?:'|\Z)               | "(?:\\.|[^"\\])*(?:"|\Z)
    | `[^`]*(?:`|\Z)
    | --(?:\\\n|[^\n])*
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_SCRIPT = re.compile(r"(?:[A-Za-z_]\w*\s*:\s*)?BEGIN\b", re.IGNORECASE)


def statements(text: str) -> list[str]:
    """Splits at the semicolons between statements; parts that hold nothing but comments are left out.

    A script (``BEGIN … END``) reaches to the end of the text.

    Args:
        text: one or several statements.
    """
    found: list[str] = []
    start = place = 0
    holds_words = False
    while place < len(text):
        after = _after_opaque(text, place)
        if after is not None:
            holds_words = holds_words or not text.startswith(("--", "/*"), place)
            place = after
        elif text[place] == ";":
            if holds_words:
                found.append(text[start:place].strip())
            place += 1
            start, holds_words = place, False
        else:
            if not holds_words and not text[place].isspace():
                if _SCRIPT.match(text, place):
                    break
                holds_words = True
            place += 1
    if holds_words or place < len(text):
        found.append(text[start:].strip())
    return found


def _after_opaque(text: str, place: int) -> int | None:
    """Where a text, quoted name or comment that begins here ends; None where none does. Comments nest."""
    if text.startswith("/*", place):
        depth, at = 1, place + 2
        while depth:
            edge = _COMMENT_EDGE.search(text, at)
            if edge is None:
                return len(text)
            depth += 1 if edge[0] == "/*" else -1
            at = edge.end()
        return at
    match = _OPAQUE.match(text, place)
    return match.end() if match else None
