"""The table of layouts in ``docs/comparison.md``, and what README says of it, from the figures of ``bench/layout.py``.

python bench/layout_page.py   # writes the table; README is text, whose sentences a test compares
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from marked_pages import page_with, row

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "bench" / "results" / "layout.json"
PAGE = ROOT / "docs" / "comparison.md"
_QUERIES = {
    "sample 0.01": "sample of 1 %",
    "sample 0.1": "sample of 10 %",
    "box 0.01, 2 columns": "box of 1 %, 2 columns",
    "box 0.01, 3 columns": "box of 1 %, 3 columns",
}


def parts_of(figures: Mapping[str, Any]) -> dict[str, str]:
    """The parts of the page, by the name of their marks."""
    heads = [f"{_QUERIES[query]}: bytes / files" for query in figures["queries"]]
    lines = [row("layout", "writing, relative to plain", *heads), row(*["---"] * (len(heads) + 2))]
    for layout in figures["layouts"]:
        if layout["reads"]:
            cells = [f"{share} / {files}" for share, files in layout["reads"]]
            lines.append(row(layout["name"], layout["to_plain"], *cells))
    return {"layouts": "\n".join(lines) + "\n"}


def sentences_of(figures: Mapping[str, Any]) -> Iterator[str]:
    """The sentences of README that have figures of the comparison."""
    layouts = {layout["name"]: layout for layout in figures["layouts"]}

    def read(layout: str, query: str) -> str:
        share = layouts[layout]["reads"][figures["queries"].index(query)][0]
        return f"{100 * share:.3g} %"

    def writing(layout: str) -> str:
        return f"{layouts[layout]['to_plain']:.1f} times"

    sample, box = "sample 0.01", "box 0.01, 2 columns"
    yield f"a sample of 1 % read {read('USE', sample)} of the table's bytes"
    yield f"a range of two columns with 1 % of the rows read {read('USE', box)}."
    yield f"Liquid clustering read {read('liquid clustering', sample)} and {read('liquid clustering', box)}."
    yield f"A large indexed write takes {writing('USE')} as long as a plain one."
    yield (
        f"Liquid clustering took {writing('liquid clustering')} as long as a plain write of the same rows, "
        f"`ZORDER` {writing('ZORDER')}, and USE {writing('USE')}."
    )


if __name__ == "__main__":
    recorded = json.loads(FIGURES.read_text("utf-8"))
    PAGE.write_text(page_with(PAGE.read_text("utf-8"), parts_of(recorded)), "utf-8")
