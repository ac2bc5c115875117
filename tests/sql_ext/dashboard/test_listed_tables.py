"""The tables that the dashboard knows, on a catalog that some of them leave, or do not answer for."""

from types import SimpleNamespace

from service_fakes import FakeTables

from procedures.process.application import Application
from sql_ext.dashboard.spark_fleet import SparkFleet

SPARK = SimpleNamespace(conf=SimpleNamespace(get=lambda _, default: default))
PROPERTIES = {"use.optimization.autoOptimize.enabled": "true"}


def test_a_table_that_does_not_answer_stays_as_it_was_seen():
    tables = FakeTables()
    places = [tables.put(name, PROPERTIES) for name in ("a", "b", "c")]
    tables.late = {places[2]}
    fleet = SparkFleet(SPARK, Application())
    fleet._tables = tables

    def known():
        return {table.name: table.version for table in fleet.tables()}

    assert known() == {"a": 0, "b": 0}
    tables.late = {places[0]}
    tables.commit("a")
    tables.commit("b")
    assert known() == {"a": 0, "b": 1, "c": 0}
    tables.late = set()
    tables.drop("b")
    assert known() == {"a": 1, "c": 0}
    tables.put("b", PROPERTIES)
    assert known() == {"a": 1, "b": 0, "c": 0}
