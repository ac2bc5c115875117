"""``use.explain_skipping`` and ``sql_ext.explain``: the plan is explained, and nothing is executed."""

import pytest
from pyspark.errors import AnalysisException
from tables import NUMBERS, numbers

import sql_ext
from sql_ext import SkippingReason, UseError, read_report

STEPS = ["TABLE", "PARTITION_VALUES", "STATISTICS", "CUBES", "WEIGHTS", "READ"]


@pytest.fixture(scope="module")
def table(spark, shared_table):
    """Files of two revisions, files without index, deleted rows, renamed columns and a column without statistics."""
    made = shared_table(
        "id BIGINT, day DATE, s STRING, `d 1` STRUCT<x: BIGINT, y: BIGINT>, p INT",
        index="s:hashing",
        cube_size=50,
        tail="PARTITIONED BY (p)",
        properties={
            "delta.columnMapping.mode": "name",
            "delta.enableDeletionVectors": "true",
            "delta.dataSkippingStatsColumns": "id,day",
        },
    )

    def rows(start, count):
        return spark.range(start, start + count).selectExpr(
            "id", "date_add(DATE'2020-01-01', CAST(id % 700 AS INT)) day", "concat('s', id % 20) s",
            "named_struct('x', CAST(pmod(hash(id), 1000) AS BIGINT), 'y', id) `d 1`", "CAST(id % 2 AS INT) p",
        )  # fmt: skip

    made.append(rows(0, 600)).index()
    made.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='id,`d 1`.x,s:hashing')")
    made.append(rows(600, 1500)).index()
    made.append(rows(3000, 100))
    made.sql("ALTER TABLE {t} RENAME COLUMN day TO the_day")
    made.sql("DELETE FROM {t} WHERE id % 10 = 1 AND id BETWEEN 700 AND 800")
    return made


def explained(table, where):
    """Rows of an explanation in SQL, which those in Python must equal."""
    query = f"SELECT * FROM {table.name} {where}"
    before = table.version
    rows = sql_ext.call(table.spark, "explain_skipping", query=query).collect()
    assert [tuple(row) for row in rows] == [
        tuple(vars(row).values()) for row in sql_ext.explain(table.spark.sql(query)).rows
    ]
    assert table.version == before
    # What to do about the table follows; see the tests of the adviser.
    return [row for row in rows if row.item != "ADVICE"]


@pytest.mark.quick_sample(2)
@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("WHERE id < 900 AND `d 1`.x < 100", {"MISSING_STATISTICS", "OLD_REVISION"}),
        ("WHERE p = 1 AND id BETWEEN 3000 AND 3010", {"UNINDEXED_FILES"}),
        (
            "WHERE year(the_day) = 2020 AND s = 's3'",
            {"FUNCTION_OVER_COLUMN", "MISSING_STATISTICS", "UNINDEXED_FILES"},
        ),
        ("WHERE try_cast(s AS INT) = 5 OR id < 100", {"CAST"}),
        ("WHERE id < 700 OR the_day < DATE'2020-02-01'", {"OR_WITH_UNINDEXED_COLUMN"}),
        ("WHERE s > 's3' AND id < `d 1`.y", {"RANGE_ON_HASHED_COLUMN", "NOT_A_CONSTANT", "MISSING_STATISTICS"}),
        ("", {"NO_FILTER"}),
        ("TABLESAMPLE (10 PERCENT) WHERE id < 2000", {"OLD_REVISION"}),
    ],
)
def test_steps_and_reasons_of_a_scan(table, where, wanted):
    rows = explained(table, where)
    assert [row.item for row in rows[:6]] == STEPS
    assert {row.item for row in rows[6:]} == wanted
    assert sum(row.files for row in rows[1:6]) == rows[0].files == len(table.files)
    assert sum(row.bytes for row in rows[1:6]) == rows[0].bytes == sum(file.size for file in table.files)
    live = table.replayed()[0]
    unindexed = [row for row in rows[6:] if row.item == "UNINDEXED_FILES"]
    assert all(row.files <= len(table.unindexed) for row in unindexed)
    missing = [row for row in rows[6:] if row.item == "MISSING_STATISTICS"]
    assert all(row.files == len(live) for row in missing), "the column is not among those with statistics"
    # Brute force: every file with a row that matches is among those that are read.
    query = table.spark.sql(f"SELECT * FROM {table.name} {where}")
    assert query.select("_metadata.file_path").distinct().count() <= rows[5].files
    assert read_report(query).scans[0].kept_files == rows[5].files


def test_an_equivalent_condition_reads_fewer_files(new_table, spark):
    table = new_table("d DATE, n INT")
    for year in (2019, 2020, 2021):
        table.append(spark.sql(f"SELECT DATE'{year}-05-05' d, {year} n"))
    with_function = explained(table, "WHERE year(d) = 2020")
    assert {row.item: row.files for row in with_function}["READ"] == 3
    (reason,) = (row for row in with_function if row.item == "FUNCTION_OVER_COLUMN")
    assert reason.condition == "year(d) = 2020"
    better = reason.message.removeprefix("Write ").removesuffix(".")
    without = explained(table, f"WHERE {better}")
    assert {row.item: row.files for row in without} | {"NOT_INDEXED": 1} == {
        "TABLE": 3, "PARTITION_VALUES": 0, "STATISTICS": 2, "CUBES": 0, "WEIGHTS": 0, "READ": 1, "NOT_INDEXED": 1,
    }  # fmt: skip
    assert table.data.where(better).collect() == table.data.where("year(d) = 2020").collect()


def test_files_without_statistics_are_counted(new_table, spark, set_conf):
    table = new_table(NUMBERS).append(numbers(spark, 20))
    set_conf("spark.databricks.delta.stats.collect", "false")
    table.append(numbers(spark, 20, 20))
    without = [file for file in table.files if "minValues" not in file.stats]
    assert len(without) == 1
    (row,) = (row for row in explained(table, "WHERE id < 5") if row.item == "MISSING_STATISTICS")
    assert (row.files, row.condition) == (1, "id")


def test_each_scan_of_a_plan_has_rows(table):
    name = table.name
    query = (
        f"SELECT * FROM {name} a JOIN {name} b ON a.id = b.id WHERE a.id < (SELECT max(id) FROM {name} WHERE id < 9)"
    )
    rows = sql_ext.call(table.spark, "explain_skipping", query=query).collect()
    assert [row.scan for row in rows if row.item == "TABLE"] == [1, 2, 3]
    assert "NOT_A_CONSTANT" in {row.item for row in rows}
    sample = f"SELECT * FROM (SELECT DISTINCT id FROM {name}) TABLESAMPLE (10 PERCENT)"
    rows = sql_ext.call(table.spark, "explain_skipping", query=sample).collect()
    last = [row for row in rows if row.item != "ADVICE"][-1]
    assert (last.scan, last.item) == (None, "SAMPLE_LEFT_TO_SPARK")
    explanation = sql_ext.explain(table.data.limit(1))
    assert "LIMIT" in {row.item for row in explanation.rows}
    assert str(explanation).startswith("Scan 1: ")
    rows = sql_ext.call(table.spark, "explain_skipping", query=" VALUES (1);").collect()
    assert [row.item for row in rows] == ["NO_DELTA_SCAN"]


def test_a_session_without_the_rule_says_so(table, set_conf):
    set_conf("spark.qbeast.use.pruning.enabled", "false")
    assert "SWITCHED_OFF" in {row.item for row in explained(table, "WHERE id < 900")}


@pytest.mark.parametrize(
    ("query", "code", "said"),
    [
        ("INSERT INTO {t} SELECT * FROM {t}", "USE_INVALID_ARGUMENT", "command"),
        ("WITH x AS (SELECT 1) INSERT INTO {t} SELECT * FROM {t}", "USE_INVALID_ARGUMENT", "command"),
        ("CREATE TABLE explained USING delta AS SELECT 1 AS a", "USE_INVALID_ARGUMENT", "command"),
        ("DELETE FROM {t}", "USE_INVALID_ARGUMENT", "command"),
        ("OPTIMIZE {t}", "USE_INVALID_ARGUMENT", "command"),
        ("EXECUTE IMMEDIATE 'DELETE FROM {t}'", "USE_INVALID_ARGUMENT", "command"),
        ("BEGIN DELETE FROM {t}; END", "USE_INVALID_ARGUMENT", "command"),
        ("CALL use.drop_index('{t}')", "USE_INVALID_ARGUMENT", "command"),
        ("SELECT 1; SELECT 2", "USE_INVALID_ARGUMENT", "cannot be parsed"),
        ("SELEC 1", "USE_INVALID_ARGUMENT", "cannot be parsed"),
        (" ;", "USE_INVALID_ARGUMENT", "a query is required"),
        ("SELECT * FROM not_there", "TABLE_OR_VIEW_NOT_FOUND", "not_there"),
        ("SELECT nope FROM {t}", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "nope"),
    ],
)
def test_only_a_query_is_accepted_and_nothing_is_executed(table, set_conf, query, code, said):
    set_conf("spark.sql.scripting.enabled", "true")  # Spark 4.0 does not parse scripts without it
    before = table.state()
    with pytest.raises(UseError, match=said) as python:
        sql_ext.call(table.spark, "explain_skipping", query=query.format(t=table.name))
    assert python.value.code == code
    text = query.format(t=table.name).replace("'", "\\'")
    with pytest.raises(AnalysisException) as in_sql:
        table.spark.sql(f"CALL use.explain_skipping('{text}')")
    assert in_sql.value.getCondition() == code
    assert table.state() == before
    assert not table.spark.catalog.tableExists("explained")


def test_every_reason_is_documented():
    assert all(reason.value == reason.name for reason in SkippingReason)
