"""CALL use.quantiles, and what an index makes of quantiles and of declared statistics."""

import json

import pytest
from placement import check_placement
from pyspark.sql import functions as F
from tables import PlainReads, another_engine

import sql_ext
from otree.weight import WeightRange
from sql_ext import read_report

COLUMNS = "id BIGINT, v DOUBLE, s STRING, day DATE, ok BOOLEAN, k INT"
ROWS = 1000


def _rows(spark, count=ROWS, start=0):
    return spark.range(start, start + count).selectExpr(
        "id", "pow(id % 1000, 3) v", "concat(char(97 + id % 26), id % 1000) s",
        "date_add(DATE'2020-01-01', CAST(id % 100 AS INT)) day", "id % 2 = 0 ok", "7 k",
    )  # fmt: skip


def _quantiles(table, column, **more):
    return sql_ext.call(table.spark, "quantiles", table=table.name, column=column, **more).collect()


@pytest.mark.slow
def test_they_are_returned_kept_and_then_used(spark, new_table):
    table = new_table(COLUMNS, index="id", cube_size=100, file_bytes="4kb").append(_rows(spark)).index()
    files = table.paths
    found = _quantiles(table, "V", n=5, relative_error=0.001)
    assert [(r.position, r.fraction) for r in found] == [(0, 0.0), (1, 0.25), (2, 0.5), (3, 0.75), (4, 1.0)]
    for row in found:
        assert (float(row.value) ** (1 / 3)) == pytest.approx(row.fraction * ROWS, abs=3)
    assert [r.value for r in _quantiles(table, "day", n=2)] == ["2020-01-01", "2020-04-09"]
    assert "use.index.columnStats" not in table.replayed()[1]["configuration"]

    _quantiles(table, "v", n=9, store=True)
    _quantiles(table, "s", n=20, store=True)
    kept = json.loads(table.replayed()[1]["configuration"]["use.index.columnStats"])
    assert set(kept) == {"v_quantiles", "s_quantiles"}
    assert (max(table.revisions), table.paths) == (1, files), "nothing else is switched"

    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='v:quantiles,s:quantiles')")
    table.append(_rows(spark, start=ROWS))
    before = table.checksum()
    table.index()
    assert table.checksum() == before
    numeric, strings = table.revisions[2].transformations
    assert list(numeric.quantiles) == kept["v_quantiles"]
    assert list(strings.quantiles) == kept["s_quantiles"]
    assert files <= table.paths, "files of the old revision are not rewritten"
    assert check_placement(table) == 2 * ROWS

    # A sample is that of the newest revision's columns, also among files of the older one.
    weights = WeightRange.of_sample(0.0, 0.2)
    sample = table.data.sample(0.2)
    assert read_report(sample).weight_filters == 1
    with PlainReads(spark):
        wanted = {r.id for r in table.data.where(F.hash("v", "s").between(weights.first, weights.last)).collect()}
    assert {r.id for r in sample.collect()} == wanted
    assert 0 < len(wanted) < ROWS

    # Other quantiles are the owner's schedule for a new revision; the same ones are not.
    table.append(_rows(spark, 50)).index()
    assert max(table.revisions) == 2
    _quantiles(table, "v", n=3, store=True)
    table.append(_rows(spark, 50)).index()
    assert max(table.revisions) == 3
    assert len(table.revisions[3].transformations[0].quantiles) == 3


@pytest.mark.quick_sample(3)
@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        ({"column": "nothing"}, "USE_UNKNOWN_COLUMN", "nothing"),
        ({"column": "ok"}, "USE_UNINDEXABLE_TYPE", "'ok' of type boolean"),
        ({"column": "v", "n": 1}, "USE_INVALID_ARGUMENT", "n = 1"),
        ({"column": "v", "n": 10_001}, "USE_INVALID_ARGUMENT", "n = 10001"),
        ({"column": "v", "relative_error": 0.0}, "USE_INVALID_ARGUMENT", "relative_error = 0.0"),
        ({"column": "v", "relative_error": float("nan")}, "USE_INVALID_ARGUMENT", "relative_error = nan"),
        ({"column": "k", "store": True}, "USE_INVALID_ARGUMENT", "fewer than two"),
    ],
)
def test_refusals(spark, shared_table, arguments, code, named):
    table = shared_table(COLUMNS).append(_rows(spark, 20))
    before = table.state()
    with pytest.raises(sql_ext.UseError) as refused:
        sql_ext.call(spark, "quantiles", table=table.name, **arguments)
    assert refused.value.code == code
    assert named in refused.value.message
    assert table.state() == before


@pytest.mark.slow
def test_a_column_without_values_has_no_quantiles(spark, new_table):
    table = new_table("a DOUBLE, s STRING").append(spark.sql("SELECT double('NaN') a, CAST(NULL AS STRING) s"))
    assert _quantiles(table, "a") == _quantiles(table, "s") == []


@pytest.mark.slow
def test_a_declared_range_needs_no_new_revision(spark, new_table):
    stats = '{"id_min": 0, "id_max": 5000}'
    table = new_table(COLUMNS, index="id,ok", cube_size=300, properties={"use.index.columnStats": stats})
    table.append(_rows(spark, 100).where("ok")).index()
    table.append(_rows(spark, 900, start=4000)).index()
    assert list(table.revisions) == [0, 1]
    assert (table.revisions[1].transformations[0].maximum, table.revisions[1].transformations[1].maximum) == (5000, 1)
    table.append(_rows(spark, 10, start=6000)).index()
    assert list(table.revisions) == [0, 1, 2]
    assert check_placement(table) == 960
    with another_engine():
        table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columnStats'='{{\"id_min\": 1}}')")
    with pytest.raises(sql_ext.UseError, match="id_max must be given"):
        table.optimize()


@pytest.mark.slow
def test_rows_that_share_weights_are_reported(spark, new_table):
    table = new_table(COLUMNS, index="ok,k", cube_size=300).append(_rows(spark))
    (row,) = table.optimize(strategy="UnindexedFiles", max_iterations=1)[:1]
    assert "low cardinality: about 2 distinct weights for 1000 rows" in row.message
    other = new_table(COLUMNS, index="id", cube_size=300).append(_rows(spark))
    assert "low cardinality" not in other.optimize(strategy="UnindexedFiles", max_iterations=1)[0].message
