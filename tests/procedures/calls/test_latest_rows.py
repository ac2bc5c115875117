"""Compaction that keeps the latest row of each key, with Spark."""

import json

import pytest
from placement import check_placement
from staging import At, settings_of
from tables import NUMBERS, numbers

import sql_ext
from procedures.declare.runs import Run
from procedures.layout.step import Step
from procedures.loop.table_optimizer import optimize
from procedures.selection import latest_row_compaction

KEYED = "id BIGINT, p STRING, ts BIGINT, v STRING"
LATEST = "LatestRowCompaction"
FEED = {"delta.enableChangeDataFeed": "true"}
FEATURES = {
    **FEED,
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.columnMapping.mode": "name",
}


def _compact(table, **arguments):
    given = {"primary_key": ["id"], "order_by": "ts", **arguments}
    return sql_ext.call(table.spark, "compact", table=table.name, **given).collect()


def _rows(table):
    return sorted(map(tuple, table.data.select("id", "p", "ts", "v").collect()), key=repr)


def _append(table, *rows):
    table.append(table.spark.createDataFrame(rows, KEYED), files=1)


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize("properties", [FEED, FEATURES], ids=["plain", "features"])
def test_only_the_latest_row_of_each_key_stays(spark, new_table, properties):
    table = new_table(KEYED, properties=properties, tail="PARTITIONED BY (p)")
    odd = "ä/b 50%+"
    _append(table, (3, odd, 1, "a"), (1, odd, 1, "a"), (2, odd, 1, "a"), (None, odd, 1, "n"), (9, odd, 1, "x"))
    _append(table, (2, odd, 2, "b"), (1, None, 5, "b"), (None, odd, None, "n"), (9, odd, 2, "y"))
    _append(table, (2, odd, 2, "c"), (1, odd, 3, "c"))
    table.sql("DELETE FROM {t} WHERE id = 9 AND ts = 2")
    before, was, version = _rows(table), table.version, table.version
    (planned,) = _compact(table, dry_run=True)
    assert (planned.strategy, planned.state, planned.reason) == (LATEST, "planned", "OUTDATED_ROWS_3")
    assert (table.version, _rows(table)) == (was, before)
    assert (LATEST, "committed") in [(r.strategy, r.state) for r in _compact(table)]
    gone = [(1, odd, 1, "a"), (1, odd, 3, "c"), (2, odd, 1, "a")]
    assert _rows(table) == [row for row in before if row not in gone]
    assert all(added["dataChange"] for added in table.added(version + 1))
    changes = spark.sql(f"SELECT * FROM table_changes('{table.name}', {version + 1})").collect()
    assert sorted((r.id, r.p, r.ts, r.v, r._change_type) for r in changes) == [(*row, "delete") for row in gone]
    past = spark.sql(f"SELECT id, p, ts, v FROM {table.name} VERSION AS OF {version}").collect()
    assert sorted(map(tuple, past), key=repr) == before
    # Two rows of key 2 have the greatest order.
    assert _compact(table, ties="any")[0].reason == "OUTDATED_ROWS_1"
    assert [row[0] for row in _rows(table)].count(2) == 1
    (event,) = table.sql("SELECT * FROM {t}.optimizations WHERE optimization_name = 'LatestRowCompaction' LIMIT 1")
    assert "primary_key" in event.parameters["options"]


@pytest.mark.slow
def test_later_runs_compare_new_files_only(spark, new_table, monkeypatch):
    compared = []
    find = latest_row_compaction.OutdatedRows.find

    def counting(snapshot, order, ties, new_files):
        compared.append(None if new_files is None else len(new_files))
        return find(snapshot, order, ties, new_files)

    monkeypatch.setattr(latest_row_compaction.OutdatedRows, "find", counting)
    table = new_table(KEYED)
    _append(table, (1, "p", 1, "a"), (2, "p", 1, "a"))
    _append(table, (2, "p", 2, "b"))
    _compact(table)
    assert compared == [None, None]
    assert _compact(table)[0].reason == "NOTHING_TO_DO"
    assert compared == [None, None]
    _append(table, (1, "p", 0, "late"), (3, "p", 0, "c"))
    _compact(table)
    assert compared == [None, None, 1, 1]
    assert _rows(table) == [(1, "p", 1, "a"), (2, "p", 2, "b"), (3, "p", 0, "c")]


def test_rows_that_a_restore_brings_back_are_compared(spark, new_table):
    table = new_table(KEYED, properties={"delta.enableDeletionVectors": "true"})
    _append(table, (1, "p", 1, "old"), (2, "p", 1, "a"))
    _append(table, (1, "p", 2, "new"))
    version = table.version
    table.sql("DELETE FROM {t} WHERE v = 'old'")
    assert _compact(table, min_deleted_ratio=1.0)[0].reason == "NOTHING_TO_DO"
    table.sql(f"RESTORE {{t}} TO VERSION AS OF {version}")
    _compact(table)
    assert _rows(table) == [(1, "p", 2, "new"), (2, "p", 1, "a")]


@pytest.mark.slow
def test_keys_are_equal_with_and_without_padding(spark, new_table):
    """A writer that names the path does not pad CHAR."""
    table = new_table("c CHAR(4), ts BIGINT")
    for text, time in (("ab", 1), ("ab  ", 2), ("b", 3)):
        rows = spark.createDataFrame([(text, time)], "c STRING, ts BIGINT").coalesce(1)
        rows.write.format("delta").mode("append").save(str(table.path))
    _compact(table, primary_key=["c"])
    assert sorted(row.ts for row in table.data.collect()) == [2, 3]


@pytest.mark.slow
def test_cached_rows_are_not_those_of_before(spark, new_table):
    table = new_table(KEYED)
    _append(table, (1, "p", 1, "a"), (2, "p", 1, "a"))
    _append(table, (2, "p", 2, "b"))
    cached = table.data.cache()
    try:
        assert cached.count() == 3
        _compact(table)
        assert _rows(table) == [(1, "p", 1, "a"), (2, "p", 2, "b")]
        assert spark.read.format("delta").load(str(table.path)).count() == 2
    finally:
        cached.unpersist()


def test_a_key_never_loses_its_last_row_to_a_concurrent_delete(spark, new_table):
    table = new_table(KEYED)
    _append(table, (1, "p", 1, "old"), (2, "p", 1, "old"))
    _append(table, (1, "p", 2, "new"))

    def others():
        table.sql("DELETE FROM {t} WHERE ts = 2")
        _append(table, (2, "p", 0, "appended"))

    asked = settings_of(strategy=LATEST, options={"primary_key": "id", "order_by": "ts"})
    report = optimize(table.managed, asked, Run.of(table.managed, "call", {}), At(Step.COMMIT, others))
    assert ("failed", "USE_CONCURRENT_CHANGE") in [(r.state, r.reason) for r in report]
    assert _rows(table) == [(1, "p", 1, "old"), (2, "p", 1, "old")]


@pytest.mark.slow
@pytest.mark.parametrize("appended", [(1, "p", 3, "newer"), (7, "p", 1, "other")], ids=["same key", "other key"])
def test_a_concurrent_append_is_no_conflict(spark, new_table, appended):
    table = new_table(KEYED)
    _append(table, (1, "p", 1, "old"))
    _append(table, (1, "p", 2, "new"))
    asked = settings_of(strategy=LATEST, options={"primary_key": "id", "order_by": "ts"})
    appending = At(Step.COMMIT, lambda: _append(table, appended))
    report = optimize(table.managed, asked, Run.of(table.managed, "call", {}), appending)
    assert {r.state for r in report} == {"committed"}
    assert _rows(table) == ([(1, "p", 3, "newer")] if appended[0] == 1 else [(1, "p", 2, "new"), appended])


@pytest.mark.slow
def test_an_indexed_table_keeps_its_index(spark, new_table):
    table = new_table(NUMBERS, index="x,y", cube_size=100, file_bytes="4kb")
    table.append(numbers(spark, 800)).index()
    table.append(numbers(spark, 200)).index()
    expected = table.data.groupBy("id").agg({"x": "max"}).count()
    report = sql_ext.call(spark, "compact", table=table.name, primary_key=["id"], order_by="x", ties="any").collect()
    assert {(r.strategy, r.state) for r in report} == {(LATEST, "committed")}
    assert table.data.count() == table.data.select("id").distinct().count() == expected == 800
    assert {file.revision for file in table.files} == {1}
    assert check_placement(table) == 800


def test_what_a_table_refuses(spark, new_table):
    table = new_table(KEYED)
    _append(table, (1, "p", None, "a"), (1, "p", 1, "b"), (None, "p", None, "c"))
    version = table.version
    with pytest.raises(
        sql_ext.UseError, match=r"order_by = 'ts' is not accepted: a column without nulls, and 1 row with"
    ):
        _compact(table)
    with pytest.raises(sql_ext.UseError, match=r"primary_key: There is no column 'idd'. Did you mean id"):
        _compact(table, primary_key=["idd"])
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    with pytest.raises(sql_ext.UseError, match="appendOnly"):
        _compact(table, order_by="v")
    assert table.version == version + 1


def test_properties_name_columns_that_exist(spark, new_table):
    table = new_table(KEYED, properties={"delta.columnMapping.mode": "name"})
    change = "ALTER TABLE {t} SET TBLPROPERTIES "
    with pytest.raises(Exception, match=r"use.compaction.orderBy is missing"):
        table.sql(change + "('use.compaction.primaryKey' = 'id')")
    with pytest.raises(Exception, match=r"use.compaction.primaryKey: There is no column 'idd'"):
        table.sql(change + "('use.compaction.primaryKey' = 'idd', 'use.compaction.orderBy' = 'ts')")
    table.sql(change + "('use.compaction.primaryKey' = 'id', 'use.compaction.orderBy' = 'ts')")
    table.sql("ALTER TABLE {t} RENAME COLUMN ts TO changed")
    properties = {r.key: r.value for r in table.sql("SHOW TBLPROPERTIES {t}")}
    assert properties["use.compaction.orderBy"] == "changed"
    with pytest.raises(Exception, match=r"cannot be dropped, because use.compaction.orderBy names it"):
        table.sql("ALTER TABLE {t} DROP COLUMN changed")


def test_lost_rows_are_noticed(spark, new_table, monkeypatch):
    """The comparison before the commit does not rely on the search for outdated rows."""
    from procedures.rewrite import outdated_rows

    table = new_table(KEYED)
    _append(table, (1, "p", 1, "a"), (2, "p", 1, "a"))
    _append(table, (1, "p", 2, "b"))
    monkeypatch.setattr(outdated_rows, "_ranked", _wrong_rank)
    version = table.version
    with pytest.raises(sql_ext.UseError, match="lost their latest row"):
        _compact(table)
    assert table.version == version
    assert json.dumps(_rows(table)) == json.dumps([[1, "p", 1, "a"], [1, "p", 2, "b"], [2, "p", 1, "a"]])


def _wrong_rank(keyed, keys, ties):
    from pyspark.sql import functions as F

    wrong = F.when(F.col("order") == 2, 2).otherwise(1).alias("rank")
    return keyed.select("file", "position", F.col("file").alias("later"), wrong, F.lit(False).alias("unknown"))
