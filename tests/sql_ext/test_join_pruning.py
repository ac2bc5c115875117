"""Scans that skip files by the keys of the other side of a join, compared with the same query with it switched off."""

from collections import Counter
from decimal import Decimal
from random import Random

import pyarrow as pa
import pytest
from compared_queries import compared, scan_of
from deltalake import write_deltalake
from spark_jobs import jobs_started
from tables import PlainReads

import sql_ext
from sql_ext import JoinReason, SkippingReason, read_report

SALES = "id BIGINT, day INT, at TIMESTAMP, name STRING, price DOUBLE, amount DECIMAL(10,2), part STRUCT<k: INT, x: INT>"
DAYS = 300


@pytest.fixture(autouse=True)
def adaptive(set_conf):
    set_conf("spark.sql.adaptive.enabled", "true")
    set_conf("spark.qbeast.use.joins.bytes", "1")
    set_conf("spark.qbeast.use.joins.job-share", "0")


def rows(spark, count, start=0):
    return spark.range(start, start + count).selectExpr(
        "id",
        f"CAST(IF(id % 97 = 0, NULL, id % {DAYS}) AS INT) day",
        f"timestamp_seconds((id % {DAYS}) * 86400 + id % 86400) at",
        f"concat('n', lpad(id % {DAYS}, 4, '0')) name",
        f"CASE WHEN id % 50 = 0 THEN DOUBLE('NaN') WHEN id % 50 = 1 THEN -0.0D ELSE id % {DAYS} END price",
        f"CAST(id % {DAYS} AS DECIMAL(10,2)) amount",
        f"named_struct('k', CAST(id % {DAYS} AS INT), 'x', CAST(id AS INT)) part",
    )


@pytest.fixture(scope="module")
def sales(spark, shared_table):
    """Indexed by `day` and `id`; Delta's statistics tell nothing."""
    made = shared_table(
        SALES, index="day,id", cube_size=60, file_bytes="4kb", properties={"delta.dataSkippingNumIndexedCols": "0"}
    )
    return made.append(rows(spark, 3000)).index()


@pytest.fixture(scope="module")
def plain(spark, shared_table):
    """Without an index; each file has the rows of 20 days, and their statistics."""
    made = shared_table(SALES, properties={"delta.enableDeletionVectors": "true"})
    data = rows(spark, 3000).repartitionByRange(DAYS // 20, "amount").sortWithinPartitions("day")
    data.write.format("delta").mode("append").saveAsTable(made.name)
    made.sql("DELETE FROM {t} WHERE id % 31 = 3")
    assert len(made.files) == 15
    return made


@pytest.fixture(scope="module")
def dates(spark, shared_table):
    made = shared_table("day INT, big BIGINT, quarter INT, label STRING, at DATE, x DOUBLE, d DECIMAL(18,4)")
    days = spark.range(DAYS).selectExpr(
        "CAST(id AS INT) day", "id big", "CAST(id / 30 AS INT) quarter", "concat('n', lpad(id, 4, '0')) label",
        "date_add(DATE'1970-01-01', CAST(id AS INT)) at", "DOUBLE(id) x", "CAST(id AS DECIMAL(18,4)) d",
    )  # fmt: skip
    return made.append(days)


@pytest.mark.quick_sample(2)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT s.id FROM {s} s JOIN {d} d ON s.day = d.day WHERE d.quarter = 4",
        "SELECT s.id, d.label FROM {d} d JOIN {s} s USING (day) WHERE d.quarter = 4",
        "SELECT id FROM {s} WHERE day IN (SELECT day FROM {d} WHERE quarter = 4)",
        "SELECT id FROM {s} s WHERE EXISTS (SELECT 1 FROM {d} d WHERE d.day = s.day AND d.quarter = 4)",
        "SELECT s.id FROM {s} s LEFT SEMI JOIN {d} d ON s.day = d.big AND d.quarter = 4",
        "SELECT s.id FROM {s} s JOIN {d} d ON s.day = d.x WHERE d.quarter = 4",
        "SELECT s.id FROM {s} s JOIN {d} d ON s.day = d.d WHERE d.quarter = 4",
        "SELECT d.label, sum(s.amount) FROM {s} s JOIN {d} d ON s.day = d.day WHERE d.quarter = 4 GROUP BY d.label",
        "SELECT s.k FROM (SELECT id + 1 k, day t FROM {s} WHERE id % 3 > 0) s JOIN {d} d ON t = d.day AND quarter = 4",
        "SELECT s.id FROM {s} s JOIN {d} d ON s.day = d.day AND s.id = d.big WHERE d.quarter = 4",
    ],
)
def test_the_keys_of_a_join_skip_files_of_both_kinds_of_tables(spark, sales, plain, dates, query):
    for table in (sales, plain):
        scan = scan_of(compared(spark, query.format(s=table.name, d=dates.name)), table)
        assert scan.kept_files == len(table.files)
        (wanted,) = read_report(table.data.where("day BETWEEN 120 AND 149")).scans
        assert scan.joined_files <= wanted.kept_files < len(table.files)
        assert scan.joined_files == wanted.kept_files or "s.id =" in query
        (join,) = scan.joins
        assert (join.reason, join.files, join.bytes) == (None, scan.joined_files, scan.joined_bytes)
        assert join.side.endswith(dates.name)
        assert join.columns[0] == "day"
        assert join.keys == 30


def test_statistics_keep_exactly_the_files_that_they_cannot_exclude(spark, plain, dates):
    query = f"SELECT id FROM {plain.name} JOIN {dates.name} d USING (day) WHERE day < 25"
    scan = scan_of(compared(spark, query), plain)
    files = [f.stats for f in plain.files]
    # The literal of one side is one of the other, so Delta skips the same files without the rule.
    assert scan.candidate_files == sum(f["minValues"]["day"] < 25 for f in files) == 2
    query = f"SELECT s.id FROM {plain.name} s JOIN {dates.name} d ON s.day = d.day WHERE d.quarter IN (0, 5)"
    scan = scan_of(compared(spark, query), plain)
    wanted = [
        f for f in files
        if any(f["minValues"]["day"] <= hi and f["maxValues"]["day"] >= lo for lo, hi in ((0, 29), (150, 179)))
    ]  # fmt: skip
    assert scan.joined_files == len(wanted) == 4


@pytest.mark.quick_sample(2)
@pytest.mark.parametrize(
    ("on", "columns"),
    [
        ("s.name = d.label", ("name",)),
        ("s.price = d.x", ("price",)),
        ("s.amount = d.d", ("amount",)),
        ("s.part.k = d.day", ("part",)),
        ("s.amount = d.day", ("amount",)),
        ("s.day = d.day AND s.name = d.label", ("day", "name")),
    ],
)
def test_types_casts_and_several_columns(spark, plain, dates, on, columns):
    query = f"SELECT s.id FROM {plain.name} s JOIN {dates.name} d ON {on} WHERE d.quarter = 4"
    scan = scan_of(compared(spark, query), plain)
    assert scan.joins[0].columns == columns
    assert scan.joined_files < len(plain.files) / 2 if columns != ("price",) else scan.joined_files <= len(plain.files)


@pytest.fixture(scope="module")
def parts(spark, shared_table):
    """Partitioned by columns of four types, which have other names in the log; one of 31 files has nulls."""
    made = shared_table(
        "id BIGINT, name STRING, day INT, at TIMESTAMP, since DATE",
        tail="PARTITIONED BY (name, day, at, since)",
        properties={"delta.columnMapping.mode": "name"},
    )
    made.append(
        spark.range(0, 310, 1, 1).selectExpr(
            "id",
            "IF(id >= 300, NULL, concat('n', lpad(id % 30, 4, '0'))) name",
            "CAST(IF(id >= 300, NULL, id % 30) AS INT) day",
            "IF(id >= 300, NULL, timestamp_seconds((id % 30) * 86400)) at",
            "IF(id >= 300, NULL, date_add(DATE'1970-01-01', CAST(id % 30 AS INT))) since",
        )
    )
    assert len(made.files) == 31
    return made


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize(
    "on", ["s.name = d.label", "s.day = d.big", "s.day = d.d", "CAST(s.at AS DATE) = d.at", "s.since = d.at"]
)
def test_keys_skip_partitions(spark, parts, dates, set_conf, on):
    set_conf("spark.sql.optimizer.dynamicPartitionPruning.enabled", "false")
    set_conf("spark.qbeast.use.joins.bytes", "1GB")
    query = f"SELECT s.id FROM {parts.name} s JOIN {dates.name} d ON {on} WHERE "
    for where, files in (("d.day IN (2, 7)", 2), ("d.day < 12", 12), ("d.quarter = 5", 0)):
        scan = scan_of(compared(spark, query + where), parts)
        # The day of an instant has a day or two on either side.
        assert files <= scan.joined_files <= files + (6 if "CAST" in on and files else 0)
        assert [join.reason for join in scan.joins] == [None]


def test_keys_of_all_partitions_are_not_selective(spark, parts, dates, set_conf):
    set_conf("spark.sql.optimizer.dynamicPartitionPruning.enabled", "false")
    table = f"(SELECT * FROM {parts.name} WHERE day IS NOT NULL)"
    query = f"SELECT s.id FROM {table} s JOIN {dates.name} d ON s.day = d.day WHERE d.quarter < 3"
    (join,) = scan_of(compared(spark, query), parts).joins
    assert join.reason is JoinReason.UNSELECTIVE_KEYS


def test_pages_are_skipped_by_filters_of_the_scan(spark, plain, dates, set_conf):
    set_conf("spark.sql.maxMetadataStringLength", "1000")
    data = spark.sql(f"SELECT s.id FROM {plain.name} s JOIN {dates.name} d ON s.day = d.day WHERE d.quarter = 4")
    data.collect()
    plan = data._jdf.queryExecution().executedPlan().toString()
    assert "GreaterThanOrEqual(day,120)" in plan
    assert "LessThanOrEqual(day,149)" in plan


@pytest.mark.slow
def test_several_joins_narrow_one_scan_together(spark, sales, plain, dates):
    for table in (sales, plain):
        query = (
            f"SELECT s.id FROM {table.name} s JOIN {dates.name} a ON s.day = a.day JOIN {dates.name} b ON s.id = b.big "
            "WHERE a.quarter IN (1, 2, 3) AND b.quarter IN (2, 3, 4, 5)"
        )
        scan = scan_of(compared(spark, query), table)
        assert len(scan.joins) == 2
        assert scan.joined_files == scan.joins[-1].files < len(table.files)


def test_a_side_without_rows_reads_nothing(spark, plain, dates):
    query = f"SELECT s.id FROM {plain.name} s JOIN (SELECT day FROM {dates.name} WHERE label LIKE '%x') d USING (day)"
    # Spark itself may remove a join with an empty side.
    assert all(scan.joined_files in (0, scan.kept_files) for scan in compared(spark, query).scans)


@pytest.mark.quick_sample(4)
@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT s.id FROM {s} s LEFT JOIN {d} d ON s.day = d.day AND d.quarter = 4", "UNMATCHED_ROWS_KEPT"),
        ("SELECT s.id FROM {s} s LEFT ANTI JOIN {d} d ON s.day = d.day AND d.quarter = 4", "UNMATCHED_ROWS_KEPT"),
        ("SELECT id FROM {s} WHERE day NOT IN (SELECT day FROM {d} WHERE quarter = 4)", "UNMATCHED_ROWS_KEPT"),
        ("SELECT s.id FROM {s} s JOIN {d} d ON s.day + 1 = d.day WHERE quarter = 4", "NOT_A_COLUMN"),
        ("SELECT s.id FROM {s} s JOIN {d} d ON s.day <=> d.day WHERE quarter = 4", "NOT_A_COLUMN"),
        (
            "SELECT s.* FROM (SELECT day, count(*) FROM {s} GROUP BY day) s JOIN {d} d USING (day) WHERE quarter = 4",
            "OPERATOR_BETWEEN",
        ),
        ("SELECT /*+ MERGE(d) */ s.id FROM {s} s JOIN {d} d ON s.day = d.day WHERE quarter = 4", "SHUFFLED"),
        ("SELECT s.id FROM {s} s JOIN {d} d ON s.day = d.day", "UNSELECTIVE_KEYS"),
        (
            "SELECT id FROM {s} JOIN (SELECT IF(day = 125, DOUBLE('NaN'), x) x FROM {d} WHERE day > 99) ON price = x",
            "NAN_KEY",
        ),
    ],
)
def test_a_reason_says_why_nothing_was_skipped(spark, sales, dates, query, reason):
    scan = scan_of(compared(spark, query.format(s=sales.name, d=dates.name)), sales)
    assert scan.joined_files == scan.kept_files == len(sales.files)
    assert reason in {join.reason for join in scan.joins}


@pytest.mark.slow
def test_keys_that_skip_no_file_start_no_job(spark, sales, plain, dates, set_conf):
    set_conf("spark.qbeast.use.joins.bytes", "1GB")
    for table in (sales, plain):
        # Delta selects the files of a scan anew, in a job, if there was a correlated subquery among its filters.
        query = (
            f"SELECT count(*) FROM {table.name} s JOIN {dates.name} d USING (day) "
            f"WHERE EXISTS (SELECT 1 FROM {dates.name} e WHERE e.day = s.day)"
        )
        spark.sql(query).collect()  # the first one may load the state of the table
        jobs = []
        for enabled in ("true", "false"):
            set_conf("spark.qbeast.use.joins.enabled", enabled)
            before = jobs_started(spark)
            spark.sql(query).collect()
            jobs.append(jobs_started(spark) - before)
        assert jobs[0] == jobs[1]


@pytest.mark.slow
def test_settings_switch_it_off_and_limit_it(spark, sales, plain, dates, set_conf):
    query = f"SELECT s.id FROM {plain.name} s JOIN {dates.name} d ON s.day = d.day WHERE d.quarter = 4"

    def reason(table=plain):
        scan = scan_of(compared(spark, query.replace(plain.name, table.name)), table)
        (join,) = scan.joins
        assert (scan.joined_files < scan.kept_files) == (join.reason is None)
        return join.reason

    assert reason() is None
    set_conf("spark.qbeast.use.joins.keys", "29")
    assert reason() is JoinReason.TOO_MANY_KEYS
    set_conf("spark.qbeast.use.joins.keys", "30")
    assert reason() is None
    set_conf("spark.sql.adaptive.enabled", "false")
    assert reason() is JoinReason.ADAPTIVE_EXECUTION_OFF
    set_conf("spark.sql.adaptive.enabled", "true")
    with PlainReads(spark):
        data = spark.sql(query)
        data.collect()
        assert [join.reason for join in scan_of(read_report(data), plain).joins] == [JoinReason.SWITCHED_OFF]
    set_conf("spark.qbeast.use.joins.bytes", "1GB")
    # Statistics that a query has read stay, as long as the version does.
    assert reason() is None
    plain.sql("DELETE FROM {t} WHERE id % 31 = 4")
    assert reason() is JoinReason.SMALL_SCAN
    assert reason(sales) is None


def test_before_a_query_runs_the_report_says_so(spark, sales, dates):
    data = spark.sql(f"SELECT s.id FROM {sales.name} s JOIN {dates.name} d ON s.day = d.day WHERE d.quarter = 4")
    assert [join.reason for join in scan_of(read_report(data), sales).joins] == [JoinReason.NOT_EXECUTED]


def test_explanations_query_the_other_side(spark, sales, dates):
    query = f"SELECT s.id FROM {sales.name} s JOIN {dates.name} d ON s.day = d.day WHERE d.quarter = 4"
    executed = scan_of(compared(spark, query), sales)
    explained = sql_ext.call(spark, "explain_skipping", query=query).collect()
    items = {row.item: row for row in explained if row.table and row.table.endswith(sales.name)}
    assert SkippingReason.NO_FILTER not in items
    assert items["READ"].files == executed.joined_files
    assert items["JOINS"].files == executed.kept_files - executed.joined_files
    assert items["JOIN"].condition == f"join with spark_catalog.default.{dates.name.split('.')[-1]} on day"
    assert items["JOIN"].message.startswith(f"{executed.joined_files} of {executed.total_files} files are left")


@pytest.mark.slow
def test_records_of_queries_count_what_joins_skip(spark, new_table, dates):
    table = new_table(SALES, index="day,id", cube_size=60, file_bytes="4kb").append(rows(spark, 2000)).index()
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.insights.consumption.enabled' = 'true')")
    report = compared(spark, f"SELECT s.id FROM {table.name} s JOIN {dates.name} d ON s.day = d.day WHERE quarter = 4")
    scan = scan_of(report, table)
    spark._jvm.org.apache.spark.sql.usespark.ScanListener.flush(spark._jsparkSession)
    whole, row = spark.sql(f"SELECT * FROM {table.name}.consumption ORDER BY execution_id").collect()
    assert row.skipped_by_joins == (scan.kept_files - scan.joined_files, scan.kept_bytes - scan.joined_bytes)
    assert row.read == (scan.joined_files, scan.joined_bytes)
    assert whole.skipped_by_joins.files == 0
    assert [(f.column, f.operator) for f in row.filters] == [("day", "IS NOT NULL")]


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["America/St_Johns", "Pacific/Apia", "UTC"])
def test_days_of_timestamps_in_any_zone(spark, new_table, dates, set_conf, zone):
    set_conf("spark.sql.session.timeZone", zone)
    table = new_table(SALES, index="at,id", cube_size=60, file_bytes="4kb").append(rows(spark, 3000)).index()
    query = f"SELECT s.id FROM {table.name} s JOIN {dates.name} d ON CAST(s.at AS DATE) = d.at WHERE d.quarter = 4"
    scan = scan_of(compared(spark, query), table)
    assert scan.joined_files < scan.kept_files


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["name", "none"])
def test_a_merge_writes_the_same_rows(spark, new_table, dates, mode):
    properties = {"delta.columnMapping.mode": mode, "delta.enableDeletionVectors": "true"}
    merge = (
        "MERGE INTO {t} t USING (SELECT day, max(quarter) q FROM {d} WHERE quarter IN (4, 20) GROUP BY day) d "
        "ON t.day = d.day WHEN MATCHED AND t.id % 2 = 0 THEN UPDATE SET id = -t.id WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (day, id) VALUES (d.day, 1000000) "
        "WHEN NOT MATCHED BY SOURCE AND t.id % 5 = 0 THEN UPDATE SET id = t.id + 5000000 "
        "WHEN NOT MATCHED BY SOURCE AND t.id % 7 = 0 THEN DELETE"
    )
    sums = []
    for plainly in (True, False):
        table = new_table(SALES, index="day,id", cube_size=60, file_bytes="4kb", properties=properties)
        table.append(rows(spark, 2000)).index()
        if plainly:
            with PlainReads(spark):
                metrics = table.sql(merge.replace("{d}", dates.name))
        else:
            metrics = table.sql(merge.replace("{d}", dates.name))
        sums.append((metrics, table.checksum()))
    assert sums[0] == sums[1]


def test_a_scan_with_fewer_files_is_no_other_scan(spark, sales, dates):
    """The same table three times: joined with two sides of different keys, and whole."""
    part = f"SELECT s.id, s.day FROM {sales.name} s JOIN {dates.name} d ON s.day = d.day WHERE d.quarter = {{}}"
    query = f"{part.format(4)} UNION ALL {part.format(5)} UNION ALL SELECT id, day FROM {sales.name}"
    report = compared(spark, query)
    left = sorted(scan.joined_files for scan in report.scans if scan.table.endswith(sales.name))
    assert left[1] < left[2] == len(sales.files)


def test_rows_below_a_random_filter_or_a_limit_are_all_read(spark, sales, dates):
    for inner, reason in (("WHERE rand(7) < 0.5", "OPERATOR_BETWEEN"), ("LIMIT 700", "OPERATOR_BETWEEN")):
        data = spark.sql(
            f"SELECT s.id FROM (SELECT * FROM {sales.name} {inner}) s JOIN {dates.name} d ON s.day = d.day "
            "WHERE d.quarter = 4"
        )
        data.collect()
        scan = scan_of(read_report(data), sales)
        assert scan.joined_files == scan.kept_files
        assert {join.reason for join in scan.joins} <= {reason, "SHUFFLED", "NOT_CONSIDERED"}


def test_each_file_is_removed_by_one_step(spark, sales, dates):
    query = f"SELECT s.id FROM {sales.name} s JOIN {dates.name} d ON s.day = d.day WHERE d.quarter = 4 AND s.id < 2000"
    scan = scan_of(compared(spark, query), sales)
    assert scan.removed["joins"].files > 0
    assert scan.removed["cubes"].files > 0
    for part in ("files", "bytes"):
        removed = sum(getattr(count, part) for count in scan.removed.values())
        assert removed + getattr(scan, f"joined_{part}") == getattr(scan, f"total_{part}")


@pytest.mark.slow
def test_the_name_of_a_file_is_no_column_of_that_name(spark, new_table):
    table = new_table(
        "id BIGINT, file_name STRING, file_size BIGINT", index="id,file_size", cube_size=60, file_bytes="4kb"
    )
    for part in range(4):
        ids = spark.range(part * 500, part * 500 + 500)
        table.append(ids.selectExpr("id", f"'part{part}' file_name", "id file_size"))
    table.index()
    names = f"(SELECT DISTINCT _metadata.file_name n FROM {table.name} WHERE id < 50)"
    query = f"SELECT t.id FROM (SELECT id, _metadata.file_name f FROM {table.name}) t JOIN {names} n ON t.f = n.n"
    report = compared(spark, query)
    assert JoinReason.NOT_A_COLUMN in {join.reason for scan in report.scans for join in scan.joins}
    assert all(scan.joined_files == scan.kept_files for scan in report.scans)
    # A condition on the size of the file is none on the indexed column.
    side = new_table("id BIGINT").append(spark.range(20))
    query = f"SELECT t.id FROM {table.name} t JOIN {side.name} s ON t.id = s.id WHERE t._metadata.file_size > 500"
    compared(spark, query)


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize(
    ("column", "values", "statement", "key"),
    [
        # The log has 0.1, the file the FLOAT next to it.
        ("FLOAT", ("0.1", "5"), "ALTER TABLE {t} ALTER COLUMN x TYPE DOUBLE", "DOUBLE(FLOAT(0.1))"),
        # Spark's keys have no -0.0, which the dictionary of the file has.
        ("DOUBLE", ("-0.0D", "5"), None, "0.0D"),
        ("FLOAT", ("-0.0D", "5"), None, "FLOAT(0.0)"),
    ],
)
def test_equal_numbers_of_other_digits_are_joined(spark, new_table, column, values, statement, key):
    table = new_table(f"x {column}, id BIGINT", properties={"delta.enableTypeWidening": "true"})
    for value in values:
        table.append(spark.range(0, 1000, 1, 1).selectExpr(f"CAST({value} AS {column}) x", "id"))
    if statement:
        table.sql(statement)
    side = new_table("x DOUBLE").append(spark.sql(f"SELECT DOUBLE({key}) x"))
    query = f"SELECT t.id FROM {table.name} t JOIN {side.name} s ON t.x = s.x"
    compared(spark, query)
    assert spark.sql(query).count() == 1000


@pytest.mark.slow
def test_a_dimension_that_changed_is_read_as_it_is_when_the_query_runs(spark, sales, new_table):
    """A query that is planned twice, with other rows of the side in between, and a DataFrame that is run twice."""
    side = new_table("day INT").append(spark.range(5).selectExpr("CAST(id AS INT) day"))
    query = f"SELECT s.id FROM {sales.name} s JOIN {side.name} d ON s.day = d.day"
    before = compared(spark, query)
    side.sql("UPDATE {t} SET day = day + 200")
    after = compared(spark, query)
    assert scan_of(before, sales).joined_files < len(sales.files)
    assert scan_of(after, sales).joined_files < len(sales.files)
    data = spark.sql(query)
    first = Counter(data.collect())
    side.sql("INSERT INTO {t} VALUES (7)")
    assert Counter(data.collect()) == first


def test_a_cached_join_has_all_its_rows(spark, sales, dates):
    """What is cached is the result of the join; other queries of the table read it whole."""
    view = spark.sql(f"SELECT s.* FROM {sales.name} s JOIN {dates.name} d ON s.day = d.day WHERE d.quarter = 4").cache()
    try:
        assert view.count() == spark.sql(f"SELECT * FROM {sales.name} WHERE day BETWEEN 120 AND 149").count()
        assert view.where("day = 121").count() > 0
        assert spark.table(sales.name).count() == 3000
    finally:
        view.unpersist()


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize("sql_type", ["int", "double", "string"])
def test_ranges_hold_every_key_and_leave_the_largest_gaps_out(spark, sql_type):
    random, jvm = Random(5), spark._jvm
    data_type = jvm.org.apache.spark.sql.types.DataType.fromDDL(sql_type)
    texts = jvm.org.apache.spark.unsafe.types.UTF8String
    shown = {"int": int, "double": float, "string": lambda number: texts.fromString(f"key{number:06d}")}[sql_type]
    for _ in range(30):
        numbers = [random.randrange(1000) + 100_000 * random.randrange(5) for _ in range(random.randrange(1, 200))]
        most = random.choice([2, 5, 64])
        array = spark.sparkContext._gateway.new_array(jvm.java.lang.Object, len(numbers))
        for position, number in enumerate(numbers):
            array[position] = shown(number)
        found = jvm.io.usespark.KeyRanges.of(array, data_type, most).toOption().get()
        ranges = found.ranges()
        assert 1 <= ranges.size() <= most
        assert all(found.meets(shown(number), shown(number)) for number in numbers)
        # Between the thousands, there is no key, and no gap is larger.
        groups = len({number // 100_000 for number in numbers})
        if groups <= most:
            assert not any(found.meets(shown(k * 100_000 + 2000), shown(k * 100_000 + 99_999)) for k in range(5))


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize("key", ["{}", "CAST({} AS DOUBLE)"])
def test_decimals_whose_bounds_are_those_of_doubles_match(spark, new_table, key):
    """As delta-rs writes them."""
    table = new_table("k DECIMAL(20,2), v INT")
    schema = pa.schema({"k": pa.decimal128(20, 2), "v": pa.int32()})
    for v in range(3):
        rows = pa.Table.from_pylist([{"k": Decimal(f"1234567890123456{v}.89"), "v": v}], schema)
        write_deltalake(str(table.path), rows, mode="append")
    side = "(SELECT CAST(k AS DECIMAL(20,2)) k FROM VALUES ('12345678901234561.89') AS s(k))"
    condition = f"{key.format('t.k')} = {key.format('s.k')}"
    joined = table.sql(f"SELECT t.v FROM {{t}} t JOIN {side} s ON {condition}")
    assert 1 in [row.v for row in joined]


LAST = chr(0x10FFFF)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (b"\x80", JoinReason.INVALID_STRING_KEY),
        (("é" * 32 + LAST + "x").encode(), JoinReason.INVALID_STRING_KEY),
        ("é".encode(), None),
        ("😀".encode(), None),
        (b"abc", None),
    ],
)
def test_strings_that_are_not_valid_are_joined(spark, invalid, key, reason):
    """The bounds of their files have U+FFFD for bytes that cannot be decoded."""
    side = f"(SELECT CAST(x AS STRING) s FROM VALUES (X'{key.hex()}') v(x))"
    report = compared(spark, f"SELECT hex(t.s) FROM {invalid.name} t JOIN {side} k ON t.s = k.s")
    (scan,) = report.scans
    assert [join.reason for join in scan.joins] == [reason]
    assert (scan.joined_files < scan.kept_files) == (reason is None)


@pytest.fixture(scope="module")
def invalid(spark, shared_table):
    made = shared_table("s STRING, x BINARY")
    long = ("é" * 32).encode()
    values = (
        [b"\x80"],
        [b"\x80", "é".encode()],
        ["😀".encode(), b"\xf8"],
        [b"abc"],
        [long + LAST.encode() + b"x", long + b"\xff"],
    )
    for each in values:
        rows = ", ".join(f"(X'{value.hex()}')" for value in each)
        made.append(spark.sql(f"SELECT CAST(x AS STRING) s, x FROM VALUES {rows} v(x)").coalesce(1))
    assert len(made.files) == len(values)
    return made
