"""The file ``spark-defaults.conf``, whose settings apply to every session of a Spark."""

from __future__ import annotations

import re
from pathlib import Path


def defaults_of(file: Path) -> dict[str, str]:
    """Returns the settings of a ``spark-defaults.conf``; empty if there is no such file."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    lines = (line.strip() for line in text.splitlines())
    pairs = (re.split(r"[\s=:]+", line, maxsplit=1) for line in lines if line and not line.startswith("#"))
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
