"""Stories of appends to tables of terabytes, without Spark: what reads and rewrites cost, against a fresh layout.

Each file of 128 MB is 64 points, each of which stands for 2 MB of rows (see ``simulated_table``). What a read reads is
counted on the points: a page is a cube around a point, as large as the density of its file says, so that nothing of the
strategy's estimates is used.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from simulated_table import (
    Ids,
    Points,
    Query,
    SimFile,
    SimTable,
    means,
    placed,
    queries,
    ratios,
    regions_of,
    spreads_of,
)

from otree.pages import page_rows_of
from procedures.groups.judge import Judge
from procedures.groups.recorded_reads import RecordedReads

FILE_BYTES = 128 * 2**20
POINTS_PER_FILE = 64
POINT_BYTES = FILE_BYTES / POINTS_PER_FILE
ROW_BYTES = 100
ROWS_PER_POINT = POINT_BYTES / ROW_BYTES
BATCH_BYTES = 10_000_000_000
GROUP_BYTES = 1_000_000_000
SAMPLES = (0.001, 0.01, 0.1)
BOXES = (0.001, 0.01)
BOXES_EACH = 20
# The spread of the other rows is taken from so many files.
_SPREAD_FILES = 400


@dataclass(frozen=True, eq=False)
class LargeFile(SimFile):
    """A file with the sides of its pages."""

    page: Points


@dataclass
class LargeTable(SimTable):
    """A table of many files.

    Attributes:
        recorded: the reads by which groups are judged; None = the declared mix.
    """

    group_bytes: int | None = field(default=GROUP_BYTES, kw_only=True)
    recorded: RecordedReads | None = field(default=None, init=False)

    @property
    def bytes_of_point(self) -> float:
        """See ``SimTable``."""
        return POINT_BYTES

    def judge(self) -> Judge:
        """See ``SimTable``."""
        regions = regions_of(self.files, ROWS_PER_POINT, ROW_BYTES)
        return Judge(regions, float(FILE_BYTES), recorded=self.recorded)

    def index(self, ids: Ids) -> None:
        """UnindexedFiles: batches become writes."""
        step = int(BATCH_BYTES / POINT_BYTES)
        for start in range(0, len(ids), step):
            self.write(ids[start : start + step], 1.0)

    def laid_out(self, ids: Ids, rewrites: float, span: float = 1.0, others: Sequence[SimFile] = ()) -> list[SimFile]:
        """See ``SimTable``."""
        points, weights = self.points[ids], self.weights[ids]
        beside = sum(len(f.ids) for f in others)
        spreads = spreads_of(others[:: max(1, len(others) // _SPREAD_FILES)], points.shape[1])
        layout = placed(points, weights, POINTS_PER_FILE, spreads, beside, span, 100_000)
        ordered = points[layout.order]
        low = np.minimum.reduceat(ordered, layout.starts, axis=0)
        high = np.maximum.reduceat(ordered, layout.starts, axis=0)
        count = layout.ends - layout.starts
        page_rows = float(page_rows_of(len(ids), len(ids) + beside))
        # The box of a few points is smaller than that of the rows that they stand for.
        several = np.maximum(count, 2)[:, None]
        extent = np.clip((high - low) * (several + 1) / (several - 1), 1e-9, 1.0)
        volume = extent.prod(axis=1) / np.maximum(count * ROWS_PER_POINT / page_rows, 1.0)
        page = np.minimum(extent, volume[:, None] ** (1 / extent.shape[1]))
        band = layout.band
        if span < 1.0:
            fractions = (weights.astype(np.float64) + 2.0**31) / 2.0**32
            band = np.clip(band, fractions.min(), fractions.max() + 2.0**-32)
        parts = np.split(ids[layout.order], layout.starts[1:])
        return [
            LargeFile(part, float(band[n, 0]), float(band[n, 1]), low[n], high[n], self.writes, rewrites, page[n])
            for n, part in enumerate(parts)
        ]


def costs(table: LargeTable, files: Sequence[SimFile], reads: Sequence[Query]) -> dict[str, tuple[float, float]]:
    """Mean points and files that each kind of read reads."""
    large = [f for f in files if isinstance(f, LargeFile)]
    points = table.points[np.concatenate([f.ids for f in large])]
    starts = np.cumsum([0] + [len(f.ids) for f in large])
    low, high = np.array([f.low for f in large]), np.array([f.high for f in large])
    first, page = np.array([f.first for f in large]), np.array([f.page for f in large])
    found = []
    for q in reads:
        opened = np.flatnonzero((first < q.fraction) & np.all((low <= q.high) & (high >= q.low), axis=1))
        count = starts[opened + 1] - starts[opened]
        read = float(count.sum())
        if len(opened) and (np.isfinite(q.low) | np.isfinite(q.high)).any():
            at = np.repeat(starts[opened] - np.cumsum([0, *count[:-1]]), count) + np.arange(count.sum())
            half = np.repeat(page[opened] / 2, count, axis=0)
            read = float(np.all((points[at] >= q.low - half) & (points[at] <= q.high + half), axis=1).sum())
        found.append((q.kind, read, float(len(opened))))
    return means(found)


def compared(table: LargeTable) -> dict[str, tuple[float, float]]:
    """Points and files of each kind of read, relative to the same points laid out at once."""
    live = table.live()
    reads = list(queries(table.points[live], SAMPLES, BOXES, BOXES_EACH))
    return ratios(costs(table, table.files, reads), costs(table, table.laid_out(live, 1.0), reads))


@dataclass(frozen=True)
class Story:
    """How the values of rows depend on their place in time, in [0, 1].

    Attributes:
        name: for the report.
        points: makes the values.
        deletes: share of the rows that is deleted during the story.
    """

    name: str
    points: Callable[[NDArray[np.float64], np.random.Generator], Points]
    deletes: float = 0.0


def _uniform(time_: NDArray[np.float64], random: np.random.Generator) -> Points:
    return random.random((len(time_), 2))


def _moving(time_: NDArray[np.float64], random: np.random.Generator) -> Points:
    return np.stack([time_ + random.random(len(time_)) / 730, random.random(len(time_))], axis=1)


STORIES = (Story("uniform", _uniform), Story("time", _moving), Story("deletes", _uniform, 0.1))


def run(
    story: Story,
    terabytes: float,
    append: float,
    appends: int,
    every: int,
    checks: int = 4,
    seed: int = 1,
    target: float = 1.25,
    group_bytes: int = GROUP_BYTES,
) -> list[dict[str, Any]]:
    """Runs a story, and reports at several points in time.

    Args:
        story: the story.
        terabytes: size of the last table.
        append: size of an append, as a share of the last table.
        appends: how many.
        every: appends between optimizations.
        checks: about how many reports.
        seed: of the random values.
        target: what reads may cost.
        group_bytes: bytes of a group.
    """
    random = np.random.default_rng(seed)
    total = int(terabytes * 1e12 / POINT_BYTES)
    batch = max(1, int(total * append))
    base = max(0, total - batch * appends)
    place = np.concatenate(
        [np.linspace(-base / max(batch * appends, 1), 0, base), np.repeat(np.arange(1, appends + 1) / appends, batch)]
    )
    points = story.points(place, random)
    weights = random.integers(-(2**31), 2**31, len(points), dtype=np.int64).astype(np.int32)
    table = LargeTable(points, weights, target=target, group_bytes=group_bytes)
    if base:
        table.files = table.laid_out(np.arange(base), 1.0)
    table.written = 0
    found: list[dict[str, Any]] = []
    passes = appends // every
    for number in range(passes):
        start = base + number * every * batch
        if story.deletes:
            live = table.live()
            table.deleted[live[random.random(len(live)) < story.deletes / passes]] = True
        table.index(np.arange(start, start + every * batch))
        table.merge()
        if (number + 1) % max(1, passes // checks) == 0:
            live_points = len(table.live())
            found.append(
                {
                    "appends": (number + 1) * every,
                    "files": len(table.files),
                    "written": round(table.written / live_points, 2),
                    "per_new": round(table.written / ((number + 1) * every * batch), 2),
                    "rewrites": round(table.mean_rewrites(), 2),
                    "groups": table.merges,
                    "cost": round(table.last.cost if table.last else 0, 3),
                    "predicted": round(table.predicted, 3),
                    "largest_group": table.largest,
                    "s": round(table.slowest, 1),
                    **{k: (round(b, 2), round(n, 1)) for k, (b, n) in compared(table).items()},
                }
            )
    return found


def main() -> None:
    """Runs the stories and prints their costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--terabytes", type=float, nargs="*", default=[0.1, 1.0, 10.0])
    parser.add_argument("--appends", type=float, nargs="*", default=[0.001, 0.01])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--number", type=int, default=0)
    parser.add_argument("--every", type=int, default=0)
    arguments = parser.parse_args()
    for terabytes in arguments.terabytes:
        for append in arguments.appends:
            for story in STORIES:
                if arguments.only and story.name not in arguments.only:
                    continue
                begun = time.process_time()
                appends = arguments.number or (400 if append < 0.005 else 50)
                every = arguments.every or (10 if append < 0.005 else 1)
                print(f"{terabytes:g} TB, {appends} appends of {append:.1%}, {story.name}", flush=True)
                for line in run(story, terabytes, append, appends, every):
                    print(json.dumps(line), flush=True)
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
                print(f"{time.process_time() - begun:.1f} s, {peak:.1f} GB", flush=True)


if __name__ == "__main__":
    main()
