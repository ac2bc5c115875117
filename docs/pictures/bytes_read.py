"""Draws the shares of bytes that queries read, for README and the first page: ``python docs/pictures/bytes_read.py``.

The figures are those that ``bench/results/layout.json`` records. The picture is 400 units wide, so that its labels are
readable on a phone, and has a ground of its own for dark pages.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parents[1] / "bench" / "results" / "layout.json"
WIDTH = 400
PLOT_LEFT, PLOT_WIDTH = 138, 192
BAR, ROW, GROUP_TITLE = 18, 25, 34
# Query of the results, title of the group.
GROUPS = (
    ("sample 0.01", "A sample of 1 % of the rows"),
    ("box 0.01, 2 columns", "A range of 2 columns with 1 % of the rows"),
    ("box 0.01, 3 columns", "A range of 3 columns with 1 % of the rows"),
)
SHOWN = ("ZORDER", "liquid clustering", "USE")
FONTS = "Helvetica, Arial, DejaVu Sans, sans-serif"
INK, FAINT, OTHER, OURS, GROUND = "#1f2933", "#52606d", "#9fb3c8", "#1f6feb", "#ffffff"


def percent(share: float) -> str:
    """A share as it is printed beside its bar: 2.4 %, 101 %."""
    value = 100 * share
    return f"{value:.1f} %" if value < 100 and round(value, 1) != round(value) else f"{round(value)} %"


def shares(results: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Shares of bytes by query and layout.

    Args:
        results: what ``bench/results/layout.json`` holds.
    """
    queries = results["queries"]
    return {
        query: {layout["name"]: layout["reads"][number][0] for layout in results["layouts"] if layout["reads"]}
        for number, query in enumerate(queries)
    }


def _text(x: float, y: float, text: str, size: int, color: str, extra: str = "") -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{color}"{extra}>{escape(text)}</text>'


def svg(results: dict[str, Any]) -> str:
    """The picture."""
    read = shares(results)
    height = 46 + len(GROUPS) * (GROUP_TITLE + ROW * len(SHOWN)) + 34
    size = f'width="480" height="{round(height * 1.2)}" viewBox="0 0 {WIDTH} {height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{FONTS}">',
        "<title>Bytes that a query reads</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="{GROUND}"/>',
        _text(14, 28, "Share of the table's bytes that a query reads", 16, INK, ' font-weight="bold"'),
    ]
    y = 40
    for query, title in GROUPS:
        parts.append(_text(14, y + 22, title, 15, INK))
        y += GROUP_TITLE
        for name in SHOWN:
            share, ours = read[query][name], name == "USE"
            length = max(2.0, round(PLOT_WIDTH * min(share, 1.0), 1))
            weight = ' font-weight="bold"' if ours else ""
            parts += [
                _text(14, y + 14, name, 14, INK, weight),
                f'<rect x="{PLOT_LEFT}" y="{y}" width="{length}" height="{BAR}" fill="{OURS if ours else OTHER}"/>',
                _text(PLOT_LEFT + length + 6, y + 14, percent(share), 14, INK, weight),
            ]
            y += ROW
    run = f"{results['rows']:,} rows in files of {results['file_bytes'] >> 20} MB, {results['cores']} cores"
    parts += [_text(14, y + 22, f"{run}: {results['command']}", 12, FAINT), "</svg>"]
    return "\n".join(parts) + "\n"


def save(folder: Path) -> Path:
    """Draws the picture into a folder."""
    file = folder / "bytes-read.svg"
    file.write_text(svg(json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")
    return file


if __name__ == "__main__":
    print(save(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE))
