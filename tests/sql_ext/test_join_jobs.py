"""Keys of a side that is shuffled, which a job of its own collects before the scan of the other side starts."""

import pytest
from compared_queries import compared, scan_of
from spark_jobs import jobs_started

import sql_ext
from catalog.quantities import size_text
from sql_ext import JoinReason, read_report

SALES = "id BIGINT, day INT, name STRING"
DAYS = 300
JOB = "USE keys of"


@pytest.fixture(autouse=True)
def shuffled(set_conf):
    set_conf("spark.sql.adaptive.enabled", "true")
    set_conf("spark.sql.autoBroadcastJoinThreshold", "-1")
    set_conf("spark.sql.adaptive.autoBroadcastJoinThreshold", "-1")
    set_conf("spark.qbeast.use.joins.bytes", "1")
    set_conf("spark.qbeast.use.joins.job-share", "1")


def rows(spark, count):
    return spark.range(count).selectExpr(
        "id", f"CAST(IF(id % 97 = 0, NULL, id % {DAYS}) AS INT) day", f"concat('n', lpad(id % {DAYS}, 4, '0')) name"
    )


@pytest.fixture(scope="module")
def sales(spark, shared_table):
    """Indexed by `day` and `id`; Delta's statistics tell nothing."""
    properties = {"delta.dataSkippingNumIndexedCols": "0"}
    made = shared_table(SALES, index="day,id", cube_size=60, file_bytes="4kb", properties=properties)
    return made.append(rows(spark, 6000)).index()


@pytest.fixture(scope="module")
def plain(spark, shared_table):
    """Without an index; each file has the rows of 20 days, and their statistics."""
    made = shared_table(SALES)
    data = rows(spark, 6000).repartitionByRange(DAYS // 20, "name").sortWithinPartitions("day")
    data.write.format("delta").mode("append").saveAsTable(made.name)
    return made


@pytest.fixture(scope="module")
def dates(spark, shared_table):
    made = shared_table("day INT, quarter INT, label STRING, x DOUBLE")
    days = spark.range(DAYS).selectExpr(
        "CAST(id AS INT) day", "CAST(id / 30 AS INT) quarter", "concat('n', lpad(id, 4, '0')) label", "DOUBLE(id) x"
    )
    return made.append(days)


def jobs_for_keys(spark, first):
    """Descriptions of the jobs for keys since a number of jobs."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    found = context.statusStore().jobsList(None)
    jobs = [found.apply(i) for i in range(found.size())]
    return [
        job.description().get()
        for job in jobs
        if job.jobId() >= first and job.description().isDefined() and job.description().get().startswith(JOB)
    ]


QUERY = "SELECT s.id FROM {s} s JOIN {d} d ON s.day = d.day WHERE d.quarter = 4"


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize(
    "query",
    [
        QUERY,
        "SELECT id FROM {s} s WHERE EXISTS (SELECT 1 FROM {d} d WHERE d.day = s.day AND d.quarter = 4)",
        "SELECT id FROM {s} WHERE day IN (SELECT day FROM {d} WHERE quarter = 4)",
        "SELECT /*+ SHUFFLE_HASH(d) */ s.id FROM {d} d JOIN {s} s USING (day) WHERE d.quarter = 4",
        "SELECT s.id FROM {s} s JOIN {d} d ON s.day = d.day AND s.name = d.label WHERE d.quarter = 4",
        "SELECT s.id FROM {s} s JOIN {d} d ON s.day = d.x WHERE d.quarter = 4",
        "SELECT s.day, count(*) FROM {s} s RIGHT JOIN {d} d ON s.day = d.day WHERE d.quarter = 4 GROUP BY ALL",
        "SELECT id FROM {s} JOIN (SELECT day FROM {d} WHERE quarter = 4 GROUP BY 1 HAVING count(*) > 0) d USING (day)",
    ],
)
def test_a_job_collects_the_keys_of_a_side_that_is_shuffled(spark, sales, plain, dates, query):
    for table in (sales, plain):
        scan = scan_of(compared(spark, query.format(s=table.name, d=dates.name)), table)
        (wanted,) = read_report(table.data.where("day BETWEEN 120 AND 149")).scans
        assert scan.joined_files == wanted.kept_files < scan.kept_files == len(table.files)
        (join,) = scan.joins
        assert (join.reason, join.keys, join.files) == (None, 30, scan.joined_files)
        assert (join.job_files, join.job_bytes) == (1, sum(f.size for f in dates.files))


@pytest.mark.slow
def test_one_job_serves_a_query_whose_plan_changes(spark, plain, dates, set_conf):
    """Adaptive execution makes a new plan after each stage; two scans below one join have the same keys."""
    set_conf("spark.sql.adaptive.autoBroadcastJoinThreshold", "10MB")
    union = f"(SELECT id, day FROM {plain.name} UNION ALL SELECT id + 1, day FROM {plain.name} WHERE id > 7) s"
    query = f"SELECT d.label, count(*) FROM {union} JOIN {dates.name} d ON s.day = d.day WHERE quarter = 4 GROUP BY ALL"
    first = jobs_started(spark)
    report = compared(spark, query)
    described = jobs_for_keys(spark, first)
    assert set(described) == {f"USE keys of spark_catalog.{dates.name} for a join"}
    scans = [scan for scan in report.scans if scan.table.endswith(plain.name)]
    assert len(scans) == 2
    assert all(scan.joined_files < scan.kept_files for scan in scans)
    assert sum(join.job_files or 0 for scan in scans for join in scan.joins) == 1


def test_nothing_is_started_before_a_query_runs(spark, plain, dates):
    first = jobs_started(spark)
    data = spark.sql(QUERY.format(s=plain.name, d=dates.name))
    data._jdf.queryExecution().executedPlan()
    assert [join.reason for join in scan_of(read_report(data), plain).joins] == [JoinReason.NOT_EXECUTED]
    assert not jobs_for_keys(spark, first)


@pytest.mark.quick_sample(4)
@pytest.mark.parametrize(
    ("side", "reason"),
    [
        ("SELECT day FROM {d} WHERE quarter = 4 AND rand() < 0.9", JoinReason.UNREPEATABLE_SIDE),
        ("SELECT day FROM {d} WHERE quarter = 4 LIMIT 7", JoinReason.UNREPEATABLE_SIDE),
        ("SELECT day FROM {d} TABLESAMPLE (10 ROWS)", JoinReason.UNREPEATABLE_SIDE),
        ("SELECT first(day) day FROM {d} GROUP BY quarter", JoinReason.UNREPEATABLE_SIDE),
        ("SELECT day FROM {d} GROUP BY day HAVING sum(x) > 4", JoinReason.UNREPEATABLE_SIDE),
        ("SELECT max(day) OVER (PARTITION BY quarter) day FROM {d} WHERE quarter = 4", JoinReason.UNREPEATABLE_SIDE),
        (
            "SELECT day FROM {d} WHERE x > (SELECT avg(x) FROM {d}) GROUP BY day HAVING max(x) > 1",
            JoinReason.UNREPEATABLE_SIDE,
        ),
        ("SELECT day FROM {d}", JoinReason.UNFILTERED_SIDE),
        ("SELECT day FROM {d} WHERE label > 'n'", JoinReason.UNSELECTIVE_KEYS),
    ],
)
def test_a_reason_says_why_there_is_no_job_or_no_effect(spark, plain, dates, side, reason):
    query = f"SELECT s.id FROM {plain.name} s JOIN ({side.format(d=dates.name)}) d ON s.day = d.day"
    data = spark.sql(query)
    data.collect()
    scan = scan_of(read_report(data), plain)
    assert scan.joined_files == scan.kept_files
    assert {join.reason for join in scan.joins} == {reason}
    assert {join.job_files for join in scan.joins} == {1 if reason is JoinReason.UNSELECTIVE_KEYS else None}


@pytest.mark.slow
def test_settings_limit_jobs(spark, plain, dates, set_conf):
    def reason():
        (join,) = scan_of(compared(spark, QUERY.format(s=plain.name, d=dates.name)), plain).joins
        return join.reason, join.job_files

    set_conf("spark.qbeast.use.joins.keys", "29")
    assert reason() == (JoinReason.TOO_MANY_KEYS, 1)
    set_conf("spark.qbeast.use.joins.keys", "30")
    assert reason() == (None, 1)
    for share, code in (("0", JoinReason.SHUFFLED), ("0.0001", JoinReason.JOB_TOO_LARGE)):
        set_conf("spark.qbeast.use.joins.job-share", share)
        assert reason() == (code, None)
    set_conf("spark.qbeast.use.joins.job-share", "1")
    set_conf("spark.qbeast.use.joins.bytes", "1GB")
    assert reason() == (JoinReason.SMALL_SCAN, None)
    set_conf("spark.sql.adaptive.enabled", "false")
    assert reason() == (JoinReason.ADAPTIVE_EXECUTION_OFF, None)


def test_a_column_that_separates_no_files_starts_no_job(spark, plain, dates, new_table):
    """Each file has all days, so one key leaves all of them."""
    table = new_table(SALES).append(rows(spark, 1000)).append(rows(spark, 1000))
    (join,) = scan_of(compared(spark, QUERY.format(s=table.name, d=dates.name)), table).joins
    assert (join.reason, join.job_files) == (JoinReason.JOB_TOO_LARGE, None)


@pytest.mark.slow
def test_sides_that_are_no_delta_tables_are_not_read_twice(spark, plain, dates, tmp_path):
    dates.data.write.parquet(str(tmp_path / "days"))
    cached = dates.data.where("quarter = 4").cache()
    cached.createOrReplaceTempView("cached_dates")
    try:
        for side in (f"parquet.`{tmp_path}/days`", "cached_dates"):
            query = f"SELECT s.id FROM {plain.name} s JOIN {side} d ON s.day = d.day WHERE d.quarter = 4"
            (join,) = scan_of(compared(spark, query), plain).joins
            assert (join.reason, join.job_files) == (JoinReason.UNREPEATABLE_SIDE, None)
    finally:
        cached.unpersist()
        spark.catalog.dropTempView("cached_dates")


def test_a_job_reads_the_version_of_the_plan(spark, plain, new_table):
    side = new_table("day INT").append(spark.range(5).selectExpr("CAST(id AS INT) day"))
    data = spark.sql(f"SELECT s.id FROM {plain.name} s JOIN {side.name} d ON s.day = d.day WHERE d.day < 250")
    data._jdf.queryExecution().executedPlan()
    side.sql("UPDATE {t} SET day = day + 200")
    assert {row.id % DAYS for row in data.collect()} == {0, 1, 2, 3, 4}
    scan = scan_of(read_report(data), plain)
    assert scan.joined_files < scan.kept_files
    assert scan.joins[0].keys == 5


def test_rows_that_spark_reads_once_for_two_joins_are_read_whole(spark, plain, dates):
    """Both parts shuffle the same rows; one joins those of a quarter, the other all."""
    part = f"SELECT s.id FROM {plain.name} s JOIN {dates.name} d ON s.day = d.day WHERE d.quarter = {{}}"
    report = compared(spark, f"{part.format(4)} UNION ALL {part.format(5)}")
    scans = [scan for scan in report.scans if scan.table.endswith(plain.name)]
    assert all(scan.joined_files == scan.kept_files for scan in scans)
    assert {join.reason for scan in scans for join in scan.joins} == {JoinReason.SHARED_EXCHANGE}


def test_joins_above_a_shuffle_have_keys_too(spark, plain, dates):
    """The upper join compares another column of the scan, and its side is not read before the scan starts."""
    query = (
        f"SELECT s.id FROM {plain.name} s JOIN {dates.name} a ON s.day = a.day JOIN {dates.name} b ON s.name = b.label "
        "WHERE a.quarter IN (1, 2, 3) AND b.quarter IN (3, 4)"
    )
    scan = scan_of(compared(spark, query), plain)
    (wanted,) = read_report(plain.data.where("day BETWEEN 90 AND 119")).scans
    assert scan.joined_files == wanted.kept_files
    assert [join.job_files for join in scan.joins] == [1, 1]


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize("kind", ["LEFT JOIN", "FULL JOIN", "LEFT ANTI JOIN"])
def test_rows_without_a_match_are_read(spark, plain, dates, kind):
    query = f"SELECT s.id FROM {plain.name} s {kind} (SELECT * FROM {dates.name} WHERE quarter = 4) d ON s.day = d.day"
    scan = scan_of(compared(spark, query), plain)
    assert scan.joined_files == scan.kept_files
    assert [join.reason for join in scan.joins] == [JoinReason.UNMATCHED_ROWS_KEPT]


def test_explanations_start_the_same_job(spark, plain, dates):
    query = QUERY.format(s=plain.name, d=dates.name)
    executed = scan_of(compared(spark, query), plain)
    first = jobs_started(spark)
    explained = sql_ext.call(spark, "explain_skipping", query=query).collect()
    items = {row.item: row for row in explained if row.table and row.table.endswith(plain.name)}
    assert items["READ"].files == executed.joined_files < executed.kept_files
    assert f"A job reads the keys from 1 file ({size_text(executed.joins[0].job_bytes)})." in items["JOIN"].message
    assert len(set(jobs_for_keys(spark, first))) == 1


@pytest.mark.slow
def test_records_of_queries_have_what_jobs_read(spark, new_table, dates):
    table = new_table(SALES, index="day,id", cube_size=60, file_bytes="4kb").append(rows(spark, 2000)).index()
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.insights.consumption.enabled' = 'true')")
    scan = scan_of(compared(spark, QUERY.format(s=table.name, d=dates.name)), table)
    spark._jvm.org.apache.spark.sql.usespark.ScanListener.flush(spark._jsparkSession)
    whole, row = spark.sql(f"SELECT * FROM {table.name}.consumption ORDER BY execution_id").collect()
    assert row.read_for_joins == (scan.joins[0].job_files, scan.joins[0].job_bytes)
    assert row.skipped_by_joins.files == scan.kept_files - scan.joined_files
    assert whole.read_for_joins == (0, 0)


def test_a_subquery_shares_no_rows_with_a_join_that_has_other_keys(spark, plain, dates):
    """Spark shuffles the same rows for both, and each reads those that match its own keys."""
    join = f"FROM {plain.name} s JOIN {dates.name} d ON s.day = d.day WHERE d.quarter = {{}}"
    compared(spark, f"SELECT s.id, (SELECT count(*) {join.format(5)}) {join.format(4)}")
    compared(
        spark, f"SELECT sum(s.id) {join.format(4)} HAVING sum(s.id) > (SELECT count(*) {join.format('d.quarter')})"
    )
