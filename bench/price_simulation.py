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
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from simulated_table import Query
from size_simulation import FILE_BYTES, POINT_BYTES, LargeTable, costs

from procedures.groups.read_costs import OPENING, Read
from procedures.groups.recorded_reads import RecordedReads
from procedures.selection import merge_choice

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


def total(reading: Reading, price: float, seed: int = 1) -> tuple[float, float]:
    """Bytes read beyond a fresh layout, and bytes rewritten by merges.

    Args:
        reading: how the table is read.
        price: see ``merge_choice.PRICE``; infinite = nothing is merged.
        seed: of the values.
    """
    random = np.random.default_rng(seed)
    count = int(TERABYTES * 1e12 / POINT_BYTES)
    batch = count // 50
    base = count - batch * APPENDS
    weights = random.integers(-(2**31), 2**31, count, dtype=np.int64).astype(np.int32)
    table = LargeTable(random.random((count, 2)), weights, most_rewrites=1e9)
    table.files = table.laid_out(np.arange(base), 1.0)
    # When each write was made; reads come in between.
    written = {0: 0}
    reads: list[Read] = []
    times: list[int] = []
    excess = rewritten = 0.0
    # Each recorded read stands for the same number of scans.
    weight = max(reading.scans(n) for n in range(APPENDS)) / EACH
    for number in range(APPENDS):
        start = base + number * batch
        table.index(np.arange(start, start + batch))
        written[table.writes] = 2 * number
        scans = reading.scans(number)
        if scans:
            boxes = [_box(random, *reading.place(number)) for _ in range(EACH)]
            wanted = [query for query, _ in boxes]
            today = costs(table, table.files, wanted)["box"]
            fresh = costs(table, table.laid_out(table.live(), 1.0), wanted)["box"]
            excess += scans * ((today[0] - fresh[0]) * POINT_BYTES + (today[1] - fresh[1]) * FILE_BYTES * OPENING)
            reads += [read for _, read in boxes]
            times += [2 * number + 1] * EACH
        if np.isfinite(price) and reads:
            of_files = np.array([written[f.write] for f in table.files])
            table.recorded = RecordedReads(tuple(reads), np.array(times), weight, of_files)
            before, last = table.written, table.writes
            table.apply(table.choice().merges)
            rewritten += (table.written - before) * POINT_BYTES
            written |= dict.fromkeys(range(last + 1, table.writes + 1), 2 * number + 1)
    return excess, rewritten


def _box(random: np.random.Generator, low: float, length: float) -> tuple[Query, Read]:
    side = 0.05
    corner = np.array([low + random.random() * max(length - side, 0), random.random() * (1 - side)])
    places = tuple((float(at), float(at + side)) for at in corner)
    return Query("box", 1.0, corner, corner + side), Read(1.0, (side, side), places)


def main() -> None:
    """Prints the totals of each story, in GB, and the rule's in proportion to the best."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[])
    arguments = parser.parse_args()
    for reading in READINGS:
        if arguments.only and reading.name not in arguments.only:
            continue
        totals = {}
        for price in (0.02, *PRICES, float("inf")):
            merge_choice.PRICE = price
            totals[price] = total(reading, price)
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
