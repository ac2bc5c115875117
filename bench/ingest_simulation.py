"""Stories of small appends without Spark: the cost of reads and rewrites, against the same rows laid out at once.

Rows are points with pages (see ``simulated_table``); only reading and writing are left out. A story takes seconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from simulated_table import Ids, Query, SimFile, SimTable, means, placed, queries, ratios, regions_of, spreads_of

from otree.pages import page_rows_of
from procedures.groups.judge import Judge

SAMPLES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5)
BOXES = (0.001, 0.01, 0.1)
BOXES_EACH = 40
FILES = 28
PAGES_PER_FILE = 36


@dataclass(frozen=True, eq=False)
class PagedFile(SimFile):
    """A file with the ranges and rows of its pages."""

    page_low: NDArray[np.float64]
    page_high: NDArray[np.float64]
    page_rows: NDArray[np.int64]


@dataclass
class PagedTable(SimTable):
    """A table of rows; sizes are numbers of rows.

    Attributes:
        target_rows: rows of a file.
        page_rows: rows of a page where the whole table is written.
        unindexed: rows that were appended, by append.
    """

    target_rows: int
    page_rows: int
    unindexed: list[Ids] = field(default_factory=list, init=False)

    @property
    def bytes_of_point(self) -> float:
        """See ``SimTable``."""
        return 1.0

    def judge(self) -> Judge:
        """See ``SimTable``."""
        return Judge(regions_of(self.files), float(self.target_rows), self.page_rows)

    @property
    def appended(self) -> Sequence[Ids]:
        """See ``SimTable``."""
        return self.unindexed

    def index(self) -> None:
        """UnindexedFiles."""
        if self.unindexed:
            ids = np.concatenate(self.unindexed)
            self.unindexed = []
            self.write(ids[~self.deleted[ids]], 1.0)

    def optimize(self) -> None:
        """Indexes the appended rows, and merges as long as the strategy chooses files."""
        self.index()
        self.merge()

    def laid_out(self, ids: Ids, rewrites: float, span: float = 1.0, others: Sequence[SimFile] = ()) -> list[SimFile]:
        """See ``SimTable``."""
        points, weights = self.points[ids], self.weights[ids]
        beside = sum(len(f.ids) for f in others)
        spreads = spreads_of(others, points.shape[1])
        layout = placed(points, weights, self.target_rows, spreads, beside, span, 20_000)
        page = int(page_rows_of(len(ids), len(ids) + beside, self.page_rows))
        files: list[SimFile] = []
        for start, end in zip(layout.starts, layout.ends, strict=True):
            part = layout.order[start:end]
            at = np.arange(0, len(part), page)
            low = np.minimum.reduceat(points[part], at, axis=0)
            high = np.maximum.reduceat(points[part], at, axis=0)
            fractions = (weights[part].astype(np.float64) + 2.0**31) / 2.0**32
            ends = float(fractions.min()), float(fractions.max()) + 2.0**-32
            facts = ids[part], *ends, low.min(axis=0), high.max(axis=0), self.writes, rewrites
            files.append(PagedFile(*facts, low, high, np.diff([*at, len(part)])))
        return files


def costs(files: Sequence[SimFile], reads: Sequence[Query]) -> dict[str, tuple[float, float]]:
    """Mean rows and files that each kind of read reads."""
    paged = [f for f in files if isinstance(f, PagedFile)]
    owner = np.repeat(np.arange(len(paged)), [len(f.page_rows) for f in paged])
    page_low = np.concatenate([f.page_low for f in paged])
    page_high = np.concatenate([f.page_high for f in paged])
    page_rows = np.concatenate([f.page_rows for f in paged])
    low, high = np.array([f.low for f in paged]), np.array([f.high for f in paged])
    first = np.array([f.first for f in paged])
    found = []
    for q in reads:
        opened = (first < q.fraction) & np.all((low <= q.high) & (high >= q.low), axis=1)
        pages = opened[owner] & np.all((page_low <= q.high) & (page_high >= q.low), axis=1)
        found.append((q.kind, float(page_rows[pages].sum()), float(opened.sum())))
    return means(found)


def compared(table: PagedTable) -> dict[str, tuple[float, float]]:
    """Rows and files of each kind of read, relative to the same rows laid out at once."""
    live = table.live()
    reads = list(queries(table.points[live], SAMPLES, BOXES, BOXES_EACH))
    return ratios(costs(table.files, reads), costs(table.laid_out(live, 1.0), reads))


@dataclass(frozen=True)
class Story:
    """A history of appends.

    Attributes:
        name: for the report.
        base: rows before the appends, as a share of the last rows.
        appends: how many appends.
        every: appends between optimizations.
        points: makes the values of rows, by their place in time in [0, 1].
    """

    name: str
    base: float
    appends: int
    every: int
    points: Callable[[NDArray[np.float64], np.random.Generator], NDArray[np.float64]]


def _uniform(time_: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
    return random.random((len(time_), 2))


def _moving(time_: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
    return np.stack([time_ + random.random(len(time_)) / 730, random.random(len(time_))], axis=1)


def _late(time_: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
    points = random.random((len(time_), 2))
    late = random.random(len(time_)) < 0.1
    points[late & (time_ > 0), 0] -= 1
    return points


STORIES = (
    Story("zero", 0.0, 200, 10, _uniform),
    Story("base", 0.5, 200, 10, _uniform),
    Story("time", 0.0, 730, 10, _moving),
    Story("late", 0.5, 200, 10, _late),
)


def run(
    story: Story, rows: int, deletes: float, seed: int = 1, checks: int = 4, most_rewrites: float = 4.0
) -> list[dict[str, Any]]:
    """Runs a story, and reports at several points in time.

    Args:
        story: the story.
        rows: rows of the last table.
        deletes: share of the rows that is deleted; half of these are written again, as updates do.
        seed: of the random values.
        checks: about how many reports.
        most_rewrites: the budget of the strategy; 1 = rows are indexed and never merged.
    """
    random = np.random.default_rng(seed)
    base = int(rows * story.base)
    batch = (rows - base) // story.appends
    place = np.concatenate([np.zeros(base), np.repeat(np.arange(1, story.appends + 1) / story.appends, batch)])
    points = story.points(place, random)
    again = int(rows * deletes / 2)
    weights = random.integers(-(2**31), 2**31, len(points) + again, dtype=np.int64).astype(np.int32)
    points = np.concatenate([points, np.zeros((again, points.shape[1]))])
    target_rows = max(1, rows // FILES)
    page_rows = max(1, target_rows // PAGES_PER_FILE)
    table = PagedTable(points, weights, target_rows, page_rows, most_rewrites=most_rewrites)
    found: list[dict[str, Any]] = []
    if base:
        table.unindexed.append(np.arange(base))
        table.optimize()
    table.written = 0
    updated = base + batch * story.appends
    for number in range(story.appends):
        start = base + number * batch
        table.unindexed.append(np.arange(start, start + batch))
        if (number + 1) % story.every == 0 or number + 1 == story.appends:
            if deletes:
                live = table.live()
                gone = live[random.random(len(live)) < deletes * story.every / story.appends]
                table.deleted[gone] = True
                new = gone[: min(len(gone) // 2, len(table.points) - updated)]
                table.points[updated : updated + len(new)] = table.points[new]
                table.unindexed.append(np.arange(updated, updated + len(new)))
                updated += len(new)
            table.optimize()
            done = (number + 1) // story.every
            if done % max(1, story.appends // story.every // checks) == 0:
                live_rows = len(table.live())
                found.append(
                    {
                        "appends": number + 1,
                        "files": len(table.files),
                        "rewritten": round(table.written / live_rows, 2),
                        "rewrites": round(table.mean_rewrites(), 2),
                        "merges": table.merges,
                        **{k: (round(b, 2), round(n, 2)) for k, (b, n) in compared(table).items()},
                    }
                )
    return found


def main() -> None:
    """Runs the stories and prints their costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--deletes", type=float, nargs="*", default=[0.0, 0.05])
    arguments = parser.parse_args()
    for story in STORIES:
        if arguments.only and story.name not in arguments.only:
            continue
        for deletes in arguments.deletes:
            begun = time.process_time()
            for line in run(story, arguments.rows, deletes):
                print(story.name, deletes, line)
            print(f"{time.process_time() - begun:.1f} s")


if __name__ == "__main__":
    main()
