"""The tables and the picture of ``docs/benchmark.md``, and a table of ``docs/comparison.md``.

make bench-page
"""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from marked_pages import page_with, row

from peers.systems import SYSTEMS

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "bench" / "results" / "peers.json"
PAGES = {
    ROOT / "docs" / "benchmark.md": ("losses", "lost queries", "runs", "sizes", "workloads"),
    ROOT / "docs" / "comparison.md": ("overview",),
}
OWN_PARTS = ("losses", "lost queries", "sizes", "workloads")
"""The parts that show the figures of one machine."""
PICTURE = ROOT / "docs" / "benchmark.svg"
NAMES = {key: system.name for key, system in SYSTEMS.items()}
TITLES = {
    "tpch": "TPC-H",
    "page-views": "Page views",
    "sensors": "Sensors",
    "customers": "Customers",
    "persons": "Deleted persons",
}
MOMENTS = {
    "bulk": "as loaded",
    "refreshed": "after the refreshes",
    "upserted": "after the upserts",
    "new queries": "new queries, at once",
    "new queries, a day": "new queries, at the end of the day",
    "half a day": "after half a day",
}
MEASURES = {
    "bytes_read": "bytes read",
    "requests": "requests",
    "planning": "planning",
    "cpu_seconds": "CPU",
    "task_seconds": "tasks",
    "seconds": "time",
}
HEADS = {"bytes_read": "MB", "requests": "requests"}
STATEMENTS = ("append", "upsert", "delete", "relayout")
LOSS = 1.05
FEWEST_TURNS = 10
# Tables that compare workloads have this budget only.
BUDGET = "2"


def total(queries: Mapping[str, Mapping[str, Any]], measure: str) -> float:
    """A measure, summed over the queries of a measurement; NaN for times if none, or too few, were taken."""
    return float(sum(_cost(query, measure) for query in queries.values()))


def _cost(query: Mapping[str, Any], measure: str) -> float:
    if measure == "seconds":
        turns = query["seconds"]
        return statistics.median(turns) if len(turns) >= FEWEST_TURNS else math.nan
    return float(query.get(measure, math.nan))


def losses(figures: Mapping[str, Any]) -> str:
    """Where another system needs less than USE, by more than a twentieth; of each workload the worst measurement.

    Budgets count as one workload.

    The greatest loss comes first.
    """
    worst: dict[tuple[str, str], tuple[float, str, str, str, float, tuple[float, str]]] = {}
    for loss in _losses(figures):
        _, key, _, measure, *_ = loss
        name, scale, _, _, *store = key.split()
        workload = " ".join([name, scale, *store])
        worst[workload, measure] = max(worst.get((workload, measure), loss), loss)
    lines = [row("workload", "measured", "what", "USE", "best", "times as much"), row(*["---"] * 6)]
    for ratio, key, name, measure, mine, (best, system) in sorted(worst.values(), key=lambda loss: -loss[0]):
        cells = (_show(measure, mine), f"{_show(measure, best)} ({NAMES[system]})")
        lines.append(row(_title(key), _moment(name), MEASURES[measure], *cells, f"{ratio:.2f}"))
    return "\n".join(lines) + "\n"


def _losses(figures: Mapping[str, Any]) -> Iterator[tuple[float, str, str, str, float, tuple[float, str]]]:
    for key, systems in figures.items():
        for name, queries in systems["use"]["queries"].items():
            for measure in MEASURES:
                mine = total(queries, measure)
                others = [
                    (cost, system)
                    for system, other in systems.items()
                    if system != "use" and name in other["queries"]
                    if not math.isnan(cost := total(other["queries"][name], measure))
                ]
                if others and mine > LOSS * min(others)[0]:
                    yield mine / min(others)[0], key, name, measure, mine, min(others)


def lost_queries(figures: Mapping[str, Any]) -> str:
    """The queries that read more bytes than with another system, by more than a twentieth."""
    lines = [row("workload", "measured", "queries that read more than with the best other system"), row(*["---"] * 3)]
    for key, systems in _with_one_budget(figures).items():
        for name, queries in systems["use"]["queries"].items():
            worse = []
            for query, cost in queries.items():
                others = (other["queries"][name][query] for system, other in systems.items() if system != "use")
                best = min((other["bytes_read"] for other in others), default=math.inf)
                if cost["bytes_read"] > LOSS * best:
                    worse.append(f"{query} {cost['bytes_read'] / max(best, 1):.2f}")
            lines.append(row(_title(key), _moment(name), ", ".join(worse) or "none"))
    return "\n".join(lines) + "\n"


def overview(figures: Mapping[str, Any]) -> str:
    """What each system reads at the end of each history / what it wrote until then, relative to USE."""
    figures = _with_one_budget(figures)
    scales = Counter(key.split()[0] for key in figures)
    heads = [
        TITLES[name] if scales[name] == 1 else f"{TITLES[name]} {scale}"
        for name, scale in (key.split()[:2] for key in figures)
    ]
    lines = [row("system", *heads), row(*["---"] * (len(heads) + 1))]
    for system in (name for name in NAMES if any(name in systems for systems in figures.values())):
        cells = []
        for systems in figures.values():
            own, last = systems["use"], list(systems["use"]["queries"])[-1]
            other = systems.get(system)
            if other is None:
                cells.append("")
                continue
            read = total(other["queries"][last], "bytes_read") / total(own["queries"][last], "bytes_read")
            written = f"{_written(other) / _written(own):.2f}" if _written(own) else "none"
            # The table must fit a page.
            cells.append(f"{read:.{2 if read < 10 else 1}f} / {written}")
        lines.append(row(NAMES[system], *cells))
    return "\n".join(lines) + "\n"


def workloads(figures: Mapping[str, Any]) -> str:
    """A table for each workload, scale and budget."""
    return "\n".join(f"### {_title(key)}\n\n{_workload(systems)}" for key, systems in figures.items())


def _workload(systems: Mapping[str, Any]) -> str:
    """What each system reads in each measurement, and what it has written."""
    measured = list(systems["use"]["queries"])
    shown = [name for name in NAMES if name in systems]
    for system in shown:
        if wrong := _wrong(systems[system]):
            raise SystemExit(f"{system} gave wrong answers: {wrong}")
    timed = {name for name in shown if not math.isnan(total(systems[name]["queries"][measured[0]], "planning"))}
    is_timed = "use" in timed
    costs = [each for each in MEASURES if not math.isnan(total(systems["use"]["queries"][measured[0]], each))]
    heads = [HEADS.get(each, f"{MEASURES[each]}, s") for each in costs]
    lines = [row("measured", "system", *heads), row(*["---"] * (len(heads) + 2))]
    for name, system in product(measured, shown):
        queries = systems[system]["queries"][name]
        lines.append(
            row(_moment(name), NAMES[system], *(_show(each, total(queries, each), unit=False) for each in costs))
        )
    spent_on = {
        "CPU of loading and first layout, s": ("load", "lay out"),
        "CPU of statements, s": STATEMENTS,
        "CPU of maintenance, s": ("maintain",),
    }
    heads = (
        *(spent_on if is_timed else ()),
        "MB written by the history",
        "MB of the table",
        "MB of its log",
    )
    lines += ["", row("system", *heads), row(*["---"] * (len(heads) + 1))]
    for system in shown:
        run, steps = systems[system], systems[system]["steps"]
        size = sum(table["bytes"] for table in run["sizes"][measured[-1]].values())
        spent = [
            f"{sum(steps[step]['cpu_seconds'] for step in each if step in steps):.0f}" if system in timed else ""
            for each in (spent_on.values() if is_timed else ())
        ]
        sizes = [_show("bytes_read", each, unit=False) for each in (_written(run), size, run["log_bytes"])]
        lines.append(row(NAMES[system], *spent, *sizes))
    return "\n".join(lines) + "\n" + _times(systems)


def _times(systems: Mapping[str, Any]) -> str:
    """The times of the other systems in relation to USE, turn by turn; nothing with too few turns."""
    lines = []
    for name, queries in systems["use"]["queries"].items():
        turns = min(len(query["seconds"]) for query in queries.values())
        for system in (each for each in NAMES if each in systems and each != "use" and turns >= FEWEST_TURNS):
            others = systems[system]["queries"].get(name)
            if others is None or min(len(query["seconds"]) for query in others.values()) < turns:
                continue
            ratios = sorted(
                sum(query["seconds"][turn] for query in others.values())
                / sum(query["seconds"][turn] for query in queries.values())
                for turn in range(turns)
            )
            low, high = _interval(ratios)
            lines.append(
                row(NAMES[system], _moment(name), f"{statistics.median(ratios):.2f}", f"{low:.2f} to {high:.2f}")
            )
    if not lines:
        return ""
    heads = row("system", "measured", "time, relative to USE", "95 % interval") + "\n" + row(*["---"] * 4)
    return f"\n{heads}\n" + "\n".join(lines) + "\n"


def _interval(ordered: list[float]) -> tuple[float, float]:
    """A distribution-free interval of the median: order statistics of the binomial distribution with p = 1/2."""
    count, tail, below = len(ordered), 0.5 ** len(ordered), 0
    chance = tail
    while tail + (chance := chance * (count - below) / (below + 1)) <= 0.025:
        tail, below = tail + chance, below + 1
    return ordered[below], ordered[-1 - below]


def runs(figures: Mapping[str, Any]) -> str:
    """When each workload was measured, with which commit of this repository, and how often its queries were timed."""
    lines = [row("workload", "systems", "day", "commit", "timed repetitions"), row(*["---"] * 5)]
    for key, systems in figures.items():
        groups: defaultdict[tuple[str, str, int], list[str]] = defaultdict(list)
        for system in (each for each in NAMES if each in systems):
            run = systems[system]
            turns = min(len(query["seconds"]) for each in run["queries"].values() for query in each.values())
            groups[run.get("measured", ""), run.get("commit", ""), turns].append(NAMES[system])
        for (day, commit, turns), names in groups.items():
            shown = "all" if len(names) == len(systems) else ", ".join(names)
            lines.append(row(_title(key), shown, day, commit, str(turns or "none")))
    return "\n".join(lines) + "\n"


def sizes(figures: Mapping[str, Any]) -> str:
    """What a query costs at the end of a history, by the scale of the table; only workloads that ran at several scales.

    The last column is the factor by which bytes grow when the table becomes ten times as large, from the smallest scale
    and the largest one.
    """
    by_scale: defaultdict[tuple[str, str], dict[float, Mapping[str, Any]]] = defaultdict(dict)
    for key, systems in figures.items():
        name, scale, steps, budget, *store = key.split()
        for system, run in systems.items():
            if not store:
                by_scale[f"{TITLES[name]}, {steps} steps, budget {budget}", system][float(scale)] = run
    scales = sorted({scale for each in by_scale.values() if len(each) > 1 for scale in each})
    heads = [f"scale {scale:g}: MB, requests" for scale in scales]
    lines = [row("workload", "system", *heads, "bytes, for ten times the rows"), row(*["---"] * (len(heads) + 3))]
    for (title, system), each in by_scale.items():
        if len(each) > 1:
            low, high = min(each), max(each)
            growth = (_per_query(each[high], "bytes_read") / _per_query(each[low], "bytes_read")) ** (
                1 / math.log10(high / low)
            )
            cells = [
                f"{_per_query(each[scale], 'bytes_read') / 1e6:.2f}, {_per_query(each[scale], 'requests'):.0f}"
                if scale in each
                else ""
                for scale in scales
            ]
            lines.append(row(title, NAMES[system], *cells, f"{growth:.1f}"))
    return "\n".join(lines) + "\n" if scales else "Not measured at several scales yet.\n"


def _per_query(run: Mapping[str, Any], measure: str) -> float:
    queries = run["queries"][list(run["queries"])[-1]]
    return total(queries, measure) / len(queries)


def curves(figures: Mapping[str, Any]) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Bytes written by a history and bytes that the queries then read, both relative to the table, by budget.

    Returns:
        By workload and system; only those that were run with several budgets.
    """
    points: defaultdict[str, defaultdict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for key, systems in figures.items():
        name, scale, steps, _, *store = key.split()
        if store:
            continue
        for system, run in systems.items():
            last = list(run["queries"])[-1]
            size = sum(table["bytes"] for table in run["sizes"][last].values())
            written = _written(run)
            points[f"{TITLES[name]}, scale {scale}, {steps} steps"][system].append(
                (written / size, total(run["queries"][last], "bytes_read") / size)
            )
    several = {
        name: {system: found for system, found in each.items() if len(found) > 1} for name, each in points.items()
    }
    return {name: each for name, each in several.items() if each}


def draw(figures: Mapping[str, Any], path: Path) -> None:
    """Draws the curves; nothing without several budgets."""
    drawn = curves(figures)
    if not drawn:
        return
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # Without them, each drawing has other names of shapes, and texts that are shapes.
    mpl.rcParams.update({"svg.hashsalt": "peers", "svg.fonttype": "none"})
    figure = Figure(figsize=(4.8, 3.6 * len(drawn)), layout="constrained", facecolor="white")
    for axis, (title, systems) in zip(figure.subplots(len(drawn), 1, squeeze=False)[:, 0], drawn.items(), strict=True):
        for system, points in systems.items():
            axis.plot(*zip(*sorted(points), strict=True), "o-", label=NAMES[system].replace("`", ""), markersize=4)
        axis.set_title(title, loc="left")
        axis.set_xlabel("bytes written by the history / table")
        axis.set_ylabel("bytes read / table")
        axis.set_ylim(bottom=0)
        axis.legend(fontsize=9)
    figure.savefig(path, metadata={"Date": None})


_PARTS = {
    "losses": losses,
    "lost queries": lost_queries,
    "runs": runs,
    "sizes": sizes,
    "workloads": workloads,
    "overview": overview,
}


def parts_of(marks: Iterable[str], figures: Mapping[str, Any]) -> dict[str, str]:
    """The parts of a page, by the name of their marks; all others are compared with USE."""
    compared = {key: systems for key, systems in figures.items() if "use" in systems}
    return {mark: _PARTS[mark](compared) for mark in marks}


def write(figures: Mapping[str, Any]) -> None:
    """Writes the parts of all pages, and the picture."""
    for path, marks in PAGES.items():
        path.write_text(page_with(path.read_text("utf-8"), parts_of(marks, figures)), "utf-8")
    draw(figures, PICTURE)


def _with_one_budget(figures: Mapping[str, Any]) -> dict[str, Any]:
    """The runs in local files with ``BUDGET``."""
    return {key: systems for key, systems in figures.items() if key.split()[3:] == [BUDGET]}


def _written(run: Mapping[str, Any]) -> int:
    """The bytes of data files that a history wrote, by its statements and by maintenance."""
    return sum(cost["bytes_written"] for step, cost in run["steps"].items() if step not in ("load", "lay out"))


def _title(key: str) -> str:
    name, scale, steps, budget, *store = key.split()
    places = (", on S3" if place == "s3" else f", {place.removesuffix('w')} workers" for place in store)
    return f"{TITLES[name]}, scale {scale}, {steps} steps, budget {budget}{''.join(places)}"


def _moment(name: str) -> str:
    """What the page calls a measurement."""
    return MOMENTS.get(name, name)


def _wrong(run: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} {query}" for name, each in run["queries"].items() for query, cost in each.items() if not cost["ok"]
    )


def _show(measure: str, value: float, unit: bool = True) -> str:
    if math.isnan(value):
        return ""
    if measure == "bytes_read":
        shown = f"{value / 1e6:,.0f}" if value >= 1e7 else f"{value / 1e6:.1f}"
        return f"{shown} MB" if unit else shown
    if measure == "requests":
        return f"{value:,.0f}"
    return f"{value:.1f} s" if unit else f"{value:.1f}"


if __name__ == "__main__":
    write(json.loads(FIGURES.read_text("utf-8")))
