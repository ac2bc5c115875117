"""Names of tables and columns as SQL writes them."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def quoted(part: str) -> str:
    """Returns one part of a name as SQL reads it: in backquotes where it needs them."""
    return part if _PLAIN.fullmatch(part) else "`" + part.replace("`", "``") + "`"


def name_parts(name: str) -> list[str]:
    """Returns the parts of a name as SQL writes it."""
    return [match[1].replace("``", "`") if match[1] else match[2] for match in _PART.finditer(name)]
