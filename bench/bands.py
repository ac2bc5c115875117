"""Bands of weight against numbers of files: reads by samples, boxes, slices and tails, simulated without Spark.

``python bench/bands.py --files 28 100`` lays tables of that many files out with several sets of bands, and prints the
shares of rows read and the numbers of files opened. Files are skipped by minima and maxima and by band, pages inside
them by minima and maxima. Large tables have fewer rows per file here, and as many pages per file as small ones. A cost
is in files read whole: rows read, and each open file at a fixed price. ``pack`` is the rule of ``otree.packing``.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from otree.curve import Ranks, bits_per_dimension, hilbert_keys, interleaved
from otree.packing import pack
from otree.weight import MAX_WEIGHT, MIN_WEIGHT, weight_of

SAMPLES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5)
BOXES = (0.001, 0.01, 0.1)
BOXES_EACH = 12
SLICE = 0.01
# Lower bands of fewer files have larger ones.
FEW_FILES = 4
# The cost of opening a file, as a share of a file's bytes: Spark's open cost of 4 MB against files of 128 MB, and more.
OPEN_COSTS = (0.03, 0.125)

Values = list[NDArray[np.float64]]
Interval = tuple[float, float]
Box = dict[int, Interval]


@dataclass
class Table:
    """Rows before they are laid out: values of each column, and weights."""

    name: str
    values: Values
    weights: NDArray[np.int32]

    @cached_property
    def by_curve(self) -> dict[str, NDArray[np.int64]]:
        """Rows along the Hilbert curve and the z-order."""
        bits = bits_per_dimension(len(self.values))
        codes = [Ranks.of_sample(axis[:200_000], bits).codes_of(axis) for axis in self.values]
        return {
            "hilbert": np.argsort(hilbert_keys(codes, bits), kind="stable"),
            "z-order": np.argsort(interleaved(codes, bits), kind="stable"),
        }


@dataclass(frozen=True)
class Shape:
    """How rows are cut.

    Attributes:
        files: number of files of the target size.
        pages: pages of a file of the target size.
        lower: largest size of the files of the lower bands, in targets.
        curve: order within a band.
        inner: weights at which a file is sorted into parts that a sample could skip, ascending.
    """

    files: int
    pages: int
    lower: float
    curve: str
    inner: tuple[int, ...]


@dataclass
class Cost:
    """The cost of a read: share of the rows, number of files."""

    rows: float
    files: float

    def total(self, files: int, open_cost: float) -> float:
        """Return the bytes in files, and the files opened at ``open_cost`` each."""
        return self.rows * files + self.files * open_cost


def table_of(name: str, rows: int, dimensions: int, seed: int = 5) -> Table:
    """Return rows of a distribution.

    Args:
        name: ``skewed``, ``uniform``, ``correlated`` or ``flights``.
        rows: how many.
        dimensions: number of columns.
        seed: of the random numbers.
    """
    chance = np.random.default_rng(seed)
    uniform = chance.random((dimensions, rows))
    match name:
        case "uniform":
            values = list(uniform)
        case "skewed":
            values = [np.exp(chance.normal(0, 1 + axis, rows)) for axis in range(dimensions)]
        case "correlated":
            values = [uniform[0], *(uniform[0] + 0.2 * uniform[axis] for axis in range(1, dimensions))]
        case _:
            hours = np.floor(uniform[0] * 8760)
            distances = np.floor(np.exp(chance.normal(6.8, 0.7, 200)))
            route = np.minimum(np.floor(200 * uniform[1] ** 2), 199).astype(int)
            carriers = (route * 7 + np.floor(3 * chance.random(rows))) % 16
            values = [hours, distances[route], carriers][:dimensions]
    weights = chance.integers(MIN_WEIGHT, MAX_WEIGHT, rows, dtype=np.int32, endpoint=True)
    return Table(name, values, weights)


def boxes_of(values: Values, chance: np.random.Generator) -> dict[str, list[Box]]:
    """Return boxes of each share in all columns and in pairs of them, slices, and tails."""
    count = len(values)
    quantiles = [np.sort(axis[:200_000]) for axis in values]

    def interval(axis: int, low: float, side: float) -> Interval:
        ordered = quantiles[axis]
        last = len(ordered) - 1
        return float(ordered[int(low * last)]), float(ordered[int(min(1.0, low + side) * last)])

    found: dict[str, list[Box]] = {}
    for share in BOXES:
        for size in sorted({2, count} - {1}):
            chosen = list(combinations(range(count), size))
            side = share ** (1 / size)
            found[f"box {share:g} of {size}"] = [
                {axis: interval(axis, chance.uniform(0, 1 - side), side) for axis in chosen[number % len(chosen)]}
                for number in range(BOXES_EACH)
            ]
    found["slice"] = [
        {number % count: interval(number % count, chance.uniform(0, 1 - SLICE), SLICE)} for number in range(BOXES_EACH)
    ]
    found["tail"] = [{axis: interval(axis, 1 - SLICE, SLICE)} for axis in range(count)]
    return found


def costs(
    table: Table,
    limits: Sequence[int],
    boxes: dict[str, list[Box]],
    shape: Shape,
) -> tuple[dict[str, Cost], int]:
    """Lay a table out and return the cost of each kind of read.

    Args:
        table: the rows.
        limits: first weights of the bands above the lowest, ascending.
        boxes: the reads.
        shape: files and pages.

    Returns:
        The costs by kind of read, and the number of files.
    """
    rows = len(table.weights)
    target = rows / shape.files
    along = table.by_curve[shape.curve]
    inner = shape.inner
    band = np.searchsorted(limits, table.weights[along], side="right").astype(np.uint8)
    order = along[np.argsort(band, kind="stable")]
    sizes = np.bincount(band, minlength=len(limits) + 1)
    starts: list[int] = []
    lowest: list[int] = []
    begin = 0
    for number, size in enumerate(sizes):
        parts = max(1, round(size / target))
        if number < len(limits) and size / target < FEW_FILES:
            parts = max(1, math.ceil(size / target / shape.lower))
        starts += [begin + size * part // parts for part in range(parts)]
        lowest += [MIN_WEIGHT if number == 0 else limits[number - 1]] * parts
        begin += size
    cuts = np.array(starts)
    of_file = np.searchsorted(cuts, np.arange(rows), side="right") - 1
    part_starts, part_lowest, part_file = cuts, np.array(lowest), np.arange(len(cuts))
    if len(inner):
        part = np.searchsorted(inner, table.weights[order], side="right")
        resorted = np.argsort(of_file * (len(inner) + 1) + part, kind="stable")
        order, part = order[resorted], part[resorted]
        combined = of_file * (len(inner) + 1) + part
        part_starts = np.flatnonzero(np.diff(combined, prepend=-1))
        part_file = of_file[part_starts]
        firsts = np.array([MIN_WEIGHT, *inner])
        part_lowest = np.maximum(np.array(lowest)[part_file], firsts[part[part_starts]])
    part_rows = np.diff(np.append(part_starts, rows))
    page_rows = max(1, round(target / shape.pages))
    pages = np.concatenate([np.arange(s, s + size, page_rows) for s, size in zip(part_starts, part_rows, strict=True)])
    rows_of_page = np.diff(np.append(pages, rows))
    values = [axis[order] for axis in table.values]
    least = [np.minimum.reduceat(axis, pages) for axis in values]
    most = [np.maximum.reduceat(axis, pages) for axis in values]
    found: dict[str, Cost] = {}
    for fraction in SAMPLES:
        hit = part_lowest < weight_of(fraction)
        found[f"sample {fraction:g}"] = Cost(part_rows[hit].sum() / rows, float(len(np.unique(part_file[hit]))))
    for name, places in boxes.items():
        shares, opened = [], []
        for box in places:
            hit = np.ones(len(pages), bool)
            of_files = np.ones(len(cuts), bool)
            for axis, (low, high) in box.items():
                hit &= (most[axis] >= low) & (least[axis] <= high)
                file_most = np.maximum.reduceat(most[axis], np.searchsorted(pages, cuts))
                file_least = np.minimum.reduceat(least[axis], np.searchsorted(pages, cuts))
                of_files &= (file_most >= low) & (file_least <= high)
            shares.append(rows_of_page[hit].sum() / rows)
            opened.append(of_files.sum())
        found[name] = Cost(float(np.mean(shares)), float(np.mean(opened)))
    return found, len(cuts)


def mean_of(found: dict[str, Cost], measure: Callable[[Cost], float]) -> float:
    """Return the geometric mean over kinds of read: samples, boxes, and slices and tails weigh a third each."""
    groups: dict[str, list[float]] = {}
    for name, cost in found.items():
        kind = name.split()[0]
        groups.setdefault("slice" if kind == "tail" else kind, []).append(np.log(measure(cost)))
    return float(np.exp(np.mean([np.mean(group) for group in groups.values()])))


def rules(files: int, rows: int, weights: NDArray[np.int32]) -> dict[str, list[int]]:
    """Return the sets of bands that are compared: first weights of all bands but the lowest."""

    def down(steps: Sequence[float], smallest: float, fine_from: float = 0) -> list[int]:
        """End bands at steps of each power of ten, of at least ``smallest`` files; at 1 only, below ``fine_from``."""
        fractions = (
            step / 10**decade
            for decade in range(1, 9)
            for step in (steps if files * 10 ** (1 - decade) >= fine_from else [1])
        )
        return sorted(weight_of(f) for f in fractions if f * files >= smallest * 0.999)

    sample = min(rows, 400_000)
    whole = pack(weights[:sample], np.arange(sample), rows, max(1, rows // files))
    found = {"none": [], "pack": [band.first_weight for band in whole.bands[1:]]}
    for smallest in (0.1, 0.5):
        for steps in ((1,), (3, 1), (2, 1), (5, 1), (5, 2, 1), (5, 3, 2, 1)):
            found[f"{','.join(map(str, steps))} to {smallest}"] = down(steps, smallest)
    for smallest in (100, 500, 2_000):
        found[f"1 to 0.1, 2 from {smallest}"] = down((2, 1), 0.1, smallest)
        found[f"1 to 0.1, 5,2 from {smallest}"] = down((5, 2, 1), 0.1, smallest)
    return found


def main() -> None:
    """Prints one line per number of files and set of bands, the cheapest first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="*", default=[10, 28, 100, 1_000, 10_000])
    parser.add_argument("--rows", type=int, default=1_000_000, help="at most; at least ten rows per page")
    parser.add_argument("--pages", type=int, default=110, help="pages of a file of the target size")
    parser.add_argument("--lower", type=float, default=1.4, help="largest file of a lower band, in targets")
    parser.add_argument("--tables", nargs="*", default=["skewed", "uniform", "correlated", "flights"])
    parser.add_argument("--dimensions", type=int, nargs="*", default=[2, 3])
    parser.add_argument("--curve", choices=["hilbert", "z-order"], default="hilbert")
    parser.add_argument("--inner", type=float, nargs="*", default=[], help="fractions that divide a file")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--json", action="store_true", help="print every read as JSON")
    arguments = parser.parse_args()
    inner = sorted(weight_of(fraction) for fraction in arguments.inner)
    for files in arguments.files:
        rows = min(max(arguments.rows, files * arguments.pages * 10), files * arguments.pages * 2_000)
        summary: dict[str, list[tuple[float, ...]]] = {}
        for name in arguments.tables:
            for dimensions in arguments.dimensions:
                table = table_of(name, rows, dimensions)
                boxes = boxes_of(table.values, np.random.default_rng(9))
                for label, limits in rules(files, rows, table.weights).items():
                    if arguments.only and label not in arguments.only:
                        continue
                    shape = Shape(files, arguments.pages, arguments.lower, arguments.curve, tuple(inner))
                    found, count = costs(table, limits, boxes, shape)
                    means = [mean_of(found, lambda c: c.total(files, price)) for price in OPEN_COSTS]  # noqa: B023
                    means += [mean_of(found, lambda c: c.rows), mean_of(found, lambda c: c.files)]
                    summary.setdefault(label, []).append((*means, *_key_figures(found, dimensions), count))
                    if arguments.json:
                        line = {n: (round(c.rows, 4), round(c.files, 1)) for n, c in found.items()}
                        print(json.dumps({"files": files, "table": name, "columns": dimensions, "bands": label} | line))
        _print(files, {label: np.mean(lines, axis=0) for label, lines in summary.items()})


def _key_figures(found: dict[str, Cost], dimensions: int) -> tuple[float, ...]:
    box, cut = found[f"box 0.01 of {dimensions}"], found["slice"]
    samples = (found[f"sample {f:g}"].rows for f in (0.001, 0.01, 0.1, 0.5))
    return (*samples, box.rows, box.files, cut.rows, cut.files)


def _print(files: int, means: dict[str, NDArray[np.float64]]) -> None:
    """Print the means over the tables; a star where no other rule reads fewer bytes and opens fewer files."""
    print(f"{files} files")
    names = ["cost .03", "cost .125", "rows", "files", "s.001", "s.01", "s.1", "s.5", "b1%", "files", "slice", "files"]
    print(f"{'bands':24}   " + " ".join(f"{name:>9}" for name in [*names, "of"]))
    for label, line in sorted(means.items(), key=lambda item: item[1][1]):
        best = not any(o[2] <= line[2] and o[3] <= line[3] and tuple(o) != tuple(line) for o in means.values())
        cells = " ".join(f"{v:>9.{2 if i in (0, 1, 3, 9, 11, 12) else 4}f}" for i, v in enumerate(line))
        print(f"{label:24} {'*' if best else ' '} {cells}", flush=True)


if __name__ == "__main__":
    main()
