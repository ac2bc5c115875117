"""The parts of a name, as a hint about a similar one needs them. No Spark."""

from types import SimpleNamespace

import pytest

from catalog.sql_names import name_parts
from catalog.table.near_names import near_table


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("t", ["t"]),
        ("db.t", ["db", "t"]),
        ("`a.b`.`c``d`", ["a.b", "c`d"]),
        ("spark_catalog.db.t", ["spark_catalog", "db", "t"]),
        ("", []),
    ],
)
def test_parts(name, parts):
    assert name_parts(name) == parts


@pytest.mark.parametrize("name", ["/data/t", "delta.`/data/t`", "a.b.c", ""])
def test_what_is_no_name_in_the_catalog_asks_nothing(name):
    assert near_table(None, name) is None


@pytest.mark.parametrize(("name", "schema"), [("flight", "`my-db`"), ("`my-db`.flight", "`my-db`"), ("a.flight", "a")])
def test_the_schema_of_the_name_is_listed(name, schema):
    asked = []
    rows = [SimpleNamespace(tableName="flights", isTemporary=False)]
    # Spark quotes the name of the current database.
    spark = SimpleNamespace(
        catalog=SimpleNamespace(currentDatabase=lambda: "`my-db`"),
        sql=lambda text: asked.append(text) or SimpleNamespace(take=lambda count: rows),
    )
    assert near_table(spark, name).endswith("flights")
    assert asked == [f"SHOW TABLES IN {schema}"]
