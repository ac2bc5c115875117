"""How often the intervals of ``use.approximate`` contain the exact answers of Spark, over tables of many shapes."""

import math

import pytest
from pyspark.sql import functions as F

import sql_ext

TABLES, CONFIDENCE = 30, 0.9
# Values of the column v, by shape. The column w is indexed in the second revision.
SHAPES = {
    "normal": "40 + 10 * randn({seed})",
    "heavy tail": "pow(1 - rand({seed}), -1 / 2.2D)",
    "rare": "IF(rand({seed}) < 0.02, 10 + randn(7), NULL)",
    "correlated with the index": "w + 1000 * rand({seed})",
    "duplicates": "pmod(hash(w), 50) + rand({seed})",
    "zero-inflated": "IF(rand({seed}) < 0.05, -100 * ln(1 - rand(9)), 0)",
}
AGGREGATES = "count(v) c, sum(v) s, avg(v) a, stddev(v) d, median(v) m, percentile(v, 0.9) q"
QUERIES = (
    f"SELECT {AGGREGATES} FROM {{t}}",
    f"SELECT {AGGREGATES} FROM {{t}} WHERE id % 3 > 0",
    f"SELECT g, {AGGREGATES} FROM {{t}} GROUP BY g",
)


def _rows(spark, seed, first, count, values):
    # Rows of one w are many with duplicates. The ids differ between tables, and so do the weights.
    distinct = "id DIV 20" if "hash(w)" in values else "id"
    start = seed * 1_000_000 + first
    rows = spark.range(start, start + count, 1, 2).selectExpr("id", f"{distinct} AS w")
    # A group of 60 %, and others down to 1 %.
    group = F.expr("CAST(least(-ln(1 - rand(11)) * 1.1, 4) AS INT)")
    return rows.select("id", "w", F.expr(values.format(seed=seed)).cast("double").alias("v"), group.alias("g"))


def _table(spark, new_table, seed, values):
    """Two revisions, unindexed files and deleted rows."""
    table = new_table(
        "id BIGINT, w BIGINT, v DOUBLE, g INT",
        index="w",
        cube_size=2_000,
        properties={"delta.enableDeletionVectors": "true"},
    )
    table.append(_rows(spark, seed, 0, 10_000, values)).index()
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='w,g')")
    table.append(_rows(spark, seed, 10_000, 20_000, values)).index()
    table.append(_rows(spark, seed, 30_000, 5_000, values))
    table.sql("DELETE FROM {t} WHERE pmod(hash(id, 5), 10) = 0")
    return table


@pytest.mark.slow
def test_intervals_contain_exact_answers_as_often_as_they_say(spark, new_table):
    """Exact answers are computed by Spark from the same version."""
    held, shapes = {}, list(SHAPES)
    for seed in range(TABLES):
        shape = shapes[seed % len(shapes)]
        table = _table(spark, new_table, seed, SHAPES[shape])
        fraction = (0.02, 0.05, 0.2)[seed // len(shapes) % 3]
        for query in (query.format(t=table.name) for query in QUERIES):
            answer = sql_ext.tolerance(
                query, 1e-6, confidence=CONFIDENCE, max_fraction=fraction, on_miss="estimate", per_group=True
            )
            exact = {str(row["g"]) if "g" in row else None: row for row in spark.sql(query).collect()}
            for row in answer:
                if row.aggregate is not None and row.lower is not None and row.upper is not None:
                    truth = exact[row.keys.get("g")][row.aggregate]
                    # Sums of another order differ in the last digits.
                    slack = 1e-9 * abs(truth)
                    holds = row.lower - slack <= truth <= row.upper + slack
                    held.setdefault((row.aggregate, table.name), []).append(holds)
        spark.sql(f"DROP TABLE {table.name}")
    for aggregate in {aggregate for aggregate, _ in held}:
        shares = [sum(found) / len(found) for (name, _), found in held.items() if name == aggregate]
        # The intervals of one table depend on each other: in the worst case, one trial per table.
        least = CONFIDENCE - 3 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / len(shares))
        assert sum(shares) / len(shares) >= least, aggregate
    everything = [hold for found in held.values() for hold in found]
    print(f"{sum(everything)} of {len(everything)} intervals held")
    assert len(everything) > 1_000
    assert sum(everything) / len(everything) >= CONFIDENCE - 0.03
