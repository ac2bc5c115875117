"""Planning time over a table of many files, with the index's rules on and off.

The table has a log and no data: `python bench/planning.py [files] [rounds]` (100,000 files, 7 rounds by default) prints
the median planning times of a box and of a sample, in milliseconds, and their ratio. The goal is at most 1.2.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench_session import start_session
from pyspark.sql import DataFrame, SparkSession

from otree.block import Block, blocks_to_json
from otree.revision import Revision, configuration_of
from otree.transformation import LinearTransformation
from otree.transformer import Transformer
from otree.weight import MAX_WEIGHT, MIN_WEIGHT

RULES = ("spark.qbeast.use.sampling.enabled", "spark.qbeast.use.pruning.enabled")
CODES = "AQgw"  # the four children of a cube in two dimensions
DEPTH = 8
BANDS = 16


def main() -> None:
    """Builds the table, plans each query with and without the rules in turn, prints the medians."""
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    with tempfile.TemporaryDirectory() as folder:
        spark = start_session("bench-planning", Path(folder), "4g", {})
        path = f"{folder}/table"
        write_log(spark, path, files)
        table = f"SELECT * FROM delta.`{path}`"
        queries = {
            "box of 1 %": f"{table} WHERE x BETWEEN 0.30 AND 0.40 AND y BETWEEN 0.5 AND 0.6",
            "box of 25 %": f"{table} WHERE x BETWEEN 0.25 AND 0.75 AND y < 0.5",
            "sample of 1 %": f"{table} TABLESAMPLE (1 PERCENT)",
            "sample of 50 %": f"{table} TABLESAMPLE (50 PERCENT)",
        }
        print(f"{files} files, {rounds} rounds: milliseconds to plan, median")
        for name, query in queries.items():
            on, off = _times(spark, query, rounds)
            print(f"{name:15} on {on:8.0f}  off {off:8.0f}  ratio {on / off:.2f}")
        spark.stop()


def _times(spark: SparkSession, query: str, rounds: int) -> tuple[float, float]:
    found: dict[str, list[float]] = {"true": [], "false": []}
    for round_ in range(rounds + 1):
        for switch in ("true", "false") if round_ % 2 else ("false", "true"):
            for rule in RULES:
                spark.conf.set(rule, switch)
            start = time.perf_counter()
            _plan(spark.sql(query))
            if round_:  # the first round warms up
                found[switch].append((time.perf_counter() - start) * 1000)
    return statistics.median(found["true"]), statistics.median(found["false"])


def _plan(data: DataFrame) -> None:
    """All that happens before the first task: optimizing, selecting files and splitting them into partitions."""
    data._jdf.queryExecution().toRdd().getNumPartitions()


def write_log(spark: SparkSession, path: str, files: int) -> None:
    """Makes a table with `files` entries in its log and no data files."""
    transformers = tuple(Transformer("linear", name, "DoubleDataType") for name in ("x", "y"))
    spaces = tuple(LinearTransformation(0.0, 1.0, 0.0, "DoubleDataType") for _ in transformers)
    revision = Revision(1, 0, path, 100_000, transformers, spaces)
    properties = {**configuration_of([revision]), "use.index.columns": "x,y", "use.index.hashTypes.1": "double;double"}
    text = ", ".join("'{}'='{}'".format(key, value.replace("'", "\\'")) for key, value in properties.items())
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, x DOUBLE, y DOUBLE) USING delta TBLPROPERTIES ({text})")
    with (Path(path) / "_delta_log" / f"{1:020d}.json").open("w", encoding="utf-8") as log:
        log.write(json.dumps({"commitInfo": {"timestamp": 0, "operation": "WRITE", "operationParameters": {}}}) + "\n")
        for add in _adds(files):
            log.write(json.dumps({"add": add}) + "\n")


def _adds(files: int) -> Iterator[dict[str, object]]:
    """Files of two or three neighbouring cubes each, in bands of weights."""
    cells = 4**DEPTH
    width = (MAX_WEIGHT - MIN_WEIGHT + 1) // BANDS
    for number in range(files):
        first = MIN_WEIGHT + number % BANDS * width
        cubes = sorted({(number * cells // files + step) % cells for step in range(2 + number % 2)})
        blocks = [Block(_cube_id(cube), first + 7, first + width - 1, 50_000) for cube in cubes]
        corners = [_corner(cube) for cube in cubes]
        side = 1.0 / 2**DEPTH
        stats = {
            "numRecords": 50_000 * len(cubes),
            "minValues": {"id": number, "x": min(x for x, _ in corners), "y": min(y for _, y in corners)},
            "maxValues": {"id": number, "x": max(x for x, _ in corners) + side, "y": max(y for _, y in corners) + side},
            "nullCount": {"id": 0, "x": 0, "y": 0},
        }
        yield {
            "path": f"part-{number:06d}.parquet",
            "partitionValues": {},
            "size": 16_000_000,
            "modificationTime": 1,
            "dataChange": True,
            "stats": json.dumps(stats),
            "tags": {
                "revision": "1",
                "blocks": blocks_to_json(blocks),
                "use.write": "w",
                "use.band": f"{first},{first + width}",
            },
        }


def _codes(cube: int) -> list[int]:
    return [cube >> 2 * (DEPTH - 1 - level) & 3 for level in range(DEPTH)]


def _cube_id(cube: int) -> str:
    return "".join(CODES[code] for code in _codes(cube))


def _corner(cube: int) -> tuple[float, float]:
    x = y = 0.0
    for level, code in enumerate(_codes(cube), 1):
        x, y = x + (code >> 1) / 2**level, y + (code & 1) / 2**level
    return x, y


if __name__ == "__main__":
    main()
