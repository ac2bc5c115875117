"""The pictures of a report, as SVG with text that stays text; colours are those of the page."""

from __future__ import annotations

import html
import importlib
import io
import re
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from catalog.errors import MissingPackageError
from catalog.files.arrays import Floats
from procedures.insight.report.facts import CubeBox, Event, TableFacts, VersionFacts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

Drawing: TypeAlias = "Callable[[Axes], None]"
"""Draws into axes."""

# Stand-ins, which become the page's own colours: these differ between light and dark.
INK, FAINT, FIRST, SECOND, THIRD, FOURTH = "#010101", "#020202", "#030303", "#040404", "#050505", "#060606"
_VARIABLES = {
    INK: "var(--ink)",
    FAINT: "var(--faint)",
    FIRST: "var(--first)",
    SECOND: "var(--second)",
    THIRD: "var(--third)",
    FOURTH: "var(--fourth)",
}
_WIDTH, _HEIGHT = 5.0, 3.1
_UNITS = ((1e12, "terabytes"), (1e9, "gigabytes"), (1e6, "megabytes"), (1e3, "kilobytes"), (1.0, "bytes"))
# Axes of more powers of ten have labels at these only.
_FEW_DECADES = 3
_PERCENT = 100.0
# Letters that fit below a picture.
_LETTERS = 45


def missing_package() -> str | None:
    """Returns what to install for pictures; None if they can be drawn."""
    try:
        importlib.import_module("matplotlib.figure")
    except ImportError:
        return f"{MissingPackageError.of('matplotlib', 'report')} The report has no pictures without it."
    return None


def svg(title: str, description: str, draw: Drawing) -> str:
    """Draws a picture, which needs matplotlib.

    Args:
        title: its name.
        description: what it shows, for people who do not see it.
        draw: draws into the axes.

    Returns:
        An ``svg`` element without references to other resources.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": title, "font.family": "sans-serif", "font.size": 11}
    with mpl.rc_context(settings):
        figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
        axes = figure.subplots()
        figure.patch.set_alpha(0.0)
        axes.patch.set_alpha(0.0)
        draw(axes)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        for spine in axes.spines.values():
            spine.set_color(FAINT)
        axes.tick_params(which="both", colors=INK, labelsize=10)
        for label in (axes.xaxis.label, axes.yaxis.label):
            label.set_color(INK)
        legend = axes.get_legend()
        for text in legend.get_texts() if legend is not None else ():
            text.set_color(INK)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return _for_page(out.getvalue(), title, description)


def _for_page(text: str, title: str, description: str) -> str:
    """Removes the parts that only separate files need, names the picture, and inserts the colours of the page."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    for color, variable in _VARIABLES.items():
        text = text.replace(color, variable)
    # Ids of several pictures must not be the same.
    prefix = re.sub(r"[^a-z]+", "-", title.lower())
    text = re.sub(r'(\bid="|url\(#|xlink:href="#)', rf"\g<1>{prefix}-", text)
    label = html.escape(f"{title}. {description}", quote=True)
    opening = (
        rf'<svg \1 role="img" aria-label="{_escaped(label)}" xmlns:xlink="http://www.w3.org/1999/xlink">'
        f"<title>{_escaped(html.escape(title))}</title>"
    )
    return re.sub(r"<svg[^>]*?(viewBox=\"[^\"]*\")[^>]*>", opening, text, count=1)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\")


# ---------------------------------------------------------------------------------------------------------- pictures


def cubes(facts: TableFacts) -> Drawing:
    """Returns a drawing of the cubes over one or two columns: deeper ones in darker ink, larger ones with more rows."""

    def draw(axes: Axes) -> None:
        from matplotlib.patches import Rectangle

        deepest = max((cube.depth for cube in facts.cubes), default=0)
        most = max((cube.rows for cube in facts.cubes), default=1)
        for cube in facts.cubes:
            axes.add_patch(Rectangle((cube.x[0], cube.y[0]), *_sides(cube), **_shade(cube, deepest, most)))
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.set_xlabel(_axis(facts.shown_columns[0]))
        axes.set_ylabel(_axis(facts.shown_columns[1]) if len(facts.shown_columns) > 1 else "")

    return draw


def _sides(cube: CubeBox) -> tuple[float, float]:
    return cube.x[1] - cube.x[0], cube.y[1] - cube.y[0]


def _shade(cube: CubeBox, deepest: int, most: int) -> dict[str, Any]:
    return {
        "facecolor": FIRST,
        "alpha": 0.06 + 0.3 * cube.rows / max(most, 1),
        "edgecolor": FIRST if cube.depth < deepest or deepest == 0 else SECOND,
        "linewidth": max(2.0 - 0.35 * cube.depth, 0.3),
    }


def _axis(column: str) -> str:
    return f"{_short(column)} (0 to 1)"


def _short(text: str, most: int = 24) -> str:
    # Dollar signs would begin a formula.
    text = text.replace("$", r"\$")
    return text if len(text) <= most else f"{text[: most - 1]}…"


def depths(facts: TableFacts) -> Drawing:
    """Returns a drawing of the rows per depth of the tree."""

    def draw(axes: Axes) -> None:
        from matplotlib.ticker import EngFormatter, MaxNLocator

        axes.bar([depth for depth, _ in facts.depths], [rows for _, rows in facts.depths], color=FIRST)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("depth of the cube")
        axes.yaxis.set_major_formatter(EngFormatter(sep=""))
        axes.set_ylabel("rows")

    return draw


def bands(facts: TableFacts) -> Drawing:
    """Returns a drawing of the bytes of each band of weights."""

    def draw(axes: Axes) -> None:
        names = [f"up to {_PERCENT * end:g} %" for end, _ in facts.bands]
        divisor, unit = _unit([size for _, size in facts.bands])
        axes.barh(names, [size / divisor for _, size in facts.bands], color=FIRST)
        axes.set_ylabel("weights of the rows in a file")
        axes.set_xlabel(unit)

    return draw


def sizes(facts: TableFacts) -> Drawing:
    """Returns a drawing of the numbers of files by size, indexed ones and others."""

    def draw(axes: Axes) -> None:
        divisor, unit = _unit(facts.sizes)
        data = np.maximum(facts.sizes, 1.0) / divisor
        low, high = float(data.min()) * 0.9, float(data.max()) * 1.1
        edges = np.geomspace(low, high, 25)
        kinds = [("indexed", FIRST, facts.levels >= 0), ("not indexed", SECOND, facts.levels < 0)]
        kinds = [kind for kind in kinds if kind[2].any()]
        groups, names = [data[chosen] for _, _, chosen in kinds], [name for name, _, _ in kinds]
        axes.hist(groups, edges.tolist(), stacked=True, color=[color for _, color, _ in kinds], label=names)
        axes.set_xscale("log")
        _plain_numbers(axes.xaxis)
        axes.set_xlabel(f"{unit} of a file")
        axes.set_ylabel("files")
        axes.legend(frameon=False)

    return draw


def samples(points: Sequence[tuple[float, float, float]]) -> Drawing:
    """Returns a drawing of the bytes that samples read."""

    def draw(axes: Axes) -> None:
        fractions = [_PERCENT * fraction for fraction, _, _ in points]
        whole = max((read for _, read, _ in points), default=1.0)
        axes.plot(fractions, [_PERCENT * read / whole for _, read, _ in points], color=FIRST, marker="o", label="now")
        fresh = [_PERCENT * best / whole for _, _, best in points]
        axes.plot(fractions, fresh, color=THIRD, marker="s", linestyle="--", label="fresh index")
        axes.plot(fractions, fractions, color=FAINT, label="ideal")
        axes.set_xscale("log")
        axes.set_yscale("log")
        _plain_numbers(axes.xaxis)
        _plain_numbers(axes.yaxis)
        axes.set_xlabel("sample, % of the rows")
        axes.set_ylabel("bytes read, % of the table")
        axes.legend(frameon=False)

    return draw


def _unit(sizes: Sequence[float] | Floats) -> tuple[float, str]:
    """Returns the unit of bytes in which the largest size is a small number: its bytes and its name."""
    largest = max((float(size) for size in sizes), default=0.0)
    return next((unit for unit in _UNITS if largest >= unit[0]), _UNITS[-1])


def _plain_numbers(axis: Axis) -> None:
    """Labels a logarithmic axis with a few plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    subs = (1.0, 2.0, 5.0) if high < low * 10**_FEW_DECADES else (1.0,)
    axis.set_major_locator(LogLocator(base=10, subs=subs, numticks=6))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def versions(points: Sequence[VersionFacts]) -> Drawing:
    """Returns a drawing of shares over versions."""

    def draw(axes: Axes) -> None:
        numbers = np.arange(len(points))
        unindexed = [_PERCENT * point.unindexed_share for point in points]
        axes.plot(numbers, unindexed, color=SECOND, marker="o", label="unindexed bytes, %")
        fragments = [_PERCENT * point.fragmentation for point in points]
        axes.plot(numbers, fragments, color=FIRST, marker="s", linestyle="--", label="fragmented blocks, %")
        names = [str(point.version) for point in points]
        shown = numbers[:: max(1, -(-sum(len(name) + 2 for name in names) // _LETTERS))]
        axes.set_xticks(shown, [names[place] for place in shown.tolist()])
        axes.set_xlabel("version")
        axes.set_ylim(0, 105)
        axes.legend(frameon=False)

    return draw


def timeline(events: Sequence[Event]) -> Drawing:
    """Returns a drawing of the bytes read and written by each optimization."""

    def draw(axes: Axes) -> None:
        places = np.arange(len(events))
        divisor, unit = _unit([max(event.bytes_in, event.bytes_out) for event in events])
        read = [event.bytes_in / divisor for event in events]
        written = [event.bytes_out / divisor for event in events]
        axes.bar(places - 0.2, read, width=0.4, color=FIRST, label="read")
        axes.bar(places + 0.2, written, width=0.4, color=THIRD, label="written")
        failed = [place for place, event in zip(places.tolist(), events, strict=True) if event.state == "failed"]
        if failed:
            axes.plot(failed, [0.0] * len(failed), "x", color=FOURTH, markersize=9, label="failed", clip_on=False)
        shown = places[:: max(1, len(events) // 6)]
        axes.set_xticks(shown, [_two_lines(events[place].started_at) for place in shown.tolist()])
        axes.set_ylabel(unit)
        axes.legend(frameon=False)

    return draw


def _two_lines(millis: int) -> str:
    return "\n".join(date(millis).rsplit(" ", 1))


def date(millis: int) -> str:
    """Returns a time in UTC, for people.

    Args:
        millis: epoch milliseconds.
    """
    return datetime.fromtimestamp(millis / 1000, timezone.utc).strftime("%d %b %H:%M")
