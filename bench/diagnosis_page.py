"""The table of predictions in the documentation, from the figures of ``bench/diagnosis.py``.

python bench/diagnosis_page.py   # writes the table into docs/howto/diagnose.md
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "bench" / "results" / "diagnosis.json"
PAGE = ROOT / "docs" / "howto" / "diagnose.md"
_START, _END = "<!-- predictions -->\n", "<!-- end of predictions -->\n"


def table_of(figures: Sequence[Mapping[str, Any]]) -> str:
    """Returns the table in Markdown."""
    lines = ["| table | index | read | today | predicted | measured |", "| --- | --- | --- | --- | --- | --- |"]
    for one in figures:
        name, index = one["name"], one["columns"] or "none"
        if not one["reads"]:
            lines.append(f"| {name} | {index} | | | | |")
        for read in one["reads"]:
            shares = " | ".join(f"{100 * read[share]:.1f} %" for share in ("today", "predicted", "measured"))
            kind = read["kind"].replace("_", r"\_")
            lines.append(f"| {name} | {index} | {kind} | {shares} |")
            name = index = ""
    return "\n".join(lines) + "\n"


def page_with(page: str, table: str) -> str:
    """Returns the page with another table between its marks."""
    head, rest = page.split(_START)
    return head + _START + "\n" + table + "\n" + _END + rest.split(_END)[1]


if __name__ == "__main__":
    PAGE.write_text(page_with(PAGE.read_text("utf-8"), table_of(json.loads(FIGURES.read_text("utf-8")))), "utf-8")
