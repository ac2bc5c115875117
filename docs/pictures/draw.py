"""Draws the pictures of the page on concepts: ``python docs/pictures/draw.py [folder]``.

The same data and the same code give the same pictures. They have a ground of their own, so that they read the same on
light and dark pages. Panels are stacked and labels large, so that a phone shows them at a readable size.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from indexed_flights import TIME, flights, merges, read, weight

from otree.cube import CubeId
from otree.level import level_of
from otree.transformation import ColumnStats, Transformation
from otree.transformation.linear import LinearTransformation
from otree.transformer import make_transformation
from otree.weight import MIN_WEIGHT, fraction_of

HERE = Path(__file__).resolve().parent
# Told apart by people who see few colours too.
COLORS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#999933", "#882255")
INK, FAINT, SHADE = "#1f2933", "#cbd2d9", "#f5c542"
SAMPLE = 0.1
RANGE = (0.55, 0.62)
TARGET_ROWS = 130
APPENDS, APART = 30, 700
_YEAR = 2013
# Of a picture, in inches; the sizes of fonts are in points.
WIDTH = 5.0
TITLE, LABEL, TICK = 12, 11, 10


def _panels(count: int, height: float, **options: Any) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(WIDTH, count * height), layout="constrained", facecolor="#ffffff")
    axes = figure.subplots(count, 1, **options)
    return figure, [axes] if count == 1 else list(axes)


def _bare(axes: Axes, title: str, below: str = "", beside: str = "") -> None:
    axes.set_title(title, fontsize=TITLE, color=INK, loc="left")
    axes.set_xlabel(below, fontsize=LABEL, color=INK)
    axes.set_ylabel(beside, fontsize=LABEL, color=INK)
    axes.tick_params(labelsize=TICK, colors=INK, length=2)
    for spine in axes.spines.values():
        spine.set_color(FAINT)


def _dots(axes: Axes, across: Any, up: Any, color: str, size: float) -> None:
    axes.plot(across, up, linestyle="none", marker="o", markersize=size, color=color, markeredgewidth=0)


def cubes() -> Figure:
    """The rows of each depth of the tree, over the cubes of that depth."""
    placed = flights(2)
    deepest = max(cube.depth for cube in placed.cubes)
    shown = min(deepest, 2)
    figure, panels = _panels(shown + 1, 2.7, sharex=True, sharey=True)
    for depth, axes in enumerate(panels):
        chosen = [i for i, cube in enumerate(placed.cubes) if cube.depth == depth]
        _dots(axes, placed.points[0][chosen], placed.points[1][chosen], COLORS[depth], 2.0)
        for cube in sorted({cube for cube in placed.cubes if cube.depth == depth}):
            (left, right), (low, high) = cube.box()
            axes.add_patch(Rectangle((left, low), right - left, high - low, fill=False, edgecolor=INK, linewidth=0.8))
        count = len({placed.cubes[i] for i in chosen})
        name = "the root cube" if depth == 0 else f"{count} cubes of depth {depth}"
        below = "time, as a coordinate" if depth == shown else ""
        _bare(axes, f"{name}: {len(chosen):,} flights", below, "distance, as a coordinate" if depth == 1 else "")
    return figure


def skipping() -> Figure:
    """Cubes as regions of values and weights, and those that a sample, a box, and both have to read."""
    placed = flights(1, cube_size=90)
    found = sorted(set(placed.cubes))
    figure, panels = _panels(3, 2.7, sharex=True, sharey=True)
    queries = (
        (f"a sample of {SAMPLE:.0%}", (0.0, 1.0), SAMPLE),
        ("a range of time", RANGE, 1.0),
        ("a sample of the range", RANGE, SAMPLE),
    )
    for axes, (name, (low, high), upto) in zip(panels, queries, strict=True):
        read_cubes = 0
        for cube in found:
            ((left, right),) = cube.box()
            above = max(map(placed.tree.threshold, cube.ancestors()), default=MIN_WEIGHT - 1)
            bottom, top = fraction_of(above + 1), fraction_of(placed.tree.threshold(cube))
            meets = bottom < upto and left < high and right > low
            read_cubes += meets
            axes.add_patch(
                Rectangle(
                    (left, bottom), right - left, top - bottom,
                    facecolor=COLORS[0] if meets else "#ffffff", edgecolor=INK if meets else FAINT, linewidth=0.8,
                    alpha=0.55 if meets else 1.0,
                )
            )  # fmt: skip
        _dots(axes, placed.points[0], placed.fractions, INK, 1.0)
        axes.add_patch(Rectangle((low, 0), high - low, upto, fill=False, edgecolor=COLORS[1], linewidth=2))
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        _bare(
            axes,
            f"{name}: {read_cubes} of {len(found)} cubes",
            "time, as a coordinate" if axes is panels[-1] else "",
            "weight",
        )
    return figure


def bands() -> Figure:
    """The files of a layout: bands of weight, and runs of the Hilbert curve inside each."""
    placed = flights(2)
    packing, files = placed.files(TARGET_ROWS)
    firsts = [fraction_of(band.first_weight) for band in packing.bands]
    figure, panels = _panels(len(packing.bands), 2.5, sharex=True, sharey=True)
    for axes, band, first, end in zip(panels, packing.bands, firsts, [*firsts[1:], 1.0], strict=True):
        numbers = range(band.runs[0].first_file, band.runs[-1].first_file + band.runs[-1].width)
        for number in numbers:
            chosen = [i for i, file in enumerate(files) if file == number]
            color = COLORS[number % len(COLORS)]
            _dots(axes, placed.points[0][chosen], placed.points[1][chosen], color, 2.2)
        many = f"{len(numbers)} files" if len(numbers) > 1 else "1 file"
        _bare(axes, f"weights {first:.0%} to {end:.0%}: {many}", "time" if axes is panels[-1] else "", "distance")
    return figure


def levels() -> Figure:
    """Blocks of one cube after each of some appends, with what compaction merges."""
    placed = flights(2)
    threshold = placed.tree.threshold(CubeId.root(2))
    blocks = [sum(weight(flight) <= threshold for flight in read(n, APART)) for n in range(APPENDS)]
    figure, (axes,) = _panels(1, 4.4)
    for number, live in enumerate(merges(blocks), start=1):
        start = 0
        for rows in live:
            axes.barh(
                number, rows, left=start, height=0.72, color=COLORS[level_of(rows)], edgecolor="#ffffff", linewidth=1
            )
            start += rows
    for level in sorted({level_of(rows) for live in merges(blocks) for rows in live}):
        axes.barh(
            0, 0, color=COLORS[level], label=f"block of level {level}: {10**level:,} to {10 ** (level + 1) - 1:,} rows"
        )
    axes.set_ylim(APPENDS + 0.6, 0.4)
    axes.legend(fontsize=TICK, loc="upper right", frameon=False, labelcolor=INK)
    _bare(
        axes,
        f"blocks of the root cube after each of {APPENDS}\nappends, with LeveledCompaction after each",
        "rows",
        "appends",
    )
    return figure


def revisions() -> Figure:
    """Ranges of the revisions that a growing table makes, month by month."""
    begin = datetime(_YEAR, 1, 1, tzinfo=timezone.utc)
    months = _months()
    spaces: list[tuple[int, Transformation]] = []
    space: Transformation | None = None
    for number, (first, last) in enumerate(months):
        made = make_transformation(TIME, ColumnStats(first, last), space)
        if made is not space:
            spaces.append((number, made))
        space = made
    figure, (axes,) = _panels(1, 3.0)
    for row, (_, made) in enumerate(spaces):
        assert isinstance(made, LinearTransformation)
        left, right = (_days(float(end), begin) for end in (made.minimum, made.maximum))
        color = COLORS[row % len(COLORS)]
        axes.barh(row, right - left, left=left, height=0.6, color=color, alpha=0.35)
        upto = spaces[row + 1][0] if row + 1 < len(spaces) else len(months)
        for first, last in months[spaces[row][0] : upto]:
            axes.barh(row, _days(last, begin) - _days(first, begin), left=_days(first, begin), height=0.3, color=color)
    axes.set_yticks(range(len(spaces)), [f"revision {n}" for n in range(1, len(spaces) + 1)])
    axes.invert_yaxis()
    ticks = [datetime(_YEAR + n // 2, 1 + 6 * (n % 2), 1, tzinfo=timezone.utc) for n in range(4)]
    axes.set_xticks([(tick - begin).days for tick in ticks], [tick.strftime("%b %Y") for tick in ticks])
    _bare(
        axes,
        f"{len(months)} monthly appends make {len(spaces)} revisions\n(pale: range, dark: months indexed in it)",
    )
    return figure


def _months() -> list[tuple[int, int]]:
    """First and last time of the flights of each month."""
    found: dict[int, list[int]] = {}
    for time, _ in read():
        moment = datetime.fromtimestamp(time / 1e6, timezone.utc)
        if moment.year == _YEAR:
            found.setdefault(moment.month, []).append(time)
    return [(min(times), max(times)) for _, times in sorted(found.items())]


def _days(micros: float, begin: datetime) -> float:
    return (micros / 1e6 - begin.timestamp()) / 86_400


PICTURES: dict[str, Callable[[], Figure]] = {
    "cubes": cubes,
    "skipping": skipping,
    "bands": bands,
    "levels": levels,
    "revisions": revisions,
}


def save(name: str, folder: Path) -> Path:
    """Draws one picture as SVG; the same input gives the same bytes."""
    style: dict[Any, Any] = {
        "svg.hashsalt": name,
        "svg.fonttype": "none",
        "font.family": "DejaVu Sans",
        "path.simplify": False,
    }
    with mpl.rc_context(style):
        file = folder / f"{name}.svg"
        PICTURES[name]().savefig(file, metadata={"Date": None, "Creator": None})
    return file


def main() -> None:
    """Draws all into the folder that is given, or beside this script."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name in PICTURES:
        print(save(name, folder))


if __name__ == "__main__":
    main()
