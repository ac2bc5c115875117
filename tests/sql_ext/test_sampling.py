"""Samples of an indexed table: pushed to the weights, and exactly the rows whose weight is in range."""

import pytest
from pyspark.sql import functions as F
from pyspark_test import assert_pyspark_df_equal
from tables import NUMBERS, PlainReads, checksum, numbers

from otree.weight import MAX_WEIGHT, MIN_WEIGHT, WeightRange
from sql_ext import read_report

ROWS = 5000


@pytest.fixture(scope="module")
def table(spark, shared_table):
    """4,500 indexed rows in several files, and 500 that are not indexed yet."""
    made = shared_table(NUMBERS, index="x,y", cube_size=200, file_bytes="12kb").append(numbers(spark, 4500))
    made.index()
    made.append(numbers(spark, 500, start=4500))
    assert len(made.files) > 6
    assert len(made.unindexed) == 1
    spark.sql(f"CREATE OR REPLACE VIEW default.sampled_view AS SELECT id, y FROM {made.name} WHERE y < 500")
    yield made
    spark.sql("DROP VIEW default.sampled_view")


def expected(table, lower, upper):
    """The sample's rows by a plain computation over all of them."""
    with PlainReads(table.spark):
        weights = WeightRange.of_sample(lower, upper)
        first, last = (weights.first, weights.last) if weights else (MAX_WEIGHT, MIN_WEIGHT)
        rows = table.data.where(F.hash("x", "y").between(first, last)).collect()
    return table.spark.createDataFrame(rows, NUMBERS)


def assert_pushed(data, filters=1):
    report = read_report(data)
    assert report.samples == 0
    assert report.weight_filters >= filters
    return report


def same(data, wanted):
    assert_pyspark_df_equal(data, wanted, order_by=data.columns)


@pytest.mark.quick_sample(2)
@pytest.mark.parametrize("fraction", [0.5, 0.1, 0.01, 0.0005, 1e-9])
def test_exactly_the_rows_in_range(table, fraction):
    sample = table.data.sample(fraction)
    report = assert_pushed(sample)
    wanted = expected(table, 0.0, fraction)
    same(sample, wanted)
    (scan,) = report.scans
    if fraction < 0.2:
        assert scan.pruned
        assert scan.kept_files < scan.candidate_files
    assert scan.kept_files >= 1, "the file without index is read by every sample"
    assert wanted.where("id >= 4500").count() == sample.where("id >= 4500").count()


def test_half_a_table_is_about_half(table):
    assert table.data.sample(0.5).count() == pytest.approx(ROWS / 2, rel=0.1)


def test_all_and_nothing(table):
    assert read_report(table.data.sample(1.0)).samples == 0
    assert checksum(table.data.sample(1.0)) == table.checksum()
    assert table.data.sample(0.0).count() == 0


def test_every_seed_gives_the_same_rows(table):
    same(table.data.sample(0.1, seed=1), table.data.sample(fraction=0.1, seed=2))


def _as_sql(table, text):
    return table.spark.sql(text.format(t=table.name))


PUSHED = {
    "tablesample": "SELECT * FROM {t} TABLESAMPLE (10 PERCENT)",
    "project": "SELECT id, x, y, s FROM (SELECT s, y, x, id FROM {t}) TABLESAMPLE (10 PERCENT)",
    "renamed": "SELECT a id, b x, y, s FROM (SELECT id a, x b, y, s FROM {t}) TABLESAMPLE (10 PERCENT)",
    "cte": "WITH c AS (SELECT * FROM {t} TABLESAMPLE (10 PERCENT)) SELECT * FROM c",
    "subquery": "SELECT * FROM {t} WHERE id IN (SELECT id FROM {t} TABLESAMPLE (10 PERCENT))",
    "join": "SELECT a.* FROM {t} a JOIN (SELECT id FROM {t} TABLESAMPLE (10 PERCENT)) b ON a.id = b.id",
}


@pytest.mark.quick_sample(3)
@pytest.mark.parametrize("query", PUSHED.values(), ids=PUSHED)
def test_pushed_through_sql(table, query):
    data = _as_sql(table, query)
    assert_pushed(data)
    same(data.select("id", "x", "y", "s"), expected(table, 0.0, 0.1))


def test_pushed_below_a_filter(table):
    data = table.data.where("y < 300").sample(0.2)
    assert_pushed(data)
    same(data, expected(table, 0.0, 0.2).where("y < 300"))


def test_pushed_into_a_view(table):
    data = table.spark.sql("SELECT * FROM default.sampled_view TABLESAMPLE (20 PERCENT)")
    assert_pushed(data)
    same(data, expected(table, 0.0, 0.2).where("y < 500").select("id", "y"))


def test_in_a_scalar_subquery(table):
    data = _as_sql(table, "SELECT (SELECT count(*) FROM {t} TABLESAMPLE (10 PERCENT)) n")
    report = read_report(data)
    assert (report.samples, report.weight_filters) == (0, 1)
    assert data.collect()[0].n == expected(table, 0.0, 0.1).count()


@pytest.mark.slow
def test_two_samples_of_one_table_in_a_join(table):
    small, large = table.data.sample(0.1), table.data.sample(0.4)
    joined = small.alias("a").join(large.alias("b"), "id")
    assert_pushed(joined, filters=2)
    assert joined.count() == small.count()
    assert large.join(small, "id", "left_anti").count() == large.count() - small.count()
    assert small.union(large).count() == small.count() + large.count()


def test_a_split_holds_each_row_once(table):
    shares = table.data.randomSplit([1.0, 2.0, 7.0], seed=3)
    counts = [share.count() for share in shares]
    assert sum(counts) == ROWS
    assert counts == sorted(counts)
    whole = shares[0].union(shares[1]).union(shares[2])
    assert checksum(whole) == table.checksum()


def _int_of_weight(weight):
    """The INT whose hash by Spark is this weight: Murmur3 of four bytes, each step of which can be undone."""
    mask = 2**32 - 1

    def rotated(x, bits):
        return (x << bits | x >> (32 - bits)) & mask

    def over(factor, x):
        return x * pow(factor, -1, 2**32) & mask

    h = weight & mask
    h ^= h >> 16
    h = over(0xC2B2AE35, h)
    h ^= h >> 13 ^ h >> 26
    h = over(0x85EBCA6B, h)
    h ^= h >> 16
    h ^= 4
    k = rotated(over(5, h - 0xE6546B64 & mask), 19) ^ 42
    k = over(0xCC9E2D51, rotated(over(0x1B873593, k), 17))
    return k - 2**32 if k >= 2**31 else k


@pytest.mark.slow
def test_a_split_keeps_the_largest_weights(spark, new_table):
    """The bounds of six equal parts end at 0.9999999999999999, above which there are two weights."""
    edges = [_int_of_weight(w) for w in (MIN_WEIGHT, MIN_WEIGHT + 1, MAX_WEIGHT - 1, MAX_WEIGHT)]
    rows = spark.createDataFrame([(v,) for v in [*edges, *range(100)]], "v INT")
    table = new_table("v INT", index="v", cube_size=20).append(rows).index()
    assert [r.w for r in rows.select(F.hash("v").alias("w")).take(4)][2:] == [MAX_WEIGHT - 1, MAX_WEIGHT]
    for count in (6, 7):
        parts = table.data.randomSplit([1.0] * count, seed=3)
        assert [read_report(part).samples for part in parts] == [0] * count
        found = [r.v for part in parts for r in part.collect()]
        assert sorted(found) == sorted(r.v for r in rows.collect())


def test_spark_samples_with_replacement_itself(table):
    sample = table.data.sample(True, 0.3, 5)
    report = read_report(sample)
    assert (report.samples, report.weight_filters) == (1, 0)
    assert 0 < sample.count() < ROWS


def test_a_sample_of_a_sample_is_not_the_first_one_again(table):
    sample = table.data.sample(0.5).sample(0.5, seed=1)
    assert sample.count() == pytest.approx(ROWS / 4, rel=0.3)


def test_a_sample_above_an_aggregation_is_sparks(table):
    report = read_report(table.data.groupBy("id").count().sample(0.5))
    assert (report.samples, report.weight_filters) == (1, 0)


def test_rows_by_number_are_not_a_fraction(table):
    data = _as_sql(table, "SELECT * FROM {t} TABLESAMPLE (7 ROWS)")
    assert data.count() == 7
    assert read_report(data).weight_filters == 0


def test_cached_samples(table):
    sample = table.data.sample(0.1).cache()
    try:
        same(sample, expected(table, 0.0, 0.1))
    finally:
        sample.unpersist()


def test_switched_off(table, set_conf):
    set_conf("spark.qbeast.use.sampling.enabled", "false")
    assert read_report(table.data.sample(0.5)).samples == 1


def test_the_report_says_which_rows_a_sample_takes(table):
    sample = table.data.where("y < 900").sample(0.1, seed=5)
    report = read_report(sample)
    (found,) = report.weight_samples
    assert (found.columns, found.lower, found.upper, found.coarse) == (("x", "y"), 0.0, 0.1, None)
    assert "a seed has no effect" in found.note
    low, high = (read_report(part).weight_samples[0] for part in table.data.randomSplit([0.25, 0.75], seed=1))
    assert (low.lower, low.upper, high.lower, high.upper) == (0.0, 0.25, 0.25, 1.0)
    assert read_report(table.data.where("hash(x) % 2 = 0")).weight_samples == ()


def test_the_report_names_columns_as_users_do(spark, new_table):
    table = new_table("a INT, b INT", index="a,b")
    table.append(spark.range(10).selectExpr("CAST(id AS INT) a", "CAST(id AS INT) b")).index()
    spark.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    spark.sql(f"ALTER TABLE {table.name} RENAME COLUMN b TO c")
    (found,) = read_report(table.data.sample(0.1)).weight_samples
    assert found.columns == ("a", "c")


def test_the_report_counts_what_each_skips(table):
    def scan_of(data):
        (scan,) = read_report(data).scans
        assert (scan.total_files, scan.total_bytes) == (len(table.files), sum(f.size for f in table.files))
        assert scan.skipped_by_delta_files + scan.skipped_by_index_files + scan.kept_files == scan.total_files
        assert scan.skipped_by_delta_bytes + scan.skipped_by_index_bytes + scan.kept_bytes == scan.total_bytes
        return scan

    assert scan_of(table.data.sample(0.01)).skipped_by_delta_files == 0
    assert scan_of(table.data.where("id >= 4500")).skipped_by_delta_files > 0


def test_a_coarse_index_is_said(spark, new_table):
    table = new_table("v INT", index="v", cube_size=50).append(spark.range(400).selectExpr("CAST(id % 5 AS INT) v"))
    (found,) = read_report(table.index().data.sample(0.1)).weight_samples
    assert found.coarse == "low cardinality: about 5 distinct weights for 400 rows; samples are coarse"


def test_samples_are_left_to_spark_by_a_setting_of_the_session(table):
    """SET counts for its session alone, and the seed counts there."""
    other = table.spark.newSession()
    other.sql("SET spark.qbeast.use.sampling.enabled = false").collect()

    def sampled(spark, seed):
        return spark.table(table.name).sample(0.2, seed=seed)

    assert [s.reason for s in read_report(sampled(other, 1)).spark_samples] == ["SWITCHED_OFF"]
    assert not read_report(sampled(table.spark, 1)).spark_samples
    assert checksum(sampled(other, 1)) != checksum(sampled(other, 2))
    other.sql("RESET spark.qbeast.use.sampling.enabled").collect()
    assert not read_report(sampled(other, 1)).spark_samples


def test_a_table_without_index_is_sampled_as_usual(spark, new_table):
    plain = new_table(NUMBERS).append(numbers(spark, 200))
    declared = new_table(NUMBERS, index="x").append(numbers(spark, 200))
    for table in (plain, declared):
        report = read_report(table.data.sample(0.5, seed=1))
        assert (report.samples, report.weight_filters) == (1, 0)
        assert 0 < table.data.sample(0.5, seed=1).count() < 200


@pytest.mark.slow
def test_a_sample_as_of_a_version_before_the_index(spark, new_table):
    table = new_table(NUMBERS, index="x", cube_size=50).append(numbers(spark, 500))
    table.index()
    before = spark.read.option("versionAsOf", 1).table(table.name)
    assert before.count() == 500
    assert 0 < before.sample(0.5).count() < 500
    assert read_report(before.sample(0.5)).samples == 1
    after = spark.read.option("versionAsOf", table.version).table(table.name)
    assert_pushed(after.sample(0.5))


def test_after_a_deletion_vector_the_sample_is_exact(spark, new_table):
    table = new_table(NUMBERS, index="x,y", cube_size=100, properties={"delta.enableDeletionVectors": "true"})
    table.append(numbers(spark, 1000)).index()
    table.sql("DELETE FROM {t} WHERE id % 4 = 0")
    assert table.data.count() == 750
    sample = table.data.sample(0.3)
    assert_pushed(sample)
    same(sample, expected(table, 0.0, 0.3))
    assert sample.where("id % 4 = 0").count() == 0
