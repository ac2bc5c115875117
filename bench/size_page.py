"""The tables of "At size" in the documentation, from the figures of ``bench/size.py``.

python bench/size_page.py   # writes the tables into docs/reliability.md
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from marked_pages import page_with, row

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "bench" / "results" / "size.json"
PAGE = ROOT / "docs" / "reliability.md"
# What each step is called on the page, and Delta's own beside it.
_STEPS = {
    "open": ("open the table", "the same"),
    "plan a box": ("plan a query with a box, the first time", "the same"),
    "plan it again": ("plan it again", "the same"),
    "plan a sample": ("plan a sample of 1 %", ""),
    "status": ("`use.status`", "`DESCRIBE DETAIL`"),
    "health": ("`use.health`", ""),
    "choose": ("`use.optimize`, dry run", "`OPTIMIZE` that finds nothing"),
    "choose after a commit": ("the same after a commit", "the same"),
    "check": ("`use.check`", ""),
    "vacuum, dry run": ("`use.vacuum`, dry run", "`VACUUM … DRY RUN`"),
}


def step_table(figures: Mapping[str, Any]) -> str:
    """The steps of a session, by number of files."""
    sizes = sorted(figures, key=int)
    largest = figures[sizes[-1]]
    lines = [
        row(
            "step",
            f"s at {' / '.join(f'{int(size):,}' for size in sizes)} files",
            "jobs",
            "heap, MB",
            "Python, MB",
            "Delta's own",
            "s",
            "heap, MB",
        ),
        row(*["---"] * 8),
    ]
    for step, (name, other) in _STEPS.items():
        cost, delta = largest["use"][step], largest["delta"].get(step)
        if "error" in cost:
            raise SystemExit(f"{step} failed at {sizes[-1]} files: {cost['error']}")
        seconds = (_seconds(figures[size]["use"][step]["seconds"]) for size in sizes)
        beside = ("", "", "")
        if delta is not None:
            # Delta may need more heap than there is.
            beside = (
                (other, _seconds(delta["seconds"]), f"{delta['heap']:,}")
                if "seconds" in delta
                else (other, "fails", "")
            )
        lines.append(row(name, " / ".join(seconds), cost["jobs"], f"{cost['heap']:,}", f"{cost['python']:,}", *beside))
    return "\n".join(lines) + "\n"


def log_table(figures: Mapping[str, Any]) -> str:
    """The commands without Spark, by number of files."""
    sizes = sorted(figures, key=int)
    heads = [head for size in sizes for head in (f"{int(size):,}, s", "MB")]
    lines = [row("command", *heads), row(*["---"] * (len(heads) + 1))]
    for name in figures[sizes[-1]]["log"]:
        costs = [figures[size]["log"][name] for size in sizes]
        cells = [cell for cost in costs for cell in (_seconds(cost["seconds"]), f"{cost['python']:,}")]
        shown = f"`use-spark {name}`" if name != "deltalake" else "list of files by the library deltalake"
        lines.append(row(shown, *cells))
    return "\n".join(lines) + "\n"


def client_table(figures: Mapping[str, Any]) -> str:
    """What clients waited for answers, and the memory of the server."""
    lines = [row("statement", "answers", "median, s", "99 % within, s"), row(*["---"] * 4)]
    for name, answer in figures["answers"].items():
        lines.append(row(name, f"{answer['count']:,}", f"{answer['median']:.2f}", f"{answer['p99']:.2f}"))
    lines += ["", row("memory of the server, MB", *figures["memory"]), row(*["---"] * 4)]
    for name in figures["memory"]["before"]:
        lines.append(row(name, *(f"{figures['memory'][moment][name]:,}" for moment in figures["memory"])))
    return "\n".join(lines) + "\n"


def worker_table(figures: Mapping[str, Any]) -> str:
    """Seconds with one worker and with two."""
    counts = list(figures["seconds"])
    lines = [row("step", *(f"{count} worker{'s'[: int(count) > 1]}, s" for count in counts), "times as fast")]
    lines.append(row(*["---"] * (len(counts) + 2)))
    for step, times in figures["times"].items():
        lines.append(row(step, *(f"{figures['seconds'][count][step]:.1f}" for count in counts), f"{times:.2f}"))
    return "\n".join(lines) + "\n"


_PARTS = {
    "steps at size": ("table", step_table),
    "commands at size": ("table", log_table),
    "clients at size": ("clients", client_table),
    "workers at size": ("workers", worker_table),
}


def parts_of(figures: Mapping[str, Any]) -> dict[str, str]:
    """The parts of the page that have figures, by the name of their marks."""
    return {mark: table(figures[part]) for mark, (part, table) in _PARTS.items() if part in figures}


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.1f}"


if __name__ == "__main__":
    PAGE.write_text(page_with(PAGE.read_text("utf-8"), parts_of(json.loads(FIGURES.read_text("utf-8")))), "utf-8")
