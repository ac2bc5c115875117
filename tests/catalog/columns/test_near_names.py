"""The parts of a name, as a hint about a similar one needs them. No Spark."""

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
