"""``use.index`` opts a table in without touching its files, ``use.drop_index`` takes all of the index away again."""

import shutil
from types import SimpleNamespace

import pytest
from placement import check_placement
from tables import NUMBERS, DeltaTable, checksum, numbers

import sql_ext
from procedures.calls import drop_index
from procedures.calls import index as index_procedure
from procedures.declare.runs import Run
from procedures.process.application import application
from procedures.rewrite import untag


def index(table, **arguments):
    name = table if isinstance(table, str) else table.name
    spark = arguments.pop("spark", None) or table.spark
    return sql_ext.call(spark, "index", table=name, **arguments).collect()[0]


def test_a_delta_table_is_opted_in_by_one_commit_of_properties(spark, new_table):
    table = new_table(NUMBERS).append(numbers(spark, 600))
    before = table.checksum(), table.on_disk(), table.version
    row = index(table, columns="x,s:hashing", cube_size=100, target_file_bytes=20_000)
    assert row.properties == {
        "use.index.columns": "x,s:hashing",
        "use.index.cubeSize": "100",
        "use.index.targetFileBytes": "20000",
    }
    assert (row.version, row.converted, row.advice) == (before[2] + 1, False, "OPTIMIZE")
    assert (row.unindexed_files, row.unindexed_bytes) == (len(table.files), sum(f.size for f in table.files))
    assert (table.checksum(), table.on_disk(), table.version) == (before[0], before[1], before[2] + 1)
    assert not table.added(table.version)
    assert table.commit_info(table.version)["operation"] == "USE INDEX"
    table.optimize()
    assert check_placement(table) == 600
    again = index(table, columns="x,s:hashing")
    assert (again.version, again.advice, again.unindexed_files) == (None, "NOTHING_TO_DO", 0)


@pytest.mark.slow
def test_other_columns_start_a_revision_at_the_next_optimize(spark, new_table):
    table = new_table(NUMBERS, index="x,y", cube_size=100).append(numbers(spark, 300)).index()
    row = index(table, columns="id,s")
    assert row.advice == "NEW_REVISION"
    assert "starts revision 2" in row.message
    table.append(numbers(spark, 300, start=300)).index()
    assert {f.revision for f in table.files} == {1, 2}
    assert table.revisions[2].columns == ("id", "s")


@pytest.mark.quick_sample(3)
@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"columns": "x,nothing"}, "USE_UNKNOWN_COLUMN"),
        ({"columns": "x,x"}, "USE_INVALID_ARGUMENT"),
        ({"columns": " "}, "USE_INVALID_ARGUMENT"),
        ({"columns": "a"}, "USE_UNINDEXABLE_TYPE"),
        ({"columns": "x", "cube_size": 0}, "USE_INVALID_ARGUMENT"),
        ({"columns": "x", "target_file_bytes": -1}, "USE_INVALID_ARGUMENT"),
        ({"columns": "x", "column_stats": "[1]"}, "USE_INVALID_ARGUMENT"),
        ({"columns": "x", "table": "default.no_such_table"}, "USE_TABLE_NOT_FOUND"),
    ],
)
def test_refusals_touch_nothing(spark, new_table, wrong, code):
    table = new_table("x DOUBLE, a ARRAY<INT>")
    before = table.state()
    with pytest.raises(sql_ext.UseError) as refused:
        sql_ext.call(spark, "index", **({"table": table.name} | wrong))
    assert refused.value.code == code
    assert table.state() == before


@pytest.mark.slow
def test_a_parquet_folder_with_partitions_is_converted(spark, tmp_path):
    path = tmp_path / "par quet"
    rows = numbers(spark, 200).selectExpr("*", "CAST(id % 2 AS INT) p")
    rows.write.partitionBy("p").parquet(str(path))
    before = set(path.glob("p=*/*.parquet"))
    with pytest.raises(sql_ext.UseError, match="convert => true") as refused:
        index(str(path), spark=spark, columns="x,y")
    assert refused.value.code == "USE_NOT_A_DELTA_TABLE"
    for columns in ("x,nothing", "x,p"):
        with pytest.raises(sql_ext.UseError):
            index(str(path), spark=spark, columns=columns, convert=True)
    assert not (path / "_delta_log").exists()
    # What a conversion leaves behind that was killed before its commit.
    (path / "_delta_log" / "_staged_commits").mkdir(parents=True)
    (path / "_delta_log" / ".00000000000000000000.json.0123.tmp").write_text("")
    row = index(f"parquet.`{path}`", spark=spark, columns="x,y", cube_size=50, convert=True)
    assert (row.converted, row.unindexed_files) == (True, len(before))
    assert before == set(path.glob("p=*/*.parquet"))
    table = DeltaTable(spark, f"delta.`{path}`")
    table.optimize()
    assert table.checksum() == checksum(rows)
    assert not table.unindexed


def test_a_conversion_adds_the_rows_that_spark_reads_from_the_folder(spark, tmp_path, set_conf):
    """Delta looks into all folders below, and leaves files out that the session is told to ignore."""
    path = tmp_path / "t"
    for folder in (path, path / "backup"):
        spark.range(10).coalesce(1).write.mode("append").parquet(str(folder))
    with pytest.raises(sql_ext.UseError, match=r"shown by 1 file, such as .*/backup/") as refused:
        index(str(path), spark=spark, columns="id", convert=True)
    assert refused.value.code == "USE_NOT_SUPPORTED"
    shutil.rmtree(path / "backup")
    file = next(path.glob("*.parquet"))
    (path / "z-damaged.parquet").write_bytes(file.read_bytes()[:-8])
    set_conf("spark.sql.files.ignoreCorruptFiles", "true")
    with pytest.raises(Exception, match="z-damaged"):
        index(str(path), spark=spark, columns="id", convert=True)
    (path / "z-damaged.parquet").unlink()
    assert index(str(path), spark=spark, columns="id", convert=True).unindexed_files == 1
    assert DeltaTable(spark, f"delta.`{path}`").data.count() == 10


@pytest.mark.slow
def test_a_parquet_table_of_the_catalog_is_converted(spark):
    name = "default.parquet_to_convert"
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    try:
        rows = numbers(spark, 100).selectExpr("*", "CASE id % 3 WHEN 0 THEN 'a' WHEN 1 THEN 'b' END p")
        rows.write.format("parquet").partitionBy("p").saveAsTable(name)
        with pytest.raises(sql_ext.UseError, match="'p'"):
            index(name, spark=spark, columns="p", convert=True)
        row = index(name, spark=spark, columns="x", convert=True)
        assert (row.converted, row.version) == (True, 1)
        # A Delta table by now: nothing is left to convert.
        assert not index(name, spark=spark, columns="x", convert=True).converted
        data = DeltaTable(spark, name).data
        assert (data.count(), data.where("p IS NULL").count()) == (100, 33)
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


# -------------------------------------------------------------------------------------------------- drop_index


def indexed(spark, new_table, **properties):
    table = new_table(
        NUMBERS, index="x,y", cube_size=100, file_bytes="8kb", properties={"owner.note": "stays", **properties}
    )
    return table.append(numbers(spark, 500)).index()


def assert_no_index(table):
    live, metadata = table.replayed()
    assert not [k for k in metadata["configuration"] if k.startswith(("use.index", "qbeast."))]
    assert metadata["configuration"]["owner.note"] == "stays"
    assert all(
        not any(k in ("revision", "blocks") or k.startswith("use.") for k in a.get("tags") or {}) for a in live.values()
    )


@pytest.mark.slow
@pytest.mark.parametrize("large", [False, True])
def test_nothing_of_the_index_remains(spark, new_table, monkeypatch, large):
    monkeypatch.setattr(untag, "MAX_FILES_IN_MEMORY", 0 if large else 10_000)
    table = indexed(
        spark, new_table,
        **{f"delta.enable{name}": "true" for name in ("DeletionVectors", "RowTracking", "ChangeDataFeed")},
    )  # fmt: skip
    table.sql("DELETE FROM {t} WHERE id % 10 = 0")

    def row_ids():
        return {tuple(r) for r in table.data.select("id", "_metadata.row_id", "_metadata.row_commit_version").collect()}

    before, ids, live, version = table.checksum(), row_ids(), table.replayed()[0], table.version
    row = sql_ext.call(spark, "drop_index", table=table.name).collect()[0]
    assert (row.version, row.files, row.bytes) == (version + 1, len(live), sum(a["size"] for a in live.values()))
    assert "qbeast.lastRevisionID" in row.properties
    assert table.version == version + 1
    assert_no_index(table)
    assert (table.checksum(), row_ids()) == (before, ids)
    # The same files: deletion vectors, statistics and row ids as they were, and no data change.
    now = table.replayed()[0]
    assert set(now) == set(live)
    for path, add in now.items():
        assert add["dataChange"] is False
        for key in (
            "deletionVector",
            "size",
            "modificationTime",
            "partitionValues",
            "baseRowId",
            "defaultRowCommitVersion",
        ):
            assert add.get(key) == live[path].get(key), key
        assert '"numRecords"' in add["stats"]
    assert not table.removed(table.version)
    changes = spark.sql(f"SELECT * FROM table_changes('{table.name}', {version + 1})")
    assert changes.count() == 0
    with pytest.raises(sql_ext.UseError) as refused:
        sql_ext.call(spark, "drop_index", table=table.name)
    assert refused.value.code == "USE_NOT_INDEXED"
    assert table.version == version + 1
    # It can be indexed again, from revision 1.
    index(table, columns="y")
    table.optimize()
    assert check_placement(table) == 450
    assert table.data.count() == 450


def test_automatic_optimization_ends_with_the_index(spark, new_table):
    enabled = "use.optimization.autoOptimize.enabled"
    table = new_table(NUMBERS, index="x,y", properties={enabled: "true", "use.insights.ingestion.enabled": "true"})
    table.append(numbers(spark, 50))
    spark.sql(f"CALL use.suspend('{table.name}')")
    spark.sql(f"CALL use.plan('{table.name}', store => true)")
    files = len(table.files), sum(f.size for f in table.files)
    run = application().runs.begin(Run("t", f"file:{table.path}", "call", {}, 0))
    try:
        row = sql_ext.call(spark, "drop_index", table=table.name).collect()[0]
    finally:
        application().runs.end(run)
    assert run.stop_reason.code == "INDEX_DROPPED"
    assert {enabled, "use.index.columns"} <= set(row.properties)
    assert (row.files_before, row.bytes_before) == (row.files_after, row.bytes_after) == files
    assert "suspended.json" in row.released
    assert row.rewrite_with == f"OPTIMIZE {row.rewrite_with.split()[1]} ZORDER BY (x, y)"
    assert "automatic optimization is off" in row.message
    left = table.replayed()[1]["configuration"]
    assert {key: value for key, value in left.items() if key.startswith("use.")} == {
        "use.insights.ingestion.enabled": "true"
    }
    assert not (table.path / "_use" / "suspended.json").exists()


def test_the_statement_that_rewrites_without_an_index_quotes_columns():
    index = SimpleNamespace(logical_columns=("plain", "a b", "`c,d`", "s.x y", "`a.``b`"))
    statement = drop_index._rewriting("c.d.`e f`", SimpleNamespace(index_configuration=index))
    assert statement == "OPTIMIZE c.d.`e f` ZORDER BY (plain, `a b`, `c,d`, s.`x y`, `a.``b`)"


@pytest.mark.slow
def test_a_table_of_a_fleet_leaves_it(spark):
    spark.sql("CREATE DATABASE dropped_fleet WITH DBPROPERTIES ('use.fleet.enabled' = 'true')")
    try:
        spark.sql("CREATE TABLE dropped_fleet.t (x INT) USING delta TBLPROPERTIES ('use.index.columns' = 'x')")
        row = sql_ext.call(spark, "drop_index", table="dropped_fleet.t").collect()[0]
        assert "automatic optimization is off" in row.message
        properties = {r.key: r.value for r in spark.sql("SHOW TBLPROPERTIES dropped_fleet.t").collect()}
        assert properties["use.fleet.enabled"] == "false"
    finally:
        spark.sql("DROP DATABASE dropped_fleet CASCADE")


@pytest.mark.slow
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("other", ["append", "delete", "indexed append"])
def test_concurrent_writers_win(spark, new_table, monkeypatch, other, large):
    monkeypatch.setattr(untag, "MAX_FILES_IN_MEMORY", 0 if large else 10_000)
    table = indexed(spark, new_table)
    real, calls = drop_index.tagged, []

    def racing(files):
        calls.append(1)
        if len(calls) == 1:
            if other == "delete":
                table.sql("DELETE FROM {t} WHERE id < 100")
            else:
                table.append(numbers(spark, 50, start=500))
            if other == "indexed append":
                table.index()
        return real(files)

    monkeypatch.setattr(drop_index, "tagged", racing)
    sql_ext.call(spark, "drop_index", table=table.name)
    assert table.data.count() == (400 if other == "delete" else 550)
    assert_no_index(table)


@pytest.mark.slow
def test_a_stream_sees_nothing(spark, new_table, tmp_path):
    table = indexed(spark, new_table)
    seen = []

    def run():
        query = (
            spark.readStream.table(table.name)
            .writeStream.foreachBatch(lambda rows, _: seen.append(rows.count()))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    run()
    sql_ext.call(spark, "drop_index", table=table.name)
    run()
    assert sum(seen) == 500


def test_a_plain_table_is_refused(spark, new_table):
    table = new_table(NUMBERS).append(numbers(spark, 10))
    before = table.state()
    with pytest.raises(sql_ext.UseError) as refused:
        sql_ext.call(spark, "drop_index", table=table.name)
    assert refused.value.code == "USE_NOT_INDEXED"
    assert table.state() == before


def test_a_race_over_the_properties_is_lost_in_our_words(spark, new_table, monkeypatch):
    table = new_table(NUMBERS).append(numbers(spark, 10))
    real = index_procedure._checked

    def racing(configuration, snapshot):
        real(configuration, snapshot)
        table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('owner.note'='first')")

    monkeypatch.setattr(index_procedure, "_checked", racing)
    with pytest.raises(sql_ext.UseError) as lost:
        index(table, columns="x")
    assert lost.value.code == "USE_CONCURRENT_CHANGE"
    assert "use.index.columns" not in table.replayed()[1]["configuration"]
