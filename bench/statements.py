"""What statements cost that keep the layout, beside the same statements without it.

Each statement runs on one indexed table in turn with and without USE's transaction, several times. After a statement
that changes many rows, the table is restored. Statements of a few rows follow each other, each on other keys. The table
is TPC-H's ``lineitem`` from a Parquet file, or rows of the same shape.

    make bench-statements ARGS="--rows 1000000 --rounds 3"
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench_session import start_session
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from catalog.settings.session_settings import STATEMENTS_ENABLED
from catalog.table.managed_table import ManagedTable

TABLE = "lineitem"
LIKE_LINEITEM = (
    "CAST(id DIV 4 AS BIGINT) AS l_orderkey",
    "CAST(rand(1) * 200000 AS BIGINT) AS l_partkey",
    "CAST(rand(2) * 10000 AS BIGINT) AS l_suppkey",
    "CAST(id % 4 AS INT) AS l_linenumber",
    "CAST(rand(3) * 50 AS DECIMAL(15, 2)) AS l_quantity",
    "CAST(rand(4) * 100000 AS DECIMAL(15, 2)) AS l_extendedprice",
    "CAST(rand(5) * 10 AS DECIMAL(15, 2)) / 100 AS l_discount",
    "date_add(DATE '1992-01-01', CAST(rand(6) * 2520 AS INT)) AS l_shipdate",
    "substr('AIRFOBSHIPMAILRAIL', CAST(rand(7) * 6 AS INT) * 3, 4) AS l_shipmode",
    "md5(CAST(id AS STRING)) AS l_comment",
)


def few_rows_statements() -> dict[str, str]:
    """The statements on four orders from ``{key}``, by name; ``{t}`` is the table."""
    few = "l_orderkey BETWEEN {key} AND {key} + 3"
    return {
        "DELETE of a few rows": f"DELETE FROM {{t}} WHERE {few}",
        "UPDATE of a few rows": f"UPDATE {{t}} SET l_quantity = 1 WHERE {few}",
        "MERGE of a few rows": (
            f"MERGE INTO {{t}} t USING (SELECT * FROM original WHERE {few}) s "
            f"ON t.l_orderkey = s.l_orderkey AND t.l_linenumber = s.l_linenumber AND t.{few} "
            "WHEN MATCHED THEN UPDATE SET t.l_quantity = 2"
        ),
    }


def statements() -> dict[str, str]:
    """The statements on many rows, by name; ``{t}`` is the table."""
    return {
        "DELETE of 0.1 %, in all files": "DELETE FROM {t} WHERE hash(l_orderkey) % 1000 = 7",
        "UPDATE of 1 %, in all files": "UPDATE {t} SET l_comment = 'x' WHERE hash(l_orderkey) % 100 = 7",
        "MERGE of 0.1 %, half of it new": (
            "MERGE INTO {t} t USING changes s ON t.l_orderkey = s.l_orderkey AND t.l_linenumber = s.l_linenumber "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ),
        "INSERT REPLACE WHERE of a month": (
            "INSERT INTO {t} REPLACE WHERE l_shipdate BETWEEN DATE '1995-03-01' AND DATE '1995-03-31' "
            "SELECT * FROM original WHERE l_shipdate BETWEEN DATE '1995-03-01' AND DATE '1995-03-31'"
        ),
        "INSERT OVERWRITE": "INSERT OVERWRITE {t} SELECT * FROM original",
    }


def main() -> None:
    """Runs the comparison and prints a table and, with ``--json``, its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lineitem", help="Parquet file of TPC-H's lineitem")
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows where there is no file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--target", type=int, default=16_000_000, help="bytes of a file")
    parser.add_argument("--vectors", action="store_true", help="with deletion vectors")
    parser.add_argument("--only", default="", help="a part of the names of statements")
    parser.add_argument("--json", help="a file for the figures")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        spark = start_session("bench-statements", Path(folder), "6g", {})
        figures = run(spark, options)
        spark.stop()
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def run(spark: SparkSession, options: argparse.Namespace) -> dict[str, dict[str, float | None]]:
    """Makes the table and measures each statement."""
    prepare(spark, options)
    last = spark.table(TABLE).agg(F.max("l_orderkey")).first()[0]
    keys = itertools.count(last // 2, 100)
    figures = {}
    print(f"{'statement':34} {'with':>7} {'without':>7} {'ratio':>6} {'indexed with':>13} {'without':>8}")
    for name, text in (few_rows_statements() | statements()).items():
        if options.only not in name:
            continue
        is_large = name in statements()
        version = spark.sql(f"DESCRIBE HISTORY {TABLE}").agg(F.max("version")).first()[0]
        seconds: dict[str, list[float]] = {"true": [], "false": []}
        indexed = {}
        for turn in range(options.rounds + 1):
            for setting in ("true", "false") if turn % 2 else ("false", "true"):
                spark.conf.set(STATEMENTS_ENABLED.name, setting)
                statement = text.format(t=TABLE, key=next(keys))
                begin = time.perf_counter()
                spark.sql(statement).collect()
                seconds[setting].append(time.perf_counter() - begin)
                if is_large:
                    indexed[setting] = indexed_share(spark)
                    restore(spark, version)
        if not is_large:
            # Without USE, a statement leaves files without an index.
            restore(spark, version)
        # The first round warms up.
        with_use, without = (statistics.median(seconds[setting][1:]) for setting in ("true", "false"))
        figures[name] = {
            "seconds": with_use,
            "seconds_without": without,
            "indexed": indexed.get("true"),
            "indexed_without": indexed.get("false"),
        }
        shares = f"{indexed['true']:13.1%} {indexed['false']:8.1%}" if is_large else ""
        print(f"{name:34} {with_use:7.2f} {without:7.2f} {with_use / without:6.2f} {shares}", flush=True)
    return figures


def restore(spark: SparkSession, version: int) -> None:
    """Restores the table, and has the list of its files read again, which is kept from one statement to the next."""
    spark.sql(f"RESTORE TABLE {TABLE} TO VERSION AS OF {version}").collect()
    len(ManagedTable.find(spark, TABLE).snapshot().file_table)


def prepare(spark: SparkSession, options: argparse.Namespace) -> None:
    """Makes and indexes the table, and the rows of the statements."""
    if options.lineitem:
        rows = spark.read.parquet(options.lineitem)
    else:
        rows = spark.range(options.rows).selectExpr(*LIKE_LINEITEM)
    vectors = str(options.vectors).lower()
    rows.limit(0).write.format("delta").option("delta.enableDeletionVectors", vectors).saveAsTable(TABLE)
    spark.sql(
        f"ALTER TABLE {TABLE} SET TBLPROPERTIES ('use.index.columns' = 'l_shipdate,l_orderkey', "
        f"'use.index.targetFileBytes' = '{options.target}')"
    )
    rows.write.format("delta").mode("append").saveAsTable(TABLE)
    spark.sql(f"CALL use.optimize('{TABLE}')").collect()
    rows.write.saveAsTable("original", format="parquet")
    original = spark.table("original")
    changes = original.where("hash(l_orderkey) % 2000 = 11")
    new = changes.withColumn("l_linenumber", F.col("l_linenumber") + 10)
    changes.union(new).coalesce(1).write.saveAsTable("changes", format="parquet")


def indexed_share(spark: SparkSession) -> float:
    """The share of the table's bytes in indexed files."""
    files: DataFrame = spark.sql(f"SELECT * FROM {TABLE}.index_files")
    row = files.agg(F.sum("size"), F.sum(F.when(F.col("revision_id") > 0, F.col("size")).otherwise(0))).first()
    return row[1] / row[0]


if __name__ == "__main__":
    sys.exit(main())
