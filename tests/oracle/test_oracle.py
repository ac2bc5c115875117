"""Random queries and samples over random tables: always the rows that plain Delta gives.

A failure names its seed; ``USE_ORACLE_SEED=<seed> pytest tests/oracle -k seed`` runs that one alone.
"""

import os
from random import Random

import pytest
from pyspark.sql import functions as F
from random_tables import predicate, random_table
from tables import PlainReads, checksum

from otree.weight import MAX_WEIGHT, MIN_WEIGHT, WeightRange
from sql_ext import SampleReason, read_report

FEW, MANY = (10, 10), (100, 20)


def _query(name, columns, random):
    """A query as SQL: filters below projections, aggregations, joins and subqueries."""
    first, second = predicate(columns, random), predicate(columns, random, 1)
    key = random.choice(list(columns))
    join = f"{random.choice(['JOIN', 'LEFT JOIN', 'LEFT ANTI JOIN'])} (SELECT id, p FROM {name} WHERE {second})"
    return random.choice(
        [
            f"SELECT * FROM {name} WHERE {first}",
            f"SELECT * FROM {name} WHERE {first}",
            f"SELECT id, {key} k FROM (SELECT * FROM {name} WHERE {first}) WHERE {second}",
            f"SELECT {key} k, count(*) n, min(id) i, sum(p) s FROM {name} WHERE {first} GROUP BY {key}",
            f"SELECT count(*) n, count(DISTINCT {key}) d FROM {name} WHERE {first}",
            f"SELECT a.id FROM (SELECT * FROM {name} WHERE {first}) a {join} b ON a.id = b.id",
            f"SELECT * FROM {name} WHERE id IN (SELECT id FROM {name} WHERE {first}) AND {second}",
            f"SELECT * FROM {name} o WHERE EXISTS (SELECT 1 FROM {name} i WHERE i.id = o.id AND i.p > 0) AND {first}",
            f"SELECT * FROM {name} WHERE id <= (SELECT max(id) FROM {name} WHERE {first}) AND {second}",
            f"SELECT id FROM {name} WHERE {first} UNION ALL SELECT id FROM {name} WHERE {second}",
        ]
    )


def _check_query(made, random):
    text = _query(made.table.name, made.columns, random)
    with PlainReads(made.table.spark):
        wanted = checksum(made.table.spark.sql(text))
    assert checksum(made.table.spark.sql(text)) == wanted, text


def _check_sample(made, random):
    """A sample under and above filters: the rows of the table with weight in range, and it was pushed."""
    spark, hashed = made.table.spark, made.hashed
    below, above = predicate(made.columns, random, 1), predicate(made.columns, random, 1)
    if "hash(" in below:
        below = "true"
    fraction = random.choice([0.01, 0.1, 0.3, 0.5, 0.9, 1.0])
    sampled = spark.sql(
        f"SELECT * FROM (SELECT * FROM {made.table.name} WHERE {below}) TABLESAMPLE ({fraction * 100} PERCENT) "
        f"WHERE {above}"
    )
    report = read_report(sampled)
    if hashed is None:
        assert [s.reason for s in report.spark_samples] == [SampleReason.NOT_INDEXED]
        sampled.collect()
        return
    assert not report.spark_samples, (below, above)
    weights = WeightRange.of_sample(0.0, fraction) or WeightRange(MAX_WEIGHT, MIN_WEIGHT)
    with PlainReads(spark):
        inside = F.hash(*hashed).between(weights.first, weights.last)
        wanted = checksum(made.table.data.where(below).where(inside).where(above))
    assert checksum(sampled) == wanted, (fraction, below, above)


def _check(spark, seed, queries):
    random = Random(seed)
    name = f"default.oracle_{seed}"
    try:
        made = random_table(spark, name, random)
        print(f"seed {seed}: {made.history}")  # pytest shows it when a query fails
        for i in range(queries):
            (_check_sample if i % 3 == 2 else _check_query)(made, random)
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


def _seeds(count):
    wanted = os.environ.get("USE_ORACLE_SEED")
    return [int(wanted)] if wanted else range(count)


@pytest.mark.slow
@pytest.mark.parametrize("seed", _seeds(FEW[0]))
def test_random_tables(spark, seed):
    _check(spark, seed, FEW[1])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [] if os.environ.get("USE_ORACLE_SEED") else range(1000, 1000 + MANY[0]))
def test_more_random_tables(spark, seed):
    _check(spark, seed, MANY[1])
