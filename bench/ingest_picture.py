"""Draws ``docs/ingestion.svg``: what reads cost while a table grows, with SortedRunCompaction and without."""

from __future__ import annotations

from pathlib import Path

from ingest_simulation import STORIES, run
from matplotlib.figure import Figure

KINDS = ("sample 0.01", "box 0.01", "slice 0.01")
COLORS = ("#4477aa", "#ee6677", "#228833")


def main() -> None:
    """Runs the story that begins with an empty table twice, and draws bytes, files and rewritten bytes."""
    figure = Figure(figsize=(9, 3.2), layout="constrained", facecolor="white")
    axes = figure.subplots(1, 3)
    for limit, style, name in ((4.0, "-", "merged"), (1.0, ":", "only indexed")):
        lines = run(STORIES[0], 100_000, 0.0, checks=20, most_rewrites=limit)
        appends = [line["appends"] for line in lines]
        for kind, color in zip(KINDS, COLORS, strict=True):
            for axis, part in zip(axes[:2], (0, 1), strict=True):
                axis.plot(appends, [line[kind][part] for line in lines], style, color=color, label=f"{kind}, {name}")
        axes[2].plot(appends, [line["rewritten"] for line in lines], style, color="#1f2933", label=name)
    titles = ("bytes read / fresh index", "files opened / fresh index", "bytes rewritten / table")
    for axis, title, allowed in zip(axes, titles, (1.25, 1.5, 4.0), strict=True):
        axis.set_title(title, fontsize=9)
        axis.set_xlabel("appends of 0.5 %", fontsize=8)
        axis.axhline(allowed, color="#cbd2d9", linewidth=4, zorder=0)
        axis.tick_params(labelsize=8)
    axes[0].legend(fontsize=6)
    figure.savefig(Path(__file__).resolve().parent.parent / "docs" / "ingestion.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
