"""The 22 queries of TPC-H: what they read of an indexed table and of one with liquid clustering by the same columns.

Data and queries come from DuckDB's generator, and so do the right answers. Each
table has the same columns for both layouts: a date, and the key of the most frequent join.

    make bench-tpch ARGS="--scale 1 --rounds 3"
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import duckdb
from bench_session import start_session
from measured_query import COUNTED_READS, Execution, Rows, execute, in_turn, median_seconds
from peers.answers import is_same, texts_of
from peers.workloads import tpch_refreshes
from pyspark.sql import SparkSession

import sql_ext
from catalog.settings.session_settings import JOINS_ENABLED

COLUMNS = {
    "lineitem": ("l_shipdate", "l_orderkey"),
    "orders": ("o_orderdate", "o_orderkey"),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "customer": ("c_custkey",),
    "part": ("p_partkey",),
}
SMALL = ("supplier", "nation", "region")
ON, OFF, LIQUID = "indexed, joins skip", "indexed", "liquid clustering"
CONTENDERS = {ON: ("indexed", "true"), OFF: ("indexed", "false"), LIQUID: ("liquid", "false")}


@dataclass(frozen=True)
class Figures:
    """What a query read.

    Attributes:
        input_bytes: of all tables, by Spark's input metrics.
        jobs: number of Spark jobs.
        seconds: the median of the rounds.
    """

    input_bytes: int
    jobs: int
    seconds: float


def generate(scale: float, folder: Path) -> tuple[dict[int, str], dict[int, Rows]]:
    """Writes the tables as Parquet files; returns the queries and their answers by number."""
    database = write_tables(scale, folder, (*COLUMNS, *SMALL))
    queries = dict(database.execute("SELECT query_nr, query FROM tpch_queries()").fetchall())
    return queries, {number: database.execute(query).fetchall() for number, query in queries.items()}


def write_tables(scale: float, folder: Path, tables: Iterable[str]) -> duckdb.DuckDBPyConnection:
    """Writes some tables as Parquet files; returns the database, in which queries and answers are, too."""
    database = duckdb.connect()
    tpch_refreshes.generate(database, scale)
    for table in tables:
        database.execute(f"COPY {table} TO '{folder / table}.parquet' (FORMAT parquet, ROW_GROUP_SIZE 200000)")
    return database


def load(spark: SparkSession, folder: Path, file_bytes: int) -> None:
    """Makes the tables in two databases, one for each layout."""
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(file_bytes))
    for layout in ("indexed", "liquid"):
        spark.sql(f"CREATE DATABASE {layout}")
        for table in SMALL:
            spark.read.parquet(f"{folder / table}.parquet").write.format("delta").saveAsTable(f"{layout}.{table}")
    for table, columns in COLUMNS.items():
        listed, rows = ", ".join(columns), f"parquet.`{folder / table}.parquet`"
        spark.sql(
            f"CREATE TABLE indexed.{table} USING delta TBLPROPERTIES ('use.index.columns' = '{listed}', "
            f"'use.index.targetFileBytes' = '{file_bytes}') AS SELECT * FROM {rows}"
        )
        sql_ext.call(spark, "optimize", table=f"indexed.{table}").collect()
        spark.sql(f"CREATE TABLE liquid.{table} USING delta CLUSTER BY ({listed}) AS SELECT * FROM {rows}")
        spark.sql(f"OPTIMIZE liquid.{table} FULL")


def run_query(spark: SparkSession, query: str, database: str, joins: str) -> Execution:
    """Runs a query in a database."""
    spark.sql(f"USE {database}")
    spark.conf.set(JOINS_ENABLED.name, joins)
    return execute(spark, query)


def main() -> None:
    """Runs the queries and prints a table and, with ``--json``, its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--target", type=int, default=8_000_000, help="bytes of a file")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of queries")
    parser.add_argument("--json", help="a file for the figures")
    options = parser.parse_args()
    figures: dict[int, dict[str, Figures]] = {}
    with tempfile.TemporaryDirectory() as home:
        queries, answers = generate(options.scale, Path(home))
        spark = start_session("bench-tpch", Path(home), "4g", COUNTED_READS | {"spark.sql.shuffle.partitions": "8"})
        load(spark, Path(home), options.target)
        print(f"{'query':6}" + "".join(f"{name:>32}" for name in CONTENDERS) + f"{'ratio':>8}", flush=True)
        for number, query in queries.items():
            if options.only and number not in options.only:
                continue
            contenders = {name: partial(run_query, spark, query, *contender) for name, contender in CONTENDERS.items()}
            runs = in_turn(contenders, options.rounds)
            for name, each in runs.items():
                if not is_same(each[-1].rows, texts_of(answers[number])):
                    raise AssertionError(f"query {number}, {name}: the answer is not DuckDB's")
            figures[number] = {
                name: Figures(each[-1].input_bytes, each[-1].jobs, median_seconds(each)) for name, each in runs.items()
            }
            print_line(str(number), figures[number])
        spark.stop()
    print_line("all", {name: _sum([found[name] for found in figures.values()]) for name in CONTENDERS})
    if options.json:
        table = {str(n): {name: asdict(f) for name, f in found.items()} for n, found in figures.items()}
        Path(options.json).write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def _sum(figures: list[Figures]) -> Figures:
    return Figures(sum(f.input_bytes for f in figures), sum(f.jobs for f in figures), sum(f.seconds for f in figures))


def print_line(name: str, figures: dict[str, Figures]) -> None:
    """Prints bytes, jobs and seconds of each contender, and the bytes in proportion to liquid clustering."""
    cells = [f"{f.input_bytes / 1e6:.1f} MB, {f.jobs} jobs, {f.seconds:.2f} s" for f in figures.values()]
    ratio = figures[ON].input_bytes / max(figures[LIQUID].input_bytes, 1)
    print(f"{name:6}" + "".join(f"{cell:>32}" for cell in cells) + f"{ratio:8.3f}", flush=True)


if __name__ == "__main__":
    main()
