"""Every sample is pushed to the weights, or says why Spark takes it."""

import pytest
from pyspark.sql import functions as F
from tables import NUMBERS, numbers

from sql_ext import SampleReason, bridge, read_report


@pytest.fixture(scope="module")
def table(spark, shared_table):
    made = shared_table(NUMBERS, index="x,y", cube_size=100, file_bytes="8kb").append(numbers(spark, 1000))
    return made.index()


@pytest.fixture(scope="module")
def plain(spark, shared_table):
    return shared_table(NUMBERS).append(numbers(spark, 100))


def reasons(data):
    return [sample.reason for sample in read_report(data).spark_samples]


LEFT = {
    "aggregation": (lambda t: t.groupBy("y").count().sample(0.5), SampleReason.NOT_A_TABLE),
    "distinct": (lambda t: t.select("y").distinct().sample(0.5), SampleReason.NOT_A_TABLE),
    "join": (lambda t: t.join(t.select("id"), "id").sample(0.5), SampleReason.NOT_A_TABLE),
    "limit": (lambda t: t.limit(10).sample(0.5), SampleReason.NOT_A_TABLE),
    "explode": (lambda t: t.select(F.explode(F.array("x", "y"))).sample(0.5), SampleReason.NOT_A_TABLE),
    "window": (lambda t: t.selectExpr("row_number() OVER (ORDER BY id) n").sample(0.5), SampleReason.NOT_A_TABLE),
    "random column": (lambda t: t.withColumn("r", F.rand()).sample(0.5), SampleReason.NON_DETERMINISTIC_BELOW),
    "random filter": (lambda t: t.where(F.rand() < 0.5).sample(0.5), SampleReason.NON_DETERMINISTIC_BELOW),
    "twice": (lambda t: t.sample(0.5).where("y < 900").sample(0.5), SampleReason.SAMPLE_OF_SAMPLE),
    "own hash": (lambda t: t.where(F.hash("id") % 2 == 0).sample(0.5), SampleReason.SAMPLE_OF_SAMPLE),
    "named hash": (
        lambda t: t.selectExpr("*", "hash(id) h").where("h > 0").sample(0.5),
        SampleReason.SAMPLE_OF_SAMPLE,
    ),
    "file": (lambda t: t.where("_metadata.file_size > 0").sample(0.5), SampleReason.SAMPLE_OF_SAMPLE),
    "named file": (
        lambda t: t.selectExpr("*", "_metadata.file_name f").where("f > ''").select("id").sample(0.5),
        SampleReason.SAMPLE_OF_SAMPLE,
    ),
    "replacement": (lambda t: t.sample(True, 0.5), SampleReason.WITH_REPLACEMENT),
}


@pytest.mark.quick_sample(3)
@pytest.mark.parametrize(("make", "reason"), LEFT.values(), ids=LEFT)
def test_what_spark_samples_says_why(table, make, reason):
    (sample,) = read_report(make(table.data)).spark_samples
    assert sample.reason is reason
    assert sample.detail
    assert (sample.lower, sample.upper) == (0.0, 0.5)


@pytest.mark.parametrize(
    "condition",
    [
        "id NOT IN (SELECT id FROM {kept})",
        "EXISTS (SELECT 1 FROM {kept} k WHERE k.id = t.id)",
        "(SELECT max(k.x) FROM {kept} k WHERE k.id = t.id) > 0",
    ],
)
def test_rows_that_are_selected_by_keys_of_a_stored_sample(spark, table, plain, condition):
    query = f"SELECT * FROM {table.name} t WHERE {condition.format(kept=plain.name)}"
    assert reasons(spark.sql(f"SELECT * FROM ({query}) TABLESAMPLE (50 PERCENT)")) == [SampleReason.NOT_A_TABLE]
    column = f"SELECT id, {condition.format(kept=plain.name)} AS flag FROM {table.name} t"
    assert reasons(spark.sql(f"SELECT * FROM ({column}) TABLESAMPLE (50 PERCENT)")) == [SampleReason.NOT_A_TABLE]


def test_rows_that_are_selected_by_the_value_of_a_subquery_are_sampled_by_weight(spark, table, plain):
    query = f"SELECT * FROM {table.name} WHERE id > (SELECT max(id) / 2 FROM {plain.name})"
    assert reasons(spark.sql(f"SELECT * FROM ({query}) TABLESAMPLE (50 PERCENT)")) == []


def test_tables_without_index_and_rows_of_no_table(spark, plain):
    assert reasons(plain.data.sample(0.5)) == [SampleReason.NOT_INDEXED]
    assert reasons(spark.range(10).sample(0.5)) == [SampleReason.NOT_A_TABLE]


def test_each_sample_has_its_own_reason(table, plain):
    data = table.data.sample(0.5).join(plain.data.sample(0.5), "id").join(table.data.sample(True, 0.5), "id")
    assert sorted(reasons(data)) == [SampleReason.NOT_INDEXED, SampleReason.WITH_REPLACEMENT]
    assert read_report(data).weight_filters == 1


def test_a_cache_is_no_table(table):
    cached = table.data.cache()
    try:
        assert reasons(cached.sample(0.5)) == [SampleReason.CACHED]
        assert 0 < cached.sample(0.5, seed=1).count() < 1000
    finally:
        cached.unpersist()


def test_settings_of_the_session(table, set_conf):
    set_conf("spark.qbeast.use.sampling.enabled", "false")
    assert reasons(table.data.sample(0.5)) == [SampleReason.SWITCHED_OFF]
    set_conf("spark.sql.optimizer.excludedRules", "io.usespark.SampleRule")
    assert reasons(table.data.sample(0.5)) == [SampleReason.NOT_CONSIDERED]


def test_an_error_is_a_reason(table, monkeypatch):
    def broken(*_):
        raise RuntimeError("staged")

    monkeypatch.setattr(bridge, "plan_sample", broken)
    (sample,) = read_report(table.data.sample(0.5)).spark_samples
    assert sample.reason is SampleReason.ERROR
    assert "staged" in sample.detail


@pytest.mark.slow
def test_an_indexed_column_that_is_gone(spark, new_table):
    mapping = {"delta.columnMapping.mode": "name", "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
    table = new_table(NUMBERS, index="x,y", cube_size=50, properties=mapping).append(numbers(spark, 200)).index()
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='x')")
    table.sql("ALTER TABLE {t} DROP COLUMN y")
    assert reasons(table.data.sample(0.5)) == [SampleReason.MISSING_COLUMN]
    assert 0 < table.data.sample(0.5, seed=1).count() < 200


PUSHED = {
    "union": lambda t: t.where("y < 300").union(t.where("y >= 300")).sample(0.2),
    "sorted": lambda t: t.orderBy("id").sample(0.2),
    "repartitioned": lambda t: t.repartition(3).sample(0.2),
    "filter above": lambda t: t.sample(0.2).where("y < 5000"),
    "computed": lambda t: t.withColumn("z", F.expr("x + y")).sample(0.2).drop("z"),
}


@pytest.mark.quick_sample(2)
@pytest.mark.parametrize("make", PUSHED.values(), ids=PUSHED)
def test_rows_are_kept_or_dropped_one_by_one_below(table, make):
    data = make(table.data)
    assert not reasons(data)
    assert sorted(data.collect()) == sorted(table.data.sample(0.2).collect())


def test_a_union_with_a_plain_table_is_sparks(table, plain):
    assert reasons(table.data.union(plain.data).sample(0.5)) == [SampleReason.NOT_INDEXED]


def test_shares_of_a_split_are_pushed(table):
    shares = table.data.randomSplit([0.3, 0.7], seed=1)
    assert [reasons(share) for share in shares] == [[], []]
    assert sum(share.count() for share in shares) == 1000
