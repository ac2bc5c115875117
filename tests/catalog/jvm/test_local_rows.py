"""Rows that Python has computed reach Spark unchanged, of every type that results have."""

from datetime import datetime, timezone

import pytest
from pyspark.sql import SparkSession

from catalog.jvm.local_rows import local_data_frame

SCHEMA = (
    "i int, b bigint, d double, t timestamp, s string, f boolean, l array<string>, m map<string,string>, "
    "n map<bigint,bigint>, p array<struct<column:string,from:string>>"
)
MOMENT = datetime(2024, 10, 27, 0, 30, tzinfo=timezone.utc)
ROW = (1, 2**40, 0.5, MOMENT, "ü", True, ["a", None], {"k": "v", "n": None}, {1: 2}, [("c", None), ("d", "e")])


@pytest.mark.parametrize("rows", [[], [ROW], [ROW, (None,) * len(ROW), ROW]], ids=len)
def test_rows_of_every_type_are_a_local_relation(spark, set_conf, rows):
    # Half past midnight in UTC is an hour that occurs twice there.
    set_conf("spark.sql.session.timeZone", "Europe/Madrid")
    found = local_data_frame(spark, rows, SCHEMA)
    assert found.schema.simpleString() == spark.createDataFrame([], SCHEMA).schema.simpleString()
    assert "LocalTableScan" in found._jdf.queryExecution().executedPlan().toString()
    same = spark.createDataFrame(rows, SCHEMA)
    moments = [row.millis for row in found.selectExpr("unix_millis(t) AS millis").collect()]
    assert moments == [None if row[3] is None else int(MOMENT.timestamp() * 1000) for row in rows]
    assert found.drop("t").collect() == same.drop("t").collect()


def test_the_active_session_stays(spark):
    active = SparkSession.getActiveSession()
    other = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    assert local_data_frame(other, [(1,)], "a INT").collect() == [(1,)]
    assert SparkSession._activeSession is active
