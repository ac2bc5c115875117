"""Writes a table, or uses one that another line of Spark has written: ``line_table.py write|use FOLDER``.

A process of its own, because each line of Spark has its own environment.
"""

import json
import sys
from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

import sql_ext

ROWS = 5_000


def session(folder: Path) -> SparkSession:
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.qbeast.use.service.enabled", "false")
    )
    spark = sql_ext.configure(builder).getOrCreate()
    sql_ext.attach(spark)
    return spark


def append(spark: SparkSession, name: str, start: int, count: int) -> None:
    rows = spark.range(start, start + count).selectExpr("id", "hash(id) % 1000 AS x", "hash(id, 1) % 1000 AS y")
    rows.write.format("delta").mode("append").save(name)


def write(spark: SparkSession, path: str) -> None:
    """An indexed table with appends, deletes and an optimization."""
    rows = spark.range(ROWS).selectExpr("id", "hash(id) % 1000 AS x", "hash(id, 1) % 1000 AS y")
    rows.write.format("qbeast").option("columnsToIndex", "x,y").option("cubeSize", "500").save(path)
    append(spark, path, 1_000_000, 500)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE x = 5")
    spark.sql(f"CALL use.optimize(table => 'delta.`{path}`')").collect()
    append(spark, path, 2_000_000, 500)


def use(spark: SparkSession, path: str) -> None:
    """Reads, samples, changes, optimizes and checks it."""
    table = spark.read.format("delta").load(path)
    before = Counter(map(tuple, table.collect()))
    assert 0 < table.sample(0.1).count() < sum(before.values()) / 4
    box = table.where("x BETWEEN 0 AND 100").collect()
    assert Counter(map(tuple, box)) == Counter(row for row in before.elements() if 0 <= row[1] <= 100)
    optimized = spark.sql(f"CALL use.optimize(table => 'delta.`{path}`')").collect()
    assert "committed" in {row.state for row in optimized}, optimized
    assert Counter(map(tuple, spark.read.format("delta").load(path).collect())) == before
    found = spark.sql(f"CALL use.check(table => 'delta.`{path}`', deep => true)").collect()
    assert [row.check for row in found] == ["SUMMARY"], found
    assert spark.sql(f"SELECT * FROM delta.`{path}`.optimizations").count() >= 2
    append(spark, path, 3_000_000, 500)


if __name__ == "__main__":
    action, folder = sys.argv[1], Path(sys.argv[2])
    spark = session(folder)
    {"write": write, "use": use}[action](spark, str(folder / "table"))
    sys.stdout.write(json.dumps({"spark": spark.version}) + "\n")
