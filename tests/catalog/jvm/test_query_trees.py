"""Plans that are made out of queries."""

import datetime as dt

import pytest

from catalog.jvm.query_trees import private_rows


@pytest.mark.parametrize(
    ("settings", "query"),
    [
        # The code of the query is compiled by the thread that asks for its rows.
        ({"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}, "SELECT day FROM days"),
        # The tasks of the first stage run before there are rows.
        ({"spark.sql.adaptive.enabled": "true"}, "SELECT DISTINCT day FROM days"),
    ],
    ids=["driver", "tasks"],
)
def test_private_rows_are_computed_with_the_settings_of_their_session(spark, settings, query):
    session = spark.newSession()
    for key, value in {**settings, "spark.sql.legacy.timeParserPolicy": "LEGACY"}.items():
        session.conf.set(key, value)
    session.range(1, 3).selectExpr("to_date('2024-1-' || id, 'yyyy-MM-dd') AS day").createOrReplaceTempView("days")
    days = sorted(row.day for row in private_rows(session.sql(query)).collect())
    assert days == [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]
