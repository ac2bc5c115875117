"""What a MERGE of few keys into a large table reads: with the keys of its source, without, and on a plain table.

The keys are a range, some ranges, or spread over the whole table. The table is restored after each MERGE.

    make bench-merge ARGS="--rows 5000000 --keys 1000"
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from bench_session import start_session
from measured_query import COUNTED_READS, Execution, execute, in_turn, median_seconds
from pyspark.sql import SparkSession

import sql_ext
from catalog.settings.session_settings import JOINS_ENABLED

ON, OFF, PLAIN = "indexed, by keys", "indexed", "plain Delta"
CONTENDERS = {ON: ("indexed", "true"), OFF: ("indexed", "false"), PLAIN: ("plain", "false")}
ROWS = (
    "id AS key",
    "CAST(pmod(xxhash64(id, 1), 2000) AS INT) AS customer",
    "date_add(DATE'2020-01-01', CAST(id DIV 5000 AS INT)) AS day",
    "CAST(pmod(xxhash64(id, 2), 1000000) AS DECIMAL(12, 2)) AS amount",
    "sha2(CAST(id AS STRING), 256) AS note",
)
# How the keys of a source are spread: so many ranges of neighbours; None = each key is anywhere.
SPREADS: dict[str, int | None] = {"one range": 1, "10 ranges": 10, "anywhere": None}


@dataclass(frozen=True)
class Figures:
    """What a MERGE cost.

    Attributes:
        share: bytes that it read, by Spark's input metrics, of the bytes of the table.
        jobs: number of Spark jobs.
        seconds: the median of the rounds.
    """

    share: float
    jobs: int
    seconds: float


def load(spark: SparkSession, rows: int, file_bytes: int, vectors: bool) -> None:
    """Makes both tables. The rows arrive in no order of their keys, as in a table of upserts."""
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(file_bytes))
    properties = f"'delta.enableDeletionVectors' = '{str(vectors).lower()}'"
    arrived = spark.range(rows).selectExpr(*ROWS).orderBy("customer")
    arrived.write.format("delta").option("delta.enableDeletionVectors", str(vectors).lower()).saveAsTable("plain")
    spark.sql("OPTIMIZE plain")
    spark.sql(
        f"CREATE TABLE indexed USING delta TBLPROPERTIES ({properties}, 'use.index.columns' = 'key', "
        f"'use.index.targetFileBytes' = '{file_bytes}') AS SELECT * FROM plain"
    )
    sql_ext.call(spark, "optimize", table="indexed").collect()


def make_source(spark: SparkSession, rows: int, keys: int, ranges: int | None) -> None:
    """Makes the source: every fifth key is new."""
    if ranges is None:
        at = f"pmod(xxhash64(id, 7), {rows})"
    else:
        each = -(-keys // ranges)
        at = f"(id DIV {each}) * {rows // ranges} + {rows // (2 * ranges)} + id % {each}"
    spark.range(keys).selectExpr(
        f"CASE WHEN id % 5 = 0 THEN CAST(-1 - id AS BIGINT) ELSE CAST({at} AS BIGINT) END AS key",
        "CAST(id % 2000 AS INT) AS customer",
        "DATE'2024-01-01' AS day",
        "CAST(7 AS DECIMAL(12, 2)) AS amount",
        "'merged' AS note",
    ).dropDuplicates(["key"]).coalesce(1).write.mode("overwrite").saveAsTable("source", format="parquet")


def merge(spark: SparkSession, table: str, joins: str) -> Execution:
    """Runs the MERGE, and restores the table."""
    spark.conf.set(JOINS_ENABLED.name, joins)
    version = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").first()["version"]
    done = execute(
        spark,
        f"MERGE INTO {table} t USING source s ON t.key = s.key "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    )
    spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {version}").collect()
    return done


def main() -> None:
    """Runs the comparison and prints a table and, with ``--json``, its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--target", type=int, default=8_000_000, help="bytes of a file")
    parser.add_argument("--vectors", action="store_true", help="with deletion vectors")
    parser.add_argument("--json", help="a file for the figures")
    options = parser.parse_args()
    figures: dict[str, dict[str, Figures]] = {}
    with tempfile.TemporaryDirectory() as home:
        spark = start_session("bench-merge", Path(home), "4g", COUNTED_READS | {"spark.sql.shuffle.partitions": "8"})
        load(spark, options.rows, options.target, options.vectors)
        sizes = {t: spark.sql(f"DESCRIBE DETAIL {t}").first()["sizeInBytes"] for t in ("indexed", "plain")}
        print(f"{'keys':12}" + "".join(f"{name:>30}" for name in CONTENDERS), flush=True)
        for spread, ranges in SPREADS.items():
            make_source(spark, options.rows, options.keys, ranges)
            runs = in_turn({name: partial(merge, spark, *c) for name, c in CONTENDERS.items()}, options.rounds)
            figures[spread] = {
                name: Figures(each[-1].input_bytes / sizes[CONTENDERS[name][0]], each[-1].jobs, median_seconds(each))
                for name, each in runs.items()
            }
            cells = [f"{f.share:.1%}, {f.jobs} jobs, {f.seconds:.2f} s" for f in figures[spread].values()]
            print(f"{spread:12}" + "".join(f"{cell:>30}" for cell in cells), flush=True)
        spark.stop()
    if options.json:
        table = {spread: {name: asdict(f) for name, f in found.items()} for spread, found in figures.items()}
        Path(options.json).write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
