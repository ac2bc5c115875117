"""The table of predictions in the documentation, from the figures of ``bench/diagnosis.py``.

python bench/diagnosis_page.py   # writes the table into docs/howto/diagnose.md
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from marked_pages import page_with

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "bench" / "results" / "diagnosis.json"
PAGE = ROOT / "docs" / "howto" / "diagnose.md"


def parts_of(figures: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The parts of the page, by the name of their marks."""
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
    return {"predictions": "\n".join(lines) + "\n"}


if __name__ == "__main__":
    PAGE.write_text(page_with(PAGE.read_text("utf-8"), parts_of(json.loads(FIGURES.read_text("utf-8")))), "utf-8")
