"""Draws ``docs/fleet.svg`` from ``results/fleet.json``: what each policy saves, by its budget."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results" / "fleet.json"
LINES = {
    "hindsight": ("bound in hindsight", "#9aa5b1", ":"),
    "ours": ("ours", "#4477aa", "-"),
    "round robin": ("round robin", "#228833", "--"),
    "files": ("file count (AutoComp)", "#ee6677", "-."),
    "largest first": ("largest first", "#ccbb44", "--"),
}


def save(folder: Path) -> Path:
    """Draws the picture.

    Args:
        folder: for the file.
    """
    mpl.rcParams.update({"svg.hashsalt": "fleet", "svg.fonttype": "none"})
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    budgets = [100 * budget for budget in results["budgets"]]
    figure = Figure(figsize=(5, 4.6), layout="constrained", facecolor="white")
    axes = figure.subplots()
    for name, (label, color, style) in LINES.items():
        rows = results["policies"][name]
        saving = [100 * row["saving"] for row in rows]
        interval = [100 * row["interval"] for row in rows]
        axes.errorbar(budgets, saving, interval, label=label, color=color, linestyle=style, capsize=3)
    axes.plot([10], [80], marker="+", markersize=14, color="#1f2933", linestyle="none", label="goal")
    axes.set_xscale("log")
    axes.set_xticks(budgets, [f"{budget:g} %" for budget in budgets])
    axes.minorticks_off()
    axes.set_ylim(0, 105)
    axes.set_title("bytes saved / rewriting everything, %", fontsize=12, loc="left")
    axes.set_xlabel("budget / bytes of rewriting everything", fontsize=11)
    axes.tick_params(labelsize=10)
    figure.legend(loc="outside lower center", ncols=2, fontsize=10)
    file = folder / "fleet.svg"
    figure.savefig(file, metadata={"Date": None})
    return file


if __name__ == "__main__":
    save(ROOT / "docs")
