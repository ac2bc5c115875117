"""Small tables are known before Spark starts; everything else counts as large."""

import pytest

from sql_ext.commands import table_size
from sql_ext.commands.table_size import is_small


@pytest.fixture
def warehouse(tmp_path):
    for folder in ("wh/t", "wh/db.db/u", "a b"):
        (tmp_path / folder / "_delta_log").mkdir(parents=True)
        (tmp_path / folder / "part-0.parquet").write_bytes(bytes(100))
    return tmp_path


def test_tables_on_this_machine(warehouse):
    place = warehouse / "a b"
    for name in (str(place), f"file:{place}", f"file://{place}", f"delta.`{place}`"):
        assert is_small(name, None), name
    for name in ("t", "T", "default.t", "db.u", "`db`.`u`"):
        assert is_small(name, warehouse / "wh"), name


def test_what_is_not_known_is_not_small(warehouse):
    for name in ("s3a://bucket/t", "t", f"{warehouse}/none", f"file:{warehouse}/a%20b", "", "hdfs:/t"):
        assert not is_small(name, None), name
    for name in ("u", "x.t", "a.b.t"):
        assert not is_small(name, warehouse / "wh"), name


@pytest.mark.parametrize("limit", ["_SMALL_BYTES", "_MOST_FILES"])
def test_the_limits(warehouse, monkeypatch, limit):
    monkeypatch.setattr(table_size, limit, 0)
    assert not is_small("t", warehouse / "wh")
