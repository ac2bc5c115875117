"""Bytes and time of an answer within a tolerance, compared with the exact answer.

For each query, on a table of 5,000,000 rows with indexes over two columns, and on TPC-H's largest table at two scales:
the answer from samples, whatever the size of the table (``sampled``), the seconds that an exact answer by the procedure
takes beyond the query, and the answer with default settings (``chosen``). Of the first and the last:

* ``bytes``: share of the bytes of the exact answer that all steps read together.
* ``time``: median of the ratios of times, in rounds that alternate.
* ``error``: distance of the estimate from the exact answer, and of the farther end of the interval.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench_session import start_session
from pyspark.sql import SparkSession
from tpch import write_tables

import sql_ext
from catalog.settings.session_settings import APPROXIMATE_BYTES

_DEFAULT_TOLERANCE = 0.05

_QUERIES = {
    "avg": "SELECT avg(v) AS a FROM {t}",
    "avg where": "SELECT avg(v) AS a FROM {t} WHERE day < 180",
    "sum per group": "SELECT city, sum(v) AS a FROM {t} GROUP BY city",
}


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def _measured(spark: SparkSession, query: str, tolerance: float, rounds: int) -> dict[str, float]:
    ratios = []
    rows: list[sql_ext.ApproximateRow] = []
    exact: list[Any] = []
    far = 0.0
    for _ in range(rounds):
        near, rows = _timed(lambda: sql_ext.tolerance(query, tolerance))
        far, exact = _timed(lambda: spark.sql(query).collect())
        ratios.append(near / far)
    truth = {tuple(str(value) for value in row[:-1]): row[-1] for row in exact}
    found = [row for row in rows if row.aggregate is not None]
    errors = [abs((row.estimate or 0.0) / truth[tuple(map(str, row.keys.values()))] - 1.0) for row in found]
    widths = [((row.upper or 0.0) - (row.lower or 0.0)) / 2 / (row.estimate or 1.0) for row in found]
    return {
        "fraction": found[0].fraction,
        "bytes": round(found[0].bytes_read / found[0].exact_bytes, 4),
        "time": round(statistics.median(ratios), 3),
        "exact_seconds": round(far, 2),
        "error": round(max(errors), 5),
        "half_width": round(max(widths), 5),
    }


def _measured_exactly(spark: SparkSession, query: str, rounds: int) -> float:
    """Seconds that a call takes beyond the query where it answers exactly; the median."""
    spark.conf.set(APPROXIMATE_BYTES.name, "1TB")
    return statistics.median(
        _timed(lambda: sql_ext.tolerance(query))[0] - _timed(lambda: spark.sql(query).collect())[0]
        for _ in range(rounds)
    )


def _with_groups(spark: SparkSession, rows: int) -> dict[str, str]:
    """Makes a table of groups with a wide column; returns its queries."""
    data = spark.range(0, rows, 1, 8).selectExpr(
        "id",
        "CAST(rand(1) * 365 AS INT) AS day",
        "20 + 30 * rand(2) + 10 * randn(3) AS v",
        "concat('city', id % 10) AS city",
        "md5(CAST(id AS STRING)) AS payload",
    )
    spark.sql(
        "CREATE TABLE approximated (id BIGINT, day INT, v DOUBLE, city STRING, payload STRING) USING delta "
        "TBLPROPERTIES ('use.index.columns' = 'id,day', 'use.index.targetFileBytes' = '4MB')"
    )
    data.writeTo("approximated").append()
    sql_ext.call(spark, "optimize", table="approximated")
    return {name: query.format(t="approximated") for name, query in _QUERIES.items()}


def _lineitem(spark: SparkSession, folder: Path, scale: float) -> dict[str, str]:
    """Makes the largest table of TPC-H; returns Q1 and Q6."""
    database = write_tables(scale, folder, ["lineitem"])
    queries = dict(database.execute("SELECT query_nr, query FROM tpch_queries()").fetchall())
    database.close()
    spark.sql(
        "CREATE OR REPLACE TABLE lineitem USING delta TBLPROPERTIES ('use.index.columns' = 'l_shipdate,l_orderkey') "
        f"AS SELECT * FROM parquet.`{folder}/lineitem.parquet`"
    )
    sql_ext.call(spark, "optimize", table="lineitem")
    return {f"TPC-H Q{number}, scale {scale:g}": queries[number].rstrip("; \n") for number in (1, 6)}


def main() -> None:
    """Prints a line of JSON per query."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000, help="of the table with groups; 0 for none")
    parser.add_argument("--tolerance", type=float, default=0.01, help="of the table with groups")
    parser.add_argument("--scales", type=float, nargs="*", default=[1.0, 4.0], help="of TPC-H")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    spark = start_session("approximate", folder, "3g", {"spark.sql.shuffle.partitions": "8"})
    try:
        if options.rows:
            _print(spark, _with_groups(spark, options.rows), options.tolerance, options.rounds)
        for scale in options.scales:
            _print(spark, _lineitem(spark, folder, scale), _DEFAULT_TOLERANCE, options.rounds)
    finally:
        spark.stop()
        shutil.rmtree(folder)


def _print(spark: SparkSession, queries: dict[str, str], tolerance: float, rounds: int) -> None:
    for name, query in queries.items():
        spark.conf.set(APPROXIMATE_BYTES.name, "1")
        sampled = _measured(spark, query, tolerance, rounds)
        extra = _measured_exactly(spark, query, rounds)
        spark.conf.unset(APPROXIMATE_BYTES.name)
        chosen = _measured(spark, query, tolerance, rounds)
        figures = {"sampled": sampled, "exactly_extra_seconds": round(extra, 2), "chosen": chosen}
        print(json.dumps({"query": name, **figures}), flush=True)


if __name__ == "__main__":
    main()
