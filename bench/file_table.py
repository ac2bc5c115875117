"""Choice over a long list of files without Spark: seconds and memory of each strategy.

The list is a table that many writes fed: each has files in four bands of weights, and two blocks a file. One file in a
hundred is unindexed. Each strategy runs in a process of its own.

    python bench/file_table.py --files 1000000
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from file_lists import REVISIONS
from pyspark.sql.types import StructType

from catalog.files.file_table import FileTable
from catalog.table.snapshot import TableSnapshot
from otree.cube import CubeId
from otree.packing import band_limits
from otree.revision import configuration_of
from otree.weight import MAX_WEIGHT, MIN_WEIGHT
from procedures.groups.group import Group
from procedures.groups.strategy import TableFiles
from procedures.loop.optimize_settings import OptimizeSettings
from procedures.selection import strategies

FILE_BYTES, FILE_ROWS = 128_000_000, 1_000_000
_OPTIONS = {"SamplingOverheadReduction": {"fraction": "0.1"}}
_NOT_CHOICES = ("FileList", "LatestRowCompaction")
_SCHEMA = StructType().add("id", "long").add("x", "double").add("y", "double")


def rows_of_files(count: int, writes: int, seed: int = 1) -> pa.Table:
    """Rows of ``TableSnapshot.file_rows`` with ranges, for ``count`` files of ``writes`` writes."""
    numbers = np.random.default_rng(seed)
    limits = np.array([MIN_WEIGHT, *band_limits(4, ()), MAX_WEIGHT + 1])
    write = np.sort(numbers.integers(0, writes, count))
    band = numbers.choice(len(limits) - 1, count, p=_shares(len(limits) - 1))
    unindexed = numbers.random(count) < 0.01
    cubes = np.array(["", *(CubeId(2, (a, b)).text for a in range(4) for b in range(4))])
    blocks = pa.StructArray.from_arrays(
        [
            pa.array(cubes[numbers.integers(0, len(cubes), 2 * count)]),
            pa.array(np.repeat(limits[band], 2).astype(np.int32)),
            pa.array(np.repeat(limits[band + 1] - 1, 2).astype(np.int32)),
            pa.array(numbers.integers(1, FILE_ROWS, 2 * count)),
        ],
        ["cubeId", "minWeight", "maxWeight", "elementCount"],
    )
    low = numbers.random((count, 2))
    high = np.minimum(1.0, low + numbers.random((count, 2)) * 0.1)
    times = 1_700_000_000_000 + write * 60_000
    size = np.where(unindexed, 8_000_000, numbers.integers(FILE_BYTES // 8, FILE_BYTES, count))
    path = [
        f"part-{n:09d}-4e0c8f3a-1f6e-4d0e-9c55-6b7a9f0f6a1e-c000.snappy.parquet" for n in numbers.permutation(count)
    ]
    mask = np.repeat(unindexed, 2)
    offsets = np.concatenate([[0], np.cumsum(np.where(unindexed, 0, 2))]).astype(np.int32)
    indexed_or = lambda values: pa.array(values.astype(np.int64), mask=unindexed)  # noqa: E731
    return pa.table(
        {
            "path": path,
            "deletion_vector": pa.array(np.full(count, "")),
            "size": size,
            "modification_time": times,
            "rows": np.full(count, FILE_ROWS),
            "revision": np.where(unindexed, 0, REVISIONS[-1].revision_id),
            "blocks": pa.ListArray.from_arrays(pa.array(offsets), blocks.filter(pa.array(~mask))),
            "write_id": [f"{number:032x}" for number in write],
            "first_time": times,
            "last_time": times,
            "outdated": np.zeros(count, bool),
            "unreadable": np.zeros(count, bool),
            "band_first": indexed_or(limits[band]),
            "band_end": indexed_or(limits[band + 1]),
            "rewrites": np.zeros(count),
            "low": pa.FixedSizeListArray.from_arrays(low.ravel(), 2).cast(pa.list_(pa.float64())),
            "high": pa.FixedSizeListArray.from_arrays(high.ravel(), 2).cast(pa.list_(pa.float64())),
            "tagged_revision": indexed_or(np.full(count, REVISIONS[-1].revision_id)),
            "deleted": np.zeros(count, np.int64),
            "tier": np.zeros(count, np.int64),
            "partition": pa.array(np.full(count, "")),
        }
    )


def _shares(bands: int) -> np.ndarray:
    shares = np.array([0.5**n for n in range(bands)])[::-1]
    return shares / shares.sum()


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def choose(strategy: str, files: int, writes: int) -> str:
    """Reads the list, and chooses twice: at first, and after ten more commits."""
    columns = FileTable.of(rows_of_files(files, writes))
    read = _megabytes()
    properties = {**configuration_of(REVISIONS), "use.index.columns": "x,y"}
    settings = OptimizeSettings.of({"table": "t", "strategy": strategy, "options": _OPTIONS.get(strategy, {})})
    asked = settings.selection[strategy]
    started = time.monotonic()
    found = settings.strategies[0].groups(TableFiles(_snapshot(columns, 1, properties)), asked)
    group = next((finding for finding in found if isinstance(finding, Group)), None)
    first = time.monotonic() - started
    added = FileTable.of(rows_of_files(100, 10, seed=2))
    started = time.monotonic()
    later = columns.updated(columns.path[:50], added)
    followed = time.monotonic() - started
    started = time.monotonic()
    next(settings.strategies[0].groups(TableFiles(_snapshot(later, 2, properties)), asked), None)
    second = time.monotonic() - started
    taken = "-" if group is None else f"{len(group.files)} files, {group.bytes / 1e9:.1f} GB"
    return f"{strategy:28s} {first:8.1f} {followed:8.2f} {second:8.1f} {read:8.0f} {_megabytes():8.0f}  {taken}"


def _snapshot(columns: FileTable, version: int, properties: dict[str, str]) -> TableSnapshot:
    snapshot = TableSnapshot(None, version, "t", properties, _SCHEMA, (), 168.0, None)  # type: ignore[arg-type]
    snapshot.__dict__["file_table"] = columns
    return snapshot


def main() -> None:
    """Prints a line per strategy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--writes", type=int, default=2_000)
    parser.add_argument("--only")
    arguments = parser.parse_args()
    print(f"{'strategy':28s} {'choice':>8s} {'follow':>8s} {'again':>8s} {'MB read':>8s} {'MB peak':>8s}  chosen")
    context = multiprocessing.get_context("spawn")
    for name in strategies():
        if name not in _NOT_CHOICES and arguments.only in (None, name):
            with context.Pool(1) as pool:
                print(pool.apply(choose, (name, arguments.files, arguments.writes)), flush=True)


if __name__ == "__main__":
    main()
