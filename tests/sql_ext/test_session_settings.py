"""Spark confs of ours: SET takes what Python accepts, and Spark shows their defaults."""

import pytest
from pyspark.errors import AnalysisException

import sql_ext
from catalog.errors import InvalidArgumentError
from catalog.settings.session_settings import JOINS_KEYS, SESSION_SETTINGS


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("spark.qbeast.use.joins.enabled", "maybe", "true or false"),
        ("spark.qbeast.use.joins.keys", "0", "a whole number from 1 to 1000000000"),
        ("`spark.qbeast.use.joins.job-share`", "-1", "a number of at least 0"),
        ("spark.qbeast.use.merges.bytes", "12XB", "a positive number of bytes"),
        ("spark.qbeast.use.approximate.bytes", "many", "a positive number of bytes"),
    ],
)
def test_set_refuses_what_is_not_accepted(spark, name, value, accepted):
    with pytest.raises(AnalysisException, match=rf"{name.strip('`')} = '{value}' is not accepted: {accepted}") as error:
        spark.sql(f"SET {name} = {value}")
    assert error.value.getCondition() == "USE_INVALID_ARGUMENT"
    assert spark.conf.get(name.strip("`"), None) != value


def test_set_takes_the_rest_and_copies_of_a_session_have_it(spark, set_conf):
    unset = [setting for setting in SESSION_SETTINGS if spark.conf.get(setting.name, None) is None]
    assert len(unset) > 5
    assert [spark.conf.get(setting.name) for setting in unset] == [setting.default for setting in unset]
    set_conf(JOINS_KEYS.name, "7")
    spark.sql("SET spark.qbeast.use.joins.bytes = 12 mb")
    copy = spark._jsparkSession.cloneSession()
    assert copy.conf().get(JOINS_KEYS.name) == "7"
    assert copy.conf().get("spark.qbeast.use.joins.bytes") == "12 mb"
    spark.sql("RESET spark.qbeast.use.joins.bytes")
    assert spark.conf.get("spark.qbeast.use.joins.bytes") == "256MB"


def test_attach_refuses_what_the_session_was_created_with(spark, monkeypatch):
    get, texts = type(spark.conf).get, {JOINS_KEYS.name: "many"}
    monkeypatch.setattr(type(spark.conf), "get", lambda self, name, *rest: texts.get(name) or get(self, name, *rest))
    with pytest.raises(InvalidArgumentError, match=r"joins\.keys = 'many' is not accepted"):
        sql_ext.attach(spark)
