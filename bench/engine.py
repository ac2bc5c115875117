"""The cost of small appends over time: USE compared with plain OPTIMIZE and ZORDER, in one run.

``make bench-engine`` makes three equal tables and goes through two stories: (a) 20 appends of 0.4 % of the rows each,
and one optimization at the end (after each append with ``--each``); (b) 200 appends of 0.2 %, with an optimization
every 10. Write amplification is bytes written by optimizations over bytes appended; for ours, indexing and compaction
apart. Costs are bytes that queries read by Spark's input metrics, as ratios to a table of the same rows that was
indexed at once; ratios are what to compare. What it writes goes to ``build/bench``, which is emptied first.
``--rows 200000 --many 0`` takes about two minutes on two idle cores.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from layout import COLUMNS, HOME, boxes_of, bytes_read, stage, start
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import sql_ext

SAMPLES = (0.01, 0.1)
BOX = 0.01
FEW, FEW_SHARE = 20, 0.004
MANY, MANY_SHARE, MANY_EVERY = 200, 0.002, 10
INDEXED = COLUMNS[2]
# As many files as 5,000,000 rows make at 16 MB.
FILES = 28
ROW_BYTES = 90


@dataclass(frozen=True)
class Story:
    """Appends, and how often the table is optimized.

    Attributes:
        name: for the report.
        appends: how many.
        share: rows of each, as a share of the table's first rows.
        every: appends between optimizations.
    """

    name: str
    appends: int
    share: float
    every: int


@dataclass(frozen=True)
class Contender:
    """A table owner's way to keep a table fast: optimizes it, and returns the bytes written, by kind of work."""

    name: str
    optimize: Callable[[SparkSession, str], dict[str, int]]


def main() -> None:
    """Runs the stories and prints a line per contender, and JSON with ``--json``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--file-bytes", type=int, default=None, help="target size of files; 1/28 of the table")
    parser.add_argument("--few", type=int, default=FEW, help="appends of story a; 0 leaves it out")
    parser.add_argument("--many", type=int, default=MANY, help="appends of story b; 0 leaves it out")
    parser.add_argument("--each", action="store_true", help="in story a, optimize after each append")
    parser.add_argument("--only", nargs="*", default=[], help="contenders: use, optimize, zorder")
    parser.add_argument("--json", action="store_true", help="print JSON as the last line")
    arguments = parser.parse_args()
    file_bytes = arguments.file_bytes or max(65_536, arguments.rows * ROW_BYTES // FILES)
    stories = [
        Story("a", arguments.few, FEW_SHARE, 1 if arguments.each else max(arguments.few, 1)),
        Story("b", arguments.many, MANY_SHARE, MANY_EVERY),
    ]
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    spark = start(file_bytes)
    try:
        most = max(round(arguments.rows * story.share) * story.appends for story in stories)
        source = stage(spark, arguments.rows + most, file_bytes)
        boxes = boxes_of(source, INDEXED)[BOX]
        results = []
        for story in stories:
            if story.appends:
                results += run_story(spark, source, arguments.rows, file_bytes, story, arguments.only, boxes)
        report(results)
        if arguments.json:
            print(json.dumps(results))
    finally:
        spark.stop()


def run_story(
    spark: SparkSession,
    source: DataFrame,
    rows: int,
    file_bytes: int,
    story: Story,
    only: list[str],
    boxes: list[str],
) -> list[dict[str, object]]:
    """One story for every contender; the costs are compared with the last rows indexed at once."""
    batch = max(1, round(rows * story.share))
    results = []
    for contender in contenders():
        if only and contender.name not in only:
            continue
        table = f"default.{contender.name}_{story.name}"
        create(spark, source.where(F.col("id") < rows), table, file_bytes)
        contender.optimize(spark, table)
        written: dict[str, int] = {}
        appended = 0
        seconds = 0.0
        for number in range(story.appends):
            first = rows + number * batch
            before = size_of(spark, table)
            slice_ = source.where((F.col("id") >= first) & (F.col("id") < first + batch))
            slice_.coalesce(1).write.format("delta").mode("append").saveAsTable(table)
            appended += size_of(spark, table) - before
            if (number + 1) % story.every == 0 or number + 1 == story.appends:
                begun = time.monotonic()
                for kind, size in contender.optimize(spark, table).items():
                    written[kind] = written.get(kind, 0) + size
                seconds += time.monotonic() - begun
        results.append(
            {
                "story": story.name,
                "contender": contender.name,
                "appends": story.appends,
                "appended_bytes": appended,
                "optimize_s": round(seconds, 1),
                **{f"{kind}/appended": round(size / appended, 2) for kind, size in sorted(written.items())},
                "total/appended": round(sum(written.values()) / appended, 2),
                "costs": costs(spark, table, boxes),
            }
        )
    fresh = f"default.fresh_{story.name}"
    create(spark, source.where(F.col("id") < rows + story.appends * batch), fresh, file_bytes)
    ours()[1](spark, fresh)
    reference = costs(spark, fresh, boxes)
    for result in results:
        found = result.pop("costs")
        assert isinstance(found, dict)
        result |= {f"{name} vs fresh": round(found[name] / max(reference[name], 1), 3) for name in reference}
    return results


def create(spark: SparkSession, rows: DataFrame, table: str, file_bytes: int) -> None:
    """A plain Delta table of some rows that says which columns to index."""
    spark.sql(
        f"CREATE TABLE {table} ({rows.schema.toDDL()}) USING delta TBLPROPERTIES "
        f"('use.index.columns'='{','.join(INDEXED)}', 'use.index.targetFileBytes'='{file_bytes}')"
    )
    rows.write.format("delta").mode("append").saveAsTable(table)


def contenders() -> list[Contender]:
    """The three ways."""

    def plain(spark: SparkSession, table: str, clause: str = "") -> dict[str, int]:
        found = spark.sql(f"OPTIMIZE {table} {clause}").select("metrics.filesAdded.totalSize").collect()[0][0]
        return {"rewritten": int(found or 0)}

    def zorder(spark: SparkSession, table: str) -> dict[str, int]:
        return plain(spark, table, f"ZORDER BY ({', '.join(INDEXED)})")

    return [Contender(*ours()), Contender("optimize", plain), Contender("zorder", zorder)]


def ours() -> tuple[str, Callable[[SparkSession, str], dict[str, int]]]:
    """Our optimizer with its default strategies."""

    def optimize(spark: SparkSession, table: str) -> dict[str, int]:
        written: Counter[str] = Counter()
        for row in sql_ext.call(spark, "optimize", table=table).collect():
            if row.state == "committed":
                written[row.strategy] += row.output_bytes
        return written

    return "use", optimize


def size_of(spark: SparkSession, table: str) -> int:
    """Bytes of the table's live files."""
    return int(spark.sql(f"DESCRIBE DETAIL {table}").select("sizeInBytes").collect()[0][0])


def costs(spark: SparkSession, table: str, boxes: list[str]) -> dict[str, float]:
    """Bytes that samples and small boxes read."""
    data = spark.table(table)
    found = {f"sample {fraction}": float(bytes_read(spark, data.sample(fraction))) for fraction in SAMPLES}
    return found | {f"box {BOX}": statistics.mean(bytes_read(spark, data.where(box)) for box in boxes)}


def report(results: list[dict[str, object]]) -> None:
    """Prints one line per contender and story."""
    names = list(dict.fromkeys(name for result in results for name in result))
    widths = [max(len(name), 10) for name in names]
    print(" ".join(name.rjust(width) for name, width in zip(names, widths, strict=True)))
    for result in results:
        print(" ".join(str(result.get(name, "")).rjust(width) for name, width in zip(names, widths, strict=True)))


if __name__ == "__main__":
    main()
