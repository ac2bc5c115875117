"""Range queries over an indexed table: fewer files than Delta's statistics keep, and the very same rows."""

import pytest
from pyspark.sql import functions as F
from tables import PlainReads, another_engine, checksum

from catalog.errors import UseError
from sql_ext import SampleReason, bridge, read_report

COLUMNS = "a BIGINT, b DOUBLE, s STRING, d DATE, t TIMESTAMP, n DECIMAL(10,2), f FLOAT"


def _rows(spark, start, count):
    """Rows whose columns are independent of each other; b has NaN and infinities, all have nulls."""

    def below(salt, limit):
        return f"pmod(xxhash64(id, '{salt}'), {limit})"

    return spark.range(start, start + count).selectExpr(
        f"IF(id % 50 = 0, NULL, {below('a', 1000)}) a",
        f"""CASE id % 40 WHEN 1 THEN NULL WHEN 2 THEN double('NaN') WHEN 3 THEN double('Infinity')
            WHEN 4 THEN double('-Infinity') ELSE {below("b", 10000)} / 100D END b""",
        f"IF(id % 60 = 0, NULL, concat('s', {below('s', 20)})) s",
        f"IF(id % 70 = 0, NULL, date_add(DATE'2020-01-01', CAST({below('d', 700)} AS INT))) d",
        f"IF(id % 80 = 0, NULL, timestamp_micros(1600000000000000 + {below('t', 10**6)} * 86400001)) t",
        f"IF(id % 90 = 0, NULL, CAST({below('n', 100000)} / 100 AS DECIMAL(10,2))) n",
        f"CAST({below('f', 1000)} / 10 AS FLOAT) f",
    )


@pytest.fixture(scope="module")
def table(spark, shared_table):
    """Indexed in small cubes, with some rows that are not indexed yet."""
    made = shared_table(COLUMNS, index="a,b,s", cube_size=60, file_bytes="4kb").append(_rows(spark, 0, 2500))
    made.index()
    made.append(_rows(spark, 4000, 300))
    assert len(made.files) > 10
    return made


@pytest.fixture(scope="module")
def times(spark, shared_table):
    made = shared_table(COLUMNS, index="d,t,n,f", cube_size=60, file_bytes="4kb").append(_rows(spark, 0, 2000))
    made.index()
    return made


def check(table, condition):
    """Rows with the rules are rows without them."""
    with PlainReads(table.spark):
        wanted = checksum(table.data.where(condition))
    assert checksum(table.data.where(condition)) == wanted, condition


def pruned(data):
    """Whether every scan of the query reads fewer files than Delta kept."""
    scans = read_report(data).scans
    return bool(scans) and all(scan.pruned and scan.kept_files < scan.candidate_files for scan in scans)


@pytest.fixture(scope="module")
def corners(spark, shared_table):
    """Rows in the four corners of a square, without minima and maxima, so that it is the cubes that skip.

    Each axis is there in several types, all of them indexed.
    """
    bare = {"delta.dataSkippingNumIndexedCols": "0"}
    made = shared_table(COLUMNS, index="a,b,d,n,t,f", cube_size=50, properties=bare)
    places = spark.sql(
        """SELECT id, IF(id % 6 IN (3, 4, 5), 800, 0) + pmod(xxhash64(id, 'x'), 200) x,
        IF(id % 6 IN (2, 4, 5), 800, 0) + pmod(xxhash64(id, 'y'), 200) y FROM range(6000)"""
    )
    made.append(
        places.selectExpr(
            "x a", "y / 10D b", "'' s", "date_add(DATE'2020-01-01', CAST(x AS INT)) d",
            "timestamp_millis(1600000000000 + x * 86400000) t", "CAST(y / 100 AS DECIMAL(10,2)) n", "float(y) f",
        )
    )  # fmt: skip
    size = sum(f.size for f in made.files) // 12
    made.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('use.index.targetFileBytes'='{size}')")
    return made.index()


@pytest.mark.quick_sample(3)
@pytest.mark.parametrize(
    "condition",
    [
        "a < 150 AND b < 15",
        "a <= 150 AND b <= 15 AND s = ''",
        "a = 17 AND b < 15",
        "17 = a AND 15D > b",
        "a BETWEEN 100 AND 140 AND b BETWEEN 3 AND 10",
        "a IN (3, 4, 5) AND b < 15",
        "a > 850 AND b >= 85",
        "d < DATE'2020-05-01' AND n < 1",
        "t <= TIMESTAMP'2020-12-01 00:00:00Z' AND f < 150",
        "d BETWEEN DATE'2020-02-01' AND DATE'2020-04-01' AND b < 15",
        "n = 1.50 AND a < 150",
        "f BETWEEN 20 AND 90.5 AND t < TIMESTAMP'2020-12-01 00:00:00Z'",
        "(a < 150 AND b < 15) OR (a > 850 AND b > 85)",
        "NOT (a >= 150 OR b >= 15)",
        "a IN (17, 18, 190) AND b < 15",
        "CAST(a AS DOUBLE) < 150.5D AND b < 15",
        "d < TIMESTAMP'2020-05-01 12:00:00' AND b < 15",
    ],
)
def test_boxes_drop_files(corners, condition):
    assert pruned(corners.data.where(condition))
    check(corners, condition)


@pytest.mark.quick_sample(6)
@pytest.mark.parametrize(
    "condition",
    [
        "a = -1",
        "a = 1000000",
        "a <> 17",
        "a IS NULL",
        "a IS NOT NULL AND b IS NULL",
        "a <=> NULL",
        "a <=> 17",
        "a = 17 OR b = 5",
        "(a = 17 AND b < 50) OR (a = 18 AND b > 50)",
        "NOT (a < 900)",
        "a IN (1, NULL, 2)",
        "a NOT IN (1, 2)",
        "a IN (1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20)",
        "CAST(a AS INT) = 17",
        "CAST(a AS STRING) = '17'",
        "a = '17'",
        "a = 17.0",
        "a < 17.5D",
        "a + 1 = 18",
        "abs(a) < 20",
        "a % 10 = 3",
        "b = double('NaN')",
        "b > 99",
        "b >= double('Infinity')",
        "b > double('Infinity')",
        "b < double('-Infinity') OR b = double('-Infinity')",
        "b <= double('NaN')",
        "b < double('NaN') AND a < 100",
        "b IN (double('NaN'), 5D)",
        "isnan(b)",
        "b BETWEEN -5 AND 0",
        "b = 0.0D OR b = -0.0D",
        "s < 's15'",
        "s > 's15' AND s <= 's17'",
        "s LIKE 's1%'",
        "upper(s) = 'S7'",
        "s IN ('s1', 's2')",
        "s = ''",
        "concat(s, 'x') = 's7x'",
        "length(s) = 2 AND a < 50",
        "a < 100 AND rand(1) >= 0",
        "a = b",
        "true",
        "false",
    ],
)
def test_results_are_those_of_plain_reading(table, condition):
    check(table, condition)


@pytest.fixture(scope="module")
def rounded(spark, shared_table):
    """Whole numbers around 2^24, and flags with nulls; neither has minima and maxima in the log."""
    bare = {"delta.dataSkippingNumIndexedCols": "0"}
    made = shared_table("i INT, k BOOLEAN", index="i,k", cube_size=50, properties=bare)
    flag = "CASE pmod(xxhash64(id, 'k'), 3) WHEN 0 THEN true WHEN 1 THEN false END k"
    made.append(spark.range(3000).selectExpr("int(16777186 + pmod(xxhash64(id), 200)) i", flag))
    size = sum(f.size for f in made.files) // 12
    made.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('use.index.targetFileBytes'='{size}')")
    return made.index()


@pytest.mark.slow
def test_null_safe_and_rounded_comparisons(rounded, set_conf):
    set_conf("spark.sql.ansi.enabled", "false")
    for condition in (
        "k IS NOT FALSE AND i < 16777200",
        "k IS DISTINCT FROM false AND i < 16777200",
        "NOT (k <=> false) AND i < 16777200",
        "i = float(16777216)",
        "i <= float(16777216)",
    ):
        check(rounded, condition)
        assert pruned(rounded.data.where(condition)), condition
    for condition in ("k IS UNKNOWN", "k IS NOT TRUE", "NOT (i <=> 16777217)", "i IS DISTINCT FROM 16777217"):
        check(rounded, condition)


@pytest.mark.slow
def test_large_conditions_prune_and_deep_ones_are_answered(rounded):
    many = " OR ".join(f"i = {16777186 + number // 1000}" for number in range(10_000))
    assert pruned(rounded.data.where(many))
    deep = "i < 16777200"
    for number in range(120):
        deep = f"({deep} {'AND' if number % 2 else 'OR'} i <> {number})"
    check(rounded, deep)


@pytest.mark.quick_sample(6)
@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Kolkata"])
@pytest.mark.parametrize(
    "condition",
    [
        "d = DATE'2020-03-01'",
        "d >= DATE'2021-06-01' AND d < '2021-07-01'",
        "d = TIMESTAMP'2020-03-01 00:00:00'",
        "t >= TIMESTAMP'2020-10-01 00:00:00' AND t < TIMESTAMP'2020-10-15 12:00:00.000001'",
        "t < '2020-09-14'",
        "to_date(t) = DATE'2020-10-10'",
        "t BETWEEN TIMESTAMP'2020-10-01 00:00:00Z' AND TIMESTAMP'2020-10-02 00:00:00Z' AND n < 100",
        "year(d) = 2021 AND month(d) = 2",
        "n = 12.34",
        "n BETWEEN 100 AND 110.5",
        "n < 1",
        "f = 12.3",
        "f = CAST(12.3 AS FLOAT)",
        "f > 99.85 AND n < 500",
    ],
)
def test_dates_times_and_fractions_in_any_zone(times, set_conf, condition, zone):
    set_conf("spark.sql.session.timeZone", zone)
    check(times, condition)


def test_a_sample_and_a_box_together(table):
    box, sample = table.data.where("a < 100 AND b < 50"), table.data.sample(0.1)
    both = table.data.sample(0.1).where("a < 100 AND b < 50")
    kept = [read_report(data).scans[0].kept_files for data in (box, sample, both)]
    assert kept[2] <= min(kept[:2])
    assert kept[2] < read_report(both).scans[0].candidate_files
    with PlainReads(table.spark):
        wanted = checksum(table.data.where("a < 100 AND b < 50").join(sample.select("a").distinct(), "a", "left_semi"))
    assert checksum(both)[0] <= wanted[0]


def test_joins_and_unions_prune_each_scan_alone(corners):
    low, high = corners.data.where("a < 150 AND b < 15"), corners.data.where("a > 850 AND b > 85")
    with PlainReads(corners.spark):
        counts = low.count(), high.count()
        joined_plainly = low.join(high, low.a == high.a - 800).count()
    low, high = corners.data.where("a < 150 AND b < 15"), corners.data.where("a > 850 AND b > 85")
    union, join = low.union(high), low.join(high, low.a == high.a - 800)
    for data in (union, join):
        assert len(read_report(data).scans) == 2
        assert pruned(data)
    assert union.count() == sum(counts)
    assert join.count() == joined_plainly


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) n FROM {t} WHERE a < 50 AND a <= (SELECT max(a) FROM {t} WHERE a < 20 AND b < 60)",
        "SELECT count(*) n FROM {t} o WHERE a < 30 AND EXISTS (SELECT 1 FROM {t} i WHERE i.a = o.a AND i.b < 20)",
        "SELECT count(*) n FROM {t} WHERE a IN (SELECT a FROM {t} WHERE b > 90 AND s = 's3')",
    ],
)
def test_subqueries(table, query):
    found = table.sql(query)
    with PlainReads(table.spark):
        assert found == table.sql(query)


def test_a_cached_table_answers_all_queries(table):
    cached = table.data.where("a < 100").cache()
    try:
        with PlainReads(table.spark):
            wanted = table.data.where("a < 100 AND b < 50").count(), table.data.where("a < 300").count()
        assert cached.where("b < 50").count() == wanted[0]
        # The same scan with another filter must not be answered from the cache.
        assert table.data.where("a < 300").count() == wanted[1]
    finally:
        cached.unpersist()


def test_parameters_of_sql(corners):
    spark, name = corners.spark, corners.name
    with PlainReads(spark):
        wanted = corners.data.where("a < 150 AND b < 15").count()
    named = spark.sql(f"SELECT * FROM {name} WHERE a < :a AND b < :b", args={"a": 150, "b": 15.0})
    placed = spark.sql(f"SELECT * FROM {name} WHERE a < ? AND b < ?", args=[150, 15.0])
    for data in (named, placed):
        assert pruned(data)
        assert data.count() == wanted
    sampled = spark.sql(f"SELECT * FROM {name} TABLESAMPLE (10 PERCENT) WHERE a > :low", args={"low": 5})
    assert (read_report(sampled).samples, read_report(sampled).weight_filters) == (0, 1)
    assert spark.sql("SELECT :x + 1 AS y", args={"x": 1}).collect()[0].y == 2


def test_switched_off(corners, set_conf):
    set_conf("spark.qbeast.use.pruning.enabled", "false")
    assert not read_report(corners.data.where("a < 150 AND b < 15")).scans[0].pruned


@pytest.mark.parametrize("condition", ["a > -1000000", "a > 500"])
def test_each_scan_asks_once(corners, monkeypatch, condition):
    asked, plan = [], bridge.plan_read
    monkeypatch.setattr(bridge, "plan_read", lambda *scan: asked.append(scan) or plan(*scan))
    corners.data.where(condition).where("length(s) > 1").select("b").collect()
    assert len(asked) == 1


@pytest.mark.parametrize("operation", ["plan_read", "plan_sample"])
def test_an_error_while_planning_falls_back(corners, monkeypatch, operation):
    def broken(*arguments):
        raise RuntimeError("staged")

    box = "a < 150 AND b < 15"
    with PlainReads(corners.spark):
        wanted = corners.data.where(box).count()
    monkeypatch.setattr(bridge, operation, broken)
    if operation == "plan_read":
        assert not read_report(corners.data.where(box)).scans[0].pruned
        assert corners.data.where(box).count() == wanted
    else:
        assert read_report(corners.data.sample(0.5)).samples == 1
        assert 0 < corners.data.sample(0.5, seed=1).count() < 6000


@pytest.mark.slow
def test_after_updates_merges_and_deletes(spark, new_table):
    table = new_table(COLUMNS, index="a,b,s", cube_size=60, file_bytes="6kb").append(_rows(spark, 0, 1500))
    table.index()
    table.sql("UPDATE {t} SET a = a + 500 WHERE a < 100")
    table.sql("DELETE FROM {t} WHERE b < 30")
    _rows(spark, 9000, 50).createOrReplaceTempView("more_rows")
    table.sql("MERGE INTO {t} USING more_rows m ON {t}.a = m.a AND {t}.s = m.s WHEN NOT MATCHED THEN INSERT *")
    for condition in ("a < 100", "a = 555", "a > 560 AND b < 60", "s = 's3'"):
        check(table, condition)
    table.index()
    for condition in ("a < 100", "a = 555", "a > 560 AND b < 60", "s = 's3'"):
        check(table, condition)


@pytest.mark.slow
def test_a_stream_reads_every_row_once(spark, new_table, tmp_path):
    table = new_table("a BIGINT", index="a", cube_size=50).append(spark.range(300).select(F.col("id").alias("a")))
    table.index()
    seen = []

    def run():
        query = (
            spark.readStream.table(table.name)
            .where("a >= 0")
            .writeStream.foreachBatch(lambda batch, _: seen.extend(r.a for r in batch.collect()))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)

    run()
    table.append(spark.range(300, 400).select(F.col("id").alias("a"))).index()
    run()
    assert sorted(seen) == list(range(400))


@pytest.mark.slow
def test_time_travel(spark, new_table):
    table = new_table("a BIGINT", index="a", cube_size=50, file_bytes="1kb")
    table.append(spark.range(500).select(F.col("id").alias("a")))
    plain = table.version
    table.index()
    indexed = table.version
    table.sql("DELETE FROM {t} WHERE a >= 0")
    for version, pruned in [(plain, False), (indexed, True)]:
        data = spark.sql(f"SELECT * FROM {table.name} VERSION AS OF {version} WHERE a BETWEEN 100 AND 109")
        assert data.count() == 10
        assert read_report(data).scans[0].pruned in ({pruned} if not pruned else {True, False})
    table.sql(f"RESTORE TABLE {{t}} TO VERSION AS OF {indexed}")
    assert table.data.where("a BETWEEN 100 AND 109").count() == 10
    assert not table.unindexed


def test_columns_whose_joined_names_are_equal_are_not_mixed(spark, new_table):
    """Revisions join the names of a nested column by dots. Another engine adds a column with the same joined name."""
    table = new_table("id INT, a STRUCT<`b.c`: INT>", index="a.`b.c`", cube_size=50, file_bytes="3kb")
    table.append(spark.range(500).selectExpr("CAST(id AS INT) id", "named_struct('b.c', CAST(id AS INT)) a"))
    table.index()
    with another_engine():
        table.sql("ALTER TABLE {t} ADD COLUMN `a.b` STRUCT<c: INT>")
    for condition in ("`a.b`.c IS NULL", "hash(`a.b`.c) = 42", "a.`b.c` < 20"):
        check(table, condition)
    (sample,) = read_report(table.data.sample(0.5)).spark_samples
    assert sample.reason is SampleReason.MISSING_COLUMN
    with pytest.raises(UseError, match=r"columns `a`\.`b\.c` and `a\.b`\.`c` cannot be indexed"):
        table.index()


@pytest.mark.slow
def test_a_new_column_with_the_joined_name_of_an_indexed_field_is_another_one(spark, new_table):
    properties = {"use.index.onWrite": "true"}
    table = new_table("id INT, s STRUCT<a: INT>", index="s.a", cube_size=100, file_bytes="8kb", properties=properties)
    values = ["CAST(id AS INT) id", "named_struct('a', CAST(id AS INT)) s"]
    table.append(spark.range(3000).selectExpr(*values)).index()
    rows = spark.sql("SELECT 5000 AS id, named_struct('a', 7) AS s, 2000 AS `s.a`")
    rows.write.format("delta").mode("append").option("mergeSchema", "true").save(str(table.path))
    for condition in ("`s.a` IS NULL", "`s.a` = 2000", "s.a = 7", "hash(`s.a`) = 42"):
        check(table, condition)
    assert table.data.where("`s.a` IS NULL").count() == 3000
    parts = table.data.randomSplit([0.5, 0.5], seed=1)
    assert sum(part.count() for part in parts) == 3001
    (sample,) = read_report(table.data.sample(0.5)).spark_samples
    assert sample.reason is SampleReason.MISSING_COLUMN
    table.sql("INSERT INTO {t} VALUES (5001, named_struct('a', 8), 2001)")
    table.sql("UPDATE {t} SET id = 5002 WHERE id = 5001")
    assert table.data.where("`s.a` IN (2000, 2001)").count() == 2
    assert len(table.unindexed) == 2
    with pytest.raises(UseError, match=r"columns `s\.a` and `s`\.`a` cannot be indexed") as refused:
        table.index()
    assert refused.value.code == "USE_AMBIGUOUS_COLUMN"
