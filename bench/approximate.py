"""Bytes and time of an answer within a tolerance, compared with the exact answer.

For each query, on a table of 5,000,000 rows and indexes over two columns:

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

import sql_ext

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


def main() -> None:
    """Prints a line of JSON per query."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--tolerance", type=float, default=0.01)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    spark = start_session("approximate", folder, "3g", {"spark.sql.shuffle.partitions": "8"})
    try:
        data = spark.range(0, options.rows, 1, 8).selectExpr(
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
        for name, query in _QUERIES.items():
            measured = _measured(spark, query.format(t="approximated"), options.tolerance, options.rounds)
            print(json.dumps({"query": name, **measured}))
    finally:
        spark.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
