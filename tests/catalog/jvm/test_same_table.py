"""What a commit has left in the log of a table that was created in its place."""

import json
import shutil

import pytest

STRAY = 7


@pytest.fixture
def table(spark, new_table):
    made = new_table("id BIGINT", index="id")
    for _ in range(2):
        made.append(spark.range(3).toDF("id"))
    made.checkpoint()
    return made


def _names(table):
    return {file.name for file in (table.path / "_delta_log").iterdir() if not file.name.startswith(".")}


def _leave(table, *endings):
    log = table.path / "_delta_log"
    for ending in endings:
        shutil.copy(log / f"{table.version if ending != 'json' else 1:020d}.{ending}", log / f"{STRAY:020d}.{ending}")


def _delete(table, version=STRAY):
    transaction = table.managed.handle.begin(table.spark)
    deleted = transaction._java.transaction().deleteFromOtherLog(version)
    return {deleted.apply(number) for number in range(deleted.size())}


@pytest.mark.slow
def test_nothing_is_left_behind_a_gap(table):
    before = _names(table)
    _leave(table, "checkpoint.parquet", "json")
    last = table.path / "_delta_log" / "_last_checkpoint"
    last.write_text(json.dumps({"version": STRAY, "size": 1}))
    deleted = _delete(table)
    assert deleted == {f"{STRAY:020d}.checkpoint.parquet", f"{STRAY:020d}.json", "_last_checkpoint"}
    assert _names(table) == before - {"_last_checkpoint"}
    assert table.data.count() == 6


def test_a_commit_of_the_other_table_stays(table):
    before = _names(table)
    assert _delete(table, table.version) == {
        f"{table.version:020d}.checkpoint.parquet",
        f"{table.version:020d}.crc",
        "_last_checkpoint",
    }
    assert before - _names(table) >= {"_last_checkpoint"}
    assert f"{table.version:020d}.json" in _names(table)
    assert table.data.count() == 6


def test_a_log_that_was_cleaned_up_stays(table):
    _leave(table, "checkpoint.parquet")
    (table.path / "_delta_log" / f"{0:020d}.json").unlink()
    before = _names(table)
    assert _delete(table) == set()
    assert _names(table) == before


def test_a_log_that_begins_with_a_checkpoint_stays(table):
    """As after a cleanup that has left the newest checkpoint and its commit."""
    for file in _names(table):
        if file.endswith((".json", ".crc")) and not file.startswith(f"{table.version:020d}"):
            (table.path / "_delta_log" / file).unlink()
    before = _names(table)
    assert _delete(table, table.version) == set()
    assert _names(table) == before
