"""What recorded reads and the merges that they pay for cost together, against other prices chosen in hindsight.

A table of 20 GB gets 16 appends of 2 %. Between two of them, queries read boxes; a story says where and how many. The
cost of a plan is the bytes that queries read beyond a fresh layout (opening a file counts as 1 MB), plus the bytes that
merges rewrite. The rule merges a group once the reads would have saved as many bytes as it rewrites. The other plans
merge at prices from a quarter to four times of that, all that is worth anything after each append, or nothing. The best
of them depends on the story, and is known only afterwards.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import size_simulation as sizes

from procedures.groups.cutter import MAX_FILES_PER_GROUP
from procedures.groups.judge import Judge
from procedures.groups.read_costs import OPENING, Read
from procedures.groups.recorded_reads import RecordedReads
from procedures.selection import merge_choice
from procedures.selection.merge_candidates import Limit
from procedures.selection.merge_choice import Budget, choose

APPENDS = 16
TERABYTES = 0.02
EACH = 4
PRICES = (0.25, 1.0, 4.0)


@dataclass(frozen=True)
class Reading:
    """How a table is read.

    Attributes:
        name: for the report.
        scans: how many queries come after an append, by its number.
        place: lower corner of the region in which boxes lie, and its length, by the number of the append.
    """

    name: str
    scans: Callable[[int], int]
    place: Callable[[int], tuple[float, float]]


READINGS = (
    Reading("never", lambda _: 0, lambda _: (0.0, 1.0)),
    Reading("rarely", lambda _: 20, lambda _: (0.0, 1.0)),
    Reading("all day", lambda _: 2_000, lambda _: (0.0, 1.0)),
    Reading("one part", lambda _: 500, lambda _: (0.3, 0.2)),
    Reading("a part that moves on", lambda _: 500, lambda n: (0.8 * n / APPENDS, 0.2)),
    Reading("only at first", lambda n: 1_000 if n < APPENDS // 4 else 0, lambda _: (0.0, 1.0)),
    Reading("only at last", lambda n: 1_000 if n > APPENDS // 2 else 0, lambda _: (0.0, 1.0)),
    Reading("in turns", lambda n: 1_500 if n // 5 % 2 else 0, lambda n: (0.5 * (n // 10 % 2), 0.5)),
)


def total(reading: Reading, price: float, appends: int = APPENDS, seed: int = 1) -> tuple[float, float]:
    """Bytes read beyond a fresh layout, and bytes rewritten by merges.

    Args:
        reading: how the table is read.
        price: see ``merge_choice.PRICE``; infinite = nothing is merged.
        appends: how many.
        seed: of the values.
    """
    random = np.random.default_rng(seed)
    points_in_all = int(TERABYTES * 1e12 / sizes.POINT_BYTES)
    batch = points_in_all // 50
    base = points_in_all - batch * appends
    points = random.random((points_in_all, 2))
    weights = random.integers(-(2**31), 2**31, points_in_all, dtype=np.int64).astype(np.int32)
    table = sizes.SimTable(points, weights)
    nothing: list[None] = [None, None]
    table.files = sizes.laid_out(points, weights, np.arange(base), nothing, 0, 1.0, 1.0, 0)
    written = {0: 0}
    reads: list[Read] = []
    times: list[int] = []
    excess = rewritten = 0.0
    for number in range(appends):
        start = base + number * batch
        table.index(np.arange(start, start + batch))
        written[table.writes] = 2 * number
        count = reading.scans(number)
        if count:
            low, length = reading.place(number)
            boxes = [_box(random, low, length) for _ in range(EACH)]
            live = table.live()
            fresh = sizes.laid_out(points, weights, live, nothing, 0, 1.0, 1.0, 0)
            of_today, of_fresh = (sizes.costs(table, files, [q for q, _ in boxes]) for files in (table.files, fresh))
            (points_today, files_today), (points_fresh, files_fresh) = of_today["box"], of_fresh["box"]
            excess += count * (points_today - points_fresh) * sizes.POINT_BYTES
            excess += count * (files_today - files_fresh) * sizes.FILE_BYTES * OPENING
            reads += [read for _, read in boxes]
            times += [2 * number + 1] * EACH
        if not np.isfinite(price) or not reads:
            continue
        begun = table.written
        _merge(table, reads, times, written, reading, price, 2 * number + 1)
        rewritten += (table.written - begun) * sizes.POINT_BYTES
    return excess, rewritten


def _box(random: np.random.Generator, low: float, length: float) -> tuple[sizes.Query, Read]:
    side = 0.05
    corner = np.array([low + random.random() * max(length - side, 0), random.random() * (1 - side)])
    query = sizes.Query("box", 1.0, corner, corner + side)
    return query, Read(1.0, (side, side), tuple(corner.tolist()), tuple((corner + side).tolist()))


def _merge(
    table: sizes.SimTable,
    reads: list[Read],
    times: list[int],
    written: dict[int, int],
    reading: Reading,
    price: float,
    now: int,
) -> None:
    # Each read of the simulation stands for the same number of scans; those of a quieter time are listed less often.
    most = max(reading.scans(n) for n in range(APPENDS))
    recorded = RecordedReads(
        tuple(reads), np.array(times), most / EACH, np.array([written[f.write] for f in table.files])
    )
    judge = Judge(sizes.regions_of(table.files), float(sizes.FILE_BYTES), recorded=recorded)
    spent = sum(f.rewrites * len(f.ids) for f in table.files) * sizes.POINT_BYTES
    before, merge_choice.PRICE = merge_choice.PRICE, price
    choice = choose(judge, 1.25, Budget(1e9, spent), Limit(sizes.GROUP_BYTES, MAX_FILES_PER_GROUP))
    merge_choice.PRICE = before
    gone: set[int] = set()
    added: list[sizes.SimFile] = []
    for merge in choice.merges:
        gone |= set(merge.files.tolist())
        ids = np.concatenate([table.files[i].ids for i in merge.files])
        table.written += len(ids)
        added += table.laid_out(ids, 1.0, merge.end - merge.first)
        written[table.writes] = now
    table.files = [f for i, f in enumerate(table.files) if i not in gone] + added


def main() -> None:
    """Prints the totals of each story, in GB, and the rule's in proportion to the best."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[])
    arguments = parser.parse_args()
    for reading in READINGS:
        if arguments.only and reading.name not in arguments.only:
            continue
        totals = {price: total(reading, price) for price in (0.02, *PRICES, float("inf"))}
        best = min(sum(costs) for costs in totals.values())
        print(
            json.dumps(
                {
                    "reads": reading.name,
                    **{f"{price:g}": [round(part / 1e9, 1) for part in costs] for price, costs in totals.items()},
                    "rule to best": round(sum(totals[1.0]) / best, 2) if best > 0 else 1.0,
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
