"""``CALL use.recommend`` over tables: literals, refusals, answers, and the estimate against what is read afterwards."""

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

import procedures.calls.recommend
import sql_ext
from sql_ext import UseError

SQUARE = "SELECT * FROM {t} WHERE x BETWEEN {x} AND {x} + 0.1 AND y BETWEEN {y} AND {y} + 0.1"


@pytest.fixture(scope="module")
def table(spark, tmp_path_factory):
    """60,000 rows in files of about 20 kB, and a table property that keeps files as small after a rewrite."""
    name = "default.recommended"
    (
        spark.range(0, 60_000, 1, 40)
        .select(
            "id",
            F.rand(1).alias("x"),
            F.rand(2).alias("y"),
            F.timestamp_seconds(F.lit(1_700_000_000) + F.col("id")).alias("time"),
            F.expr("date_add(DATE'2024-01-01', CAST(pmod(hash(id), 365) AS INT))").alias("day"),
            F.expr("CAST(pmod(xxhash64(id), 10000) AS DECIMAL(10, 2)) / 100").alias("price"),
            F.sha2(F.col("id").cast("string"), 256).substr(1, 16).alias("key"),
            (F.col("id") % 2 == 0).alias("flag"),
        )
        .write.format("delta")
        .saveAsTable(name)
    )
    size = spark.sql(f"DESCRIBE DETAIL {name}").collect()[0].sizeInBytes
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('use.index.targetFileBytes' = '{size // 40}')")
    yield name
    spark.sql(f"DROP TABLE {name}")


def _recommended(spark, table, *queries, **more):
    return sql_ext.call(spark, "recommend", table=table, queries=[q.format(t=table) for q in queries], **more).collect()


@pytest.mark.quick_sample(3)
@pytest.mark.parametrize(
    ("where", "columns"),
    [
        ("x > 0.98", "x"),
        ("key = 'aaaaaaaaaaaaaaaa'", "key"),
        ("day BETWEEN DATE'2024-03-01' AND DATE'2024-03-03'", "day"),
        ("price IN (1.50, 2.5)", "price"),
        ("time < TIMESTAMP'2023-11-14 22:15:00'", None),
        ("upper(key) = 'A'", None),
        ("flag", None),
    ],
)
def test_answers(spark, table, where, columns):
    best = _recommended(spark, table, f"SELECT * FROM {{t}} WHERE {where}")[0]
    assert best.columns == columns
    assert best.advice == ("INDEX" if columns else "NO_INDEX")
    assert 0 < best.expected_share <= best.today_share <= 1
    assert best.no_index_share == best.today_share


def test_sql_shows_the_candidates(spark, table):
    rows = spark.sql(
        f"CALL use.recommend('{table}', array('{SQUARE.format(t=table, x=0.3, y=0.6)}'), sample_rows => 5000)"
    ).collect()
    assert [row.rank for row in rows] == list(range(1, len(rows) + 1))
    assert set(rows[0].columns.split(",")) == {"x", "y"}
    assert None in [row.columns for row in rows]
    assert "CALL use.index(table => '" in rows[0].message


@pytest.mark.parametrize(
    ("query", "code", "text"),
    [
        ("SELECT * FROM {t} WHERE nope = 1", "USE_UNKNOWN_COLUMN", "Query 2"),
        ("SELECT * FROM missing WHERE x = 1", "USE_INVALID_ARGUMENT", "query 2"),
        ("DELETE FROM {t}", "USE_INVALID_ARGUMENT", "query 2"),
        ("SELECT * FROM {t} WHERE x = array(1)", "USE_INVALID_ARGUMENT", "query 2"),
    ],
)
def test_refusals_name_the_query(spark, table, query, code, text):
    with pytest.raises(UseError, match=text) as refused:
        _recommended(spark, table, "SELECT * FROM {t}", query)
    assert refused.value.code == code


def test_refusals_of_arguments(spark, table):
    for arguments, text in (
        ({}, "queries is missing"),
        ({"queries": []}, "1 to 1,000"),
        ({"queries": ["SELECT 1"], "sample_rows": 10}, "sample_rows"),
    ):
        with pytest.raises(UseError, match=text):
            sql_ext.call(spark, "recommend", table=table, **arguments)


def test_recorded_consumption_is_used(spark, table, monkeypatch):
    filters = [{"column": column, "operator": "between"} for column in ("day", "time", "price", "x", "flag", "dropped")]
    row = {"filters": [*filters, {"column": "KEY", "operator": "="}], "selectivity": 0.00001, "fraction": None}
    rows = [row, {"filters": [], "selectivity": None, "fraction": 0.1}]
    monkeypatch.setattr(procedures.calls.recommend, "consumption_rows", lambda *_: rows)
    monkeypatch.setattr(procedures.calls.recommend, "has_records", lambda _: True)
    best = sql_ext.call(spark, "recommend", table=table, sample_rows=5_000).collect()[0]
    assert set(best.columns.split(",")) <= {"day", "time", "price", "x", "key"}
    assert 0 < best.expected_share <= best.today_share


def test_an_empty_table_is_refused(spark, tmp_path):
    spark.range(0).write.format("delta").save(str(tmp_path / "t"))
    name = f"delta.`{tmp_path / 't'}`"
    with pytest.raises(UseError, match="is empty"):
        _recommended(spark, name, "SELECT * FROM {t} WHERE id = 1")
    with pytest.raises(AnalysisException, match="is empty"):
        spark.sql(f"CALL use.recommend('{name}', array('SELECT * FROM {name} WHERE id = 1'))")


@pytest.mark.slow
@pytest.mark.parametrize(
    "queries",
    [
        [SQUARE.replace("{x}", x).replace("{y}", y) for x, y in (("0.1", "0.8"), ("0.45", "0.3"), ("0.7", "0.6"))],
        ["SELECT * FROM {t} WHERE x > 0.9", "SELECT * FROM {t} WHERE y BETWEEN 0.2 AND 0.25"],
        ["SELECT * FROM {t} WHERE day = DATE'2024-05-05'", "SELECT * FROM {t} TABLESAMPLE (10 PERCENT) WHERE x > 0.5"],
    ],
)
def test_the_estimate_is_within_a_fifth_of_what_is_read(spark, table, queries):
    copy = "default.recommended_copy"
    spark.table(table).write.format("delta").saveAsTable(copy)
    try:
        target = spark.sql(f"SHOW TBLPROPERTIES {table} ('use.index.targetFileBytes')").collect()[0].value
        spark.sql(f"ALTER TABLE {copy} SET TBLPROPERTIES ('use.index.targetFileBytes' = '{target}')")
        best = _recommended(spark, copy, *queries)[0]
        sql_ext.call(spark, "index", table=copy, columns=best.columns).collect()
        sql_ext.call(spark, "optimize", table=copy).collect()
        shares = []
        for query in queries:
            scan = sql_ext.read_report(spark.sql(query.format(t=copy))).scans[0]
            shares.append(scan.kept_bytes / scan.total_bytes)
        measured = sum(shares) / len(shares)
        print(f"expected {best.expected_share:.4f}, measured {measured:.4f}, columns {best.columns}")
        assert best.expected_share == pytest.approx(measured, rel=0.2)
    finally:
        spark.sql(f"DROP TABLE {copy}")
