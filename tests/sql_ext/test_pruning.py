"""Range queries over an indexed table: fewer files than Delta's statistics keep, and the very same rows."""

import pytest
from pyspark.sql import functions as F
from tables import PlainReads, checksum

from sql_ext import bridge, read_report

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
    made = shared_table(COLUMNS, index="a,b,s", cube_size=60, file_bytes="2kb").append(_rows(spark, 0, 4000))
    made.index()
    made.append(_rows(spark, 4000, 300))
    assert len(made.files) > 30
    return made


@pytest.fixture(scope="module")
def times(spark, shared_table):
    made = shared_table(COLUMNS, index="d,t,n,f", cube_size=60, file_bytes="2kb").append(_rows(spark, 0, 3000))
    made.index()
    return made


def check(table, condition, wanted_pruned=None):
    """Rows with the rules are rows without them; says how many files the index dropped."""
    data = table.data.where(condition)
    with PlainReads(table.spark):
        wanted = checksum(table.data.where(condition))
    assert checksum(table.data.where(condition)) == wanted, condition
    (scan,) = read_report(data).scans or (None,)
    dropped = scan.candidate_files - scan.kept_files if scan else 0
    if wanted_pruned:
        assert scan.pruned
        assert dropped > 0, f"{condition} reads all {scan.kept_files} files that Delta keeps"
    return dropped


@pytest.mark.parametrize(
    "condition",
    [
        "a = 17",
        "a = 17 AND b < 50",
        "a < 100 AND b BETWEEN 10 AND 20",
        "a > 900 AND b > 90 AND b < 95",
        "b >= 99.5 AND a <= 300",
        "a IN (3, 4, 5) AND b < 30",
        "s = 's7'",
        "s = 's7' AND a < 500",
        "a BETWEEN 100 AND 140",
        "17 = a AND 50D > b",
    ],
)
def test_boxes_drop_files_that_statistics_kept(table, condition):
    check(table, condition, wanted_pruned=True)


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


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", "Asia/Kolkata"])
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


@pytest.mark.parametrize(
    "condition",
    [
        "d BETWEEN DATE'2021-06-01' AND DATE'2021-06-20' AND n < 200",
        "t < TIMESTAMP'2020-09-20 00:00:00Z' AND n > 900",
        "n BETWEEN 100 AND 110.5 AND d > DATE'2021-06-01'",
        "f > 95 AND n < 50",
    ],
)
def test_boxes_of_other_types_drop_files(times, condition):
    check(times, condition, wanted_pruned=True)


def test_a_sample_and_a_box_together(table):
    box, sample = table.data.where("a < 100 AND b < 50"), table.data.sample(0.1)
    both = table.data.sample(0.1).where("a < 100 AND b < 50")
    kept = [read_report(data).scans[0].kept_files for data in (box, sample, both)]
    assert kept[2] <= min(kept[:2])
    assert kept[2] < read_report(both).scans[0].candidate_files
    with PlainReads(table.spark):
        wanted = checksum(table.data.where("a < 100 AND b < 50").join(sample.select("a").distinct(), "a", "left_semi"))
    assert checksum(both)[0] <= wanted[0]


def test_joins_unions_and_subqueries_prune_each_scan_alone(table):
    low, high = table.data.where("a < 50"), table.data.where("a > 950")
    with PlainReads(table.spark):
        counts = table.data.where("a < 50").count(), table.data.where("a > 950").count()
    union = low.union(high)
    assert len(read_report(union).scans) == 2
    assert all(scan.pruned for scan in read_report(union).scans)
    assert union.count() == sum(counts)
    query = "SELECT count(*) n FROM {t} WHERE a < 50 AND a <= (SELECT max(a) FROM {t} WHERE a < 20 AND b < 60)"
    found = table.sql(query)[0].n
    with PlainReads(table.spark):
        assert found == table.sql(query)[0].n
    exists = "SELECT count(*) n FROM {t} o WHERE a < 30 AND EXISTS (SELECT 1 FROM {t} i WHERE i.a = o.a AND i.b < 20)"
    found = table.sql(exists)[0].n
    with PlainReads(table.spark):
        assert found == table.sql(exists)[0].n


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


def test_parameters_of_sql(table):
    with PlainReads(table.spark):
        wanted = table.data.where("a > 900 AND b < 20").count()
    named = table.spark.sql(f"SELECT * FROM {table.name} WHERE a > :low AND b < :high", args={"low": 900, "high": 20.0})
    placed = table.spark.sql(f"SELECT * FROM {table.name} WHERE a > ? AND b < ?", args=[900, 20.0])
    for data in (named, placed):
        assert read_report(data).scans[0].pruned
        assert data.count() == wanted
    sampled = table.spark.sql(
        f"SELECT count(*) n FROM {table.name} TABLESAMPLE (10 PERCENT) WHERE a > :low", args={"low": 5}
    )
    assert sampled.collect()[0].n > 0
    assert table.spark.sql("SELECT :x + 1 AS y", args={"x": 1}).collect()[0].y == 2


def test_switched_off(table, set_conf):
    set_conf("spark.qbeast.use.pruning.enabled", "false")
    assert not read_report(table.data.where("a = 17")).scans[0].pruned


@pytest.mark.parametrize("operation", ["plan_read", "plan_sample"])
def test_an_error_while_planning_falls_back(table, monkeypatch, operation):
    def broken(*arguments):
        raise RuntimeError("staged")

    monkeypatch.setattr(bridge, operation, broken)
    with PlainReads(table.spark):
        wanted = table.data.where("a < 50").count()
    data = table.data.where("a < 50")
    if operation == "plan_read":
        assert not read_report(data).scans[0].pruned
        assert data.count() == wanted
    else:
        assert read_report(table.data.sample(0.5)).samples == 1
        assert 0 < table.data.sample(0.5, seed=1).count() < 4300


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
