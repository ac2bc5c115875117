"""Splitting of SQL text into statements."""

from __future__ import annotations

import re

# Parts whose semicolons do not end a statement: strings, bodies between $$ or between two $tag$, quoted names and
# comments. Raw strings have no escapes. A part without its closing quote extends to the end, where Spark's parser
# reports it; but a single $tag$ may be a part of the value that SET takes as it is. Before Spark 4.2, bodies are no
# quotes, but other statements with $$ or $tag$ are errors there anyway.
_OPAQUE = re.compile(
    r"""
    (?<![A-Za-z0-9_])[rR]'[^']*(?:'|\Z)      | (?<![A-Za-z0-9_])[rR]"[^"]*(?:"|\Z)
    | '(?:\\.|[^'\\])*(?:'|\Z)               | "(?:\\.|[^"\\])*(?:"|\Z)
    | \$\$.*?(?:\$\$|\Z)
    | (?P<tag>\$[A-Za-z]+\$).*?(?P=tag)
    | `[^`]*(?:`|\Z)
    | --(?:\\\n|[^\n])*
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_SCRIPT = re.compile(r"(?:[A-Za-z_]\w*\s*:\s*)?BEGIN\b", re.IGNORECASE)


def statements(text: str) -> list[str]:
    """Splits a text at the semicolons between statements and drops parts that contain only comments.

    A script (``BEGIN … END``) extends to the end of the text.

    Args:
        text: one or more statements.
    """
    parts: list[str] = []
    start = place = 0
    has_code = False
    while place < len(text):
        after = _after_opaque(text, place)
        if after is not None:
            has_code = has_code or not text.startswith(("--", "/*"), place)
            place = after
        elif text[place] == ";":
            if has_code:
                parts.append(text[start:place].strip())
            place += 1
            start, has_code = place, False
        else:
            if not has_code and not text[place].isspace():
                if _SCRIPT.match(text, place):
                    break
                has_code = True
            place += 1
    if has_code or place < len(text):
        parts.append(text[start:].strip())
    return parts


def _after_opaque(text: str, place: int) -> int | None:
    """Returns the end of the string, quoted name or comment that starts here; None if none does. Comments nest."""
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
