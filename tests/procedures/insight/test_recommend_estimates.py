"""``CALL use.recommend`` on skewed, partitioned and textual data, with samples that are smaller than the table.

Each workload has a known best answer. The expected share is compared with the bytes of the files that the plans of the
queries read after the answer was applied.
"""

import pytest
from pyspark.sql import functions as F

import sql_ext
from procedures.insight.recommendation.candidates import MOST_COLUMNS

ROWS, FILES, SAMPLE = 200_000, 50, 20_000


def _rows(spark):
    """Zipf's law in ``user`` and ``city``, a long tail in ``amount``; ``name`` begins with few of the letters."""
    uniform = F.rand(11)
    user = F.least(F.lit(50_000), F.floor(F.pow(F.rand(1), -1 / 1.1))).cast("int")
    initial = F.element_at(F.array(*map(F.lit, "sssmmac")), (F.floor(F.rand(3) * 7) + 1).cast("int"))
    return spark.range(0, ROWS, 1, FILES).select(
        "id",
        user.alias("user"),
        F.concat(F.lit("city-"), F.format_string("%05d", F.least(F.lit(3000), F.floor(F.pow(uniform, -1.0))))).alias(
            "city"
        ),
        F.concat(initial, F.substring(F.sha2(F.col("id").cast("string"), 256), 1, 11)).alias("name"),
        F.exp(3 * F.randn(5)).alias("amount"),
        F.rand(6).alias("x"),
        F.rand(7).alias("y"),
        F.when(F.rand(8) < 0.7, "large").when(F.rand(9) < 0.7, "medium").otherwise("small").alias("p"),
        F.when(F.rand(10) < 0.5, F.rand(12)).alias("gap"),
    )


def _make(spark, name, *partitions):
    _rows(spark).write.format("delta").partitionBy(*partitions).saveAsTable(name)
    size = spark.sql(f"DESCRIBE DETAIL {name}").collect()[0].sizeInBytes
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('use.index.targetFileBytes' = '{size // FILES}')")
    return name


@pytest.fixture(scope="module")
def tables(spark):
    """Names of a plain and a partitioned table."""
    names = {"plain": _make(spark, "default.estimated"), "partitioned": _make(spark, "default.estimated_parts", "p")}
    yield names
    for name in names.values():
        spark.sql(f"DROP TABLE {name}")


WORKLOADS = {
    "a frequent and a rare user": ("plain", "user", ["user = 2", "user = 211", "user BETWEEN 30 AND 60"]),
    "rare users": ("plain", "user", ["user BETWEEN 500 AND 900", "user > 20000", "user IN (77, 3021)"]),
    "cities": ("plain", "city", ["city = 'city-00007'", "city >= 'city-00100' AND city < 'city-00200'"]),
    "names": ("plain", "name", ["name >= 'c' AND name < 'd'", "name = 's0123456789a'", "name > 'sf'"]),
    "long tail": ("plain", "amount", ["amount BETWEEN 1 AND 1.2", "amount > 100", "amount < 0.01"]),
    "tail and names": (
        "plain", "amount,name", ["amount > 10 AND name < 'b'", "amount BETWEEN 0.5 AND 1 AND name BETWEEN 'm' AND 'm9'"]
    ),
    "two columns of one box": (
        "plain", "x,user", ["x BETWEEN 0.2 AND 0.4 AND user > 10", "x > 0.7 AND user BETWEEN 2 AND 3"]
    ),
    "nulls": ("plain", "gap", ["gap IS NULL AND x > 0", "gap < 0.1"]),
    "a partition and a column": ("partitioned", "x", ["p = 'large' AND x < 0.05", "x BETWEEN 0.5 AND 0.6"]),
    "a skewed column of partitions": (
        "partitioned", "user", ["user = 9 AND p <> 'small'", "user > 1000", "p = 'medium' AND user = 1"]
    ),
    "samples of partitions": ("partitioned", "x", ["SAMPLE x < 0.3", "x > 0.9 AND p = 'large'"]),
}  # fmt: skip


def _query(table, where):
    if where.startswith("SAMPLE"):
        return f"SELECT * FROM {table} TABLESAMPLE (10 PERCENT) WHERE {where.removeprefix('SAMPLE')}"
    return f"SELECT * FROM {table} WHERE {where}"


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKLOADS)
def test_the_estimate_of_a_sample_is_within_a_fifth_of_what_is_read(spark, tables, name):
    kind, columns, conditions = WORKLOADS[name]
    source, copy = tables[kind], "default.estimated_copy"
    partitions = ["p"] if kind == "partitioned" else []
    spark.table(source).write.format("delta").partitionBy(*partitions).saveAsTable(copy)
    try:
        target = spark.sql(f"SHOW TBLPROPERTIES {source} ('use.index.targetFileBytes')").collect()[0].value
        spark.sql(f"ALTER TABLE {copy} SET TBLPROPERTIES ('use.index.targetFileBytes' = '{target}')")
        queries = [_query(copy, where) for where in conditions]
        best = sql_ext.call(spark, "recommend", table=copy, queries=queries, sample_rows=SAMPLE).collect()[0]
        sql_ext.call(spark, "index", table=copy, columns=best.columns).collect()
        sql_ext.call(spark, "optimize", table=copy).collect()
        scans = [sql_ext.read_report(spark.sql(query)).scans[0] for query in queries]
        read = [scan.kept_bytes / scan.total_bytes for scan in scans]
        measured = sum(read) / len(read)
        print(f"{name}: {best.columns}, expected {best.expected_share:.4f}, measured {measured:.4f}, {read}")
        assert {column.partition(":")[0] for column in best.columns.split(",")} == set(columns.split(","))
        assert best.expected_share == pytest.approx(measured, rel=0.2)
    finally:
        spark.sql(f"DROP TABLE {copy}")


@pytest.mark.slow
def test_no_index_and_many_columns(spark, tables):
    parts = sql_ext.call(
        spark, "recommend", table=tables["partitioned"], sample_rows=5_000,
        queries=[_query(tables["partitioned"], "p = 'medium'")],
    ).collect()[0]  # fmt: skip
    assert (parts.columns, parts.advice) == (None, "NO_INDEX")
    where = "x < 0.5 AND y < 0.5 AND amount < 1 AND gap < 0.5 AND user < 2 AND city < 'city-00002'"
    rows = sql_ext.call(
        spark, "recommend", table=tables["plain"], queries=[_query(tables["plain"], where)], sample_rows=20_000
    ).collect()
    assert 2 <= len(rows[0].columns.split(",")) <= MOST_COLUMNS
    assert max(len(row.columns.split(",")) for row in rows if row.columns) == MOST_COLUMNS
