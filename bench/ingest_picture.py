"""Draws ``docs/ingestion.svg``: the cost of reads while a table grows, with SortedRunCompaction and without."""

from __future__ import annotations

from pathlib import Path

from ingest_simulation import STORIES, run
from matplotlib.figure import Figure

KINDS = ("sample 0.01", "box 0.01", "slice 0.01")
COLORS = ("#4477aa", "#ee6677", "#228833")


def main() -> None:
    """Runs the story that begins with an empty table twice, and draws bytes, files and rewritten bytes."""
    # Stacked, with large labels: a phone shows it at a readable size.
    figure = Figure(figsize=(5, 8.4), layout="constrained", facecolor="white")
    axes = figure.subplots(3, 1, sharex=True)
    for limit, style, name in ((4.0, "-", "merged"), (1.0, ":", "only indexed")):
        lines = run(STORIES[0], 100_000, 0.0, checks=20, most_rewrites=limit)
        appends = [line["appends"] for line in lines]
        for kind, color in zip(KINDS, COLORS, strict=True):
            for axis, part in zip(axes[:2], (0, 1), strict=True):
                axis.plot(appends, [line[kind][part] for line in lines], style, color=color, label=f"{kind}, {name}")
        axes[2].plot(appends, [line["rewritten"] for line in lines], style, color="#1f2933", label=name)
    titles = ("bytes read / fresh index", "files opened / fresh index", "bytes rewritten / table")
    for axis, title, allowed in zip(axes, titles, (1.25, 1.5, 4.0), strict=True):
        axis.set_title(title, fontsize=12, loc="left")
        axis.axhline(allowed, color="#cbd2d9", linewidth=4, zorder=0)
        axis.tick_params(labelsize=10)
    axes[2].set_xlabel("appends of 0.5 %", fontsize=11)
    drawn, names = axes[0].get_legend_handles_labels()
    figure.legend(drawn, names, loc="outside lower center", ncols=2, fontsize=9)
    figure.savefig(Path(__file__).resolve().parent.parent / "docs" / "ingestion.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
