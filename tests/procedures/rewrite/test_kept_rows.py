"""Statements that rewrite rows: the layout stays, and everything else is as Delta does it."""

import pytest
from placement import check_placement
from pyspark.sql import functions as F
from statement_tables import (
    CHANGES,
    COLUMNS,
    NO_VECTORS,
    STATEMENTS,
    check_indexed,
    metrics_of,
    note,
    pair,
    rows,
    run_on_both,
)

from catalog.errors import RowsChangedError
from catalog.settings.session_settings import STATEMENTS_ENABLED
from procedures.layout.layout_writer import LayoutWriter

OTHERS = [name for name in STATEMENTS if name != "delete"]


@pytest.mark.parametrize("name", [n if n == "merge" else pytest.param(n, marks=pytest.mark.slow) for n in OTHERS])
def test_the_layout_stays(spark, new_table, name):
    keep_the_layout(*pair(spark, new_table), name)


def test_a_file_without_some_rows_keeps_its_place(spark, new_table):
    keep_the_layout(*pair(spark, new_table), "delete")


def keep_the_layout(indexed, plain, name):
    before = {(file.write_id, file.revision) for file in indexed.files}
    run_on_both(indexed, plain, STATEMENTS[name])
    check_indexed(indexed)
    if "merge" not in name:
        # Each file has the place of its source: one write, whose files do not overlap.
        assert {(file.write_id, file.revision) for file in indexed.files} == before
    # Nothing is left to do for the optimizer.
    version = indexed.version
    indexed.optimize(strategy="UnindexedFiles")
    assert indexed.version == version


FEATURES = {
    "partitions": {"tail": "PARTITIONED BY (p)"},
    "change feed": {"properties": {**NO_VECTORS, "delta.enableChangeDataFeed": "true"}},
    "row tracking": {"properties": {**NO_VECTORS, "delta.enableRowTracking": "true"}},
    "column mapping": {"properties": {**NO_VECTORS, "delta.columnMapping.mode": "name"}},
    "deletion vectors": {"properties": {"delta.enableDeletionVectors": "true"}},
    "vectors and change feed": {
        "properties": {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    },
    "constraint": {"properties": {**NO_VECTORS, "delta.constraints.some": "id >= 0"}},
    "generated column": {"columns": f"{COLUMNS}, g BIGINT GENERATED ALWAYS AS (id * 2)"},
    "column default": {
        "columns": "id BIGINT, x BIGINT, p INT DEFAULT 5, s STRING",
        "properties": {**NO_VECTORS, "delta.feature.allowColumnDefaults": "supported"},
    },
    "optimized writes": {"properties": {**NO_VECTORS, "delta.autoOptimize.optimizeWrite": "true"}},
}
OF_FEATURES = ("delete", "update of an indexed column", "merge")


@pytest.mark.slow
@pytest.mark.parametrize("feature", FEATURES)
def test_features_of_delta(spark, new_table, feature):
    indexed, plain = pair(spark, new_table, **FEATURES[feature])
    if feature == "column mapping":
        for table in (indexed, plain):
            table.sql("ALTER TABLE {t} RENAME COLUMN s TO `a text`")
            table.sql("ALTER TABLE {t} RENAME COLUMN `a text` TO s")
    if feature == "row tracking":
        former = dict(indexed.data.select("id", "_metadata.row_id").collect())
    first = {table.name: table.version + 1 for table in (indexed, plain)}
    for name in OF_FEATURES:
        statement = STATEMENTS[name]
        if feature == "generated column" and name == "merge":
            statement = statement.replace("UPDATE SET *", "UPDATE SET t.x = s.x").replace(
                "INSERT *", "INSERT (id, x, p, s) VALUES (s.id, s.x, s.p, s.s)"
            )
        run_on_both(indexed, plain, statement)
        assert not indexed.unindexed
    check_indexed(indexed)
    if feature.endswith("change feed"):
        feeds = [
            spark.sql(f"SELECT * FROM table_changes('{table.name}', {first[table.name]})")
            .withColumn("_commit_version", F.col("_commit_version") - first[table.name])
            .drop("_commit_timestamp")
            for table in (indexed, plain)
        ]
        assert feeds[0].exceptAll(feeds[1]).isEmpty()
        assert feeds[1].exceptAll(feeds[0]).isEmpty()
    if feature == "row tracking":
        now = dict(indexed.data.select("id", "_metadata.row_id").collect())
        assert len(set(now.values())) == len(now)
        # The merge inserts rows again that the first statement has deleted.
        assert all(former[key] == row_id for key, row_id in now.items() if key in former and key % 50 != 7)


@pytest.mark.slow
def test_identity_columns(spark, new_table):
    columns = "id BIGINT, x BIGINT, p INT, s STRING, n BIGINT GENERATED ALWAYS AS IDENTITY"
    indexed, plain = pair(spark, new_table, columns=columns)
    merge = STATEMENTS["merge"].replace("UPDATE SET *", "UPDATE SET t.x = s.x")
    merge = merge.replace("INSERT *", "INSERT (id, x, p, s) VALUES (s.id, s.x, s.p, s.s)")
    for table in (indexed, plain):
        table.sql(merge)
        table.sql(STATEMENTS["delete"])
        table.append(rows(spark, 5000, 5100))
        assert table.data.agg(F.count_distinct("n") == F.count("n")).first()[0]
    assert indexed.data.drop("n").exceptAll(plain.data.drop("n")).isEmpty()
    assert len(indexed.unindexed) == 1


@pytest.mark.slow
def test_wider_types(spark, new_table):
    """The weights of an indexed column that became wider are others: rows wait for the next optimization."""
    properties = {**NO_VECTORS, "delta.enableTypeWidening": "true"}
    indexed, plain = pair(spark, new_table, columns="id BIGINT, x INT, p SMALLINT, s STRING", properties=properties)
    for table in (indexed, plain):
        table.sql("ALTER TABLE {t} ALTER COLUMN p TYPE INT")
    run_on_both(indexed, plain, STATEMENTS["update"])
    check_indexed(indexed)
    indexed.sql("ALTER TABLE {t} ALTER COLUMN x TYPE BIGINT")
    plain.sql("ALTER TABLE {t} ALTER COLUMN x TYPE BIGINT")
    for table in (indexed, plain):
        table.sql(STATEMENTS["merge"])
    assert indexed.checksum() == plain.checksum()
    assert set(note(indexed)["plain_files"]) in ({"OTHER_HASH_TYPES"}, set())
    indexed.optimize()
    assert indexed.checksum() == plain.checksum()


def _blocks(table):
    """The blocks of the files, in an order of their own."""
    return sorted(add["tags"]["blocks"] for add in table.replayed()[0].values())


@pytest.mark.quick_sample(2)
@pytest.mark.parametrize(
    ("statement", "is_counted"),
    [
        ("UPDATE {t} SET s = 'updated', p = p + 1 WHERE x % 50 = 9", False),
        ("UPDATE {t} SET s = 'all'", False),
        ("UPDATE {t} SET x = x + 1, s = 'b' WHERE id % 50 = 9", True),
        ("UPDATE {t} SET x = id, id = x WHERE id % 50 = 9", True),
        ("DELETE FROM {t} WHERE id % 50 = 9", True),
    ],
)
def test_rows_are_counted_where_they_may_move(spark, new_table, monkeypatch, statement, is_counted):
    """An UPDATE that leaves the indexed columns alone leaves the blocks of each file as they are."""
    indexed, plain = pair(spark, new_table)
    counted, blocks, before = [], LayoutWriter.blocks, _blocks(indexed)
    monkeypatch.setattr(LayoutWriter, "blocks", lambda *a: counted.append(1) or blocks(*a))
    run_on_both(indexed, plain, statement)
    check_indexed(indexed)
    assert bool(counted) == is_counted
    assert (_blocks(indexed) == before) == (not is_counted)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wishes", "statement", "is_counted"),
    [
        ({"tail": "PARTITIONED BY (p)"}, "UPDATE {t} SET s = 'u' WHERE id % 50 = 9", False),
        ({"tail": "PARTITIONED BY (p)"}, "UPDATE {t} SET p = 1 WHERE id % 50 = 9", True),
        ({"properties": FEATURES["change feed"]["properties"]}, "UPDATE {t} SET s = 'u' WHERE id % 50 = 9", True),
        ({"properties": FEATURES["row tracking"]["properties"]}, "UPDATE {t} SET s = 'u' WHERE id % 50 = 9", True),
    ],
)
def test_rows_are_counted_where_features_may_move_them(spark, new_table, monkeypatch, wishes, statement, is_counted):
    indexed, plain = pair(spark, new_table, **wishes)
    counted, blocks = [], LayoutWriter.blocks
    monkeypatch.setattr(LayoutWriter, "blocks", lambda *a: counted.append(1) or blocks(*a))
    run_on_both(indexed, plain, statement)
    check_indexed(indexed)
    assert bool(counted) == is_counted


@pytest.mark.slow
def test_an_update_without_statistics(spark, new_table, set_conf):
    indexed, plain = pair(spark, new_table)
    before = _blocks(indexed)
    set_conf("spark.databricks.delta.stats.collect", "false")
    for table in (indexed, plain):
        table.sql("UPDATE {t} SET s = 'updated' WHERE id % 50 = 9")
    assert indexed.checksum() == plain.checksum()
    assert note(indexed) == {"repeats": 0, "plain_files": {}}
    assert not indexed.unindexed
    assert len(_blocks(indexed)) == len(before)
    check_placement(indexed)


@pytest.mark.slow
def test_renamed_columns_are_recognized(spark, new_table):
    """Under column mapping, names that were swapped since name other columns than the files do."""
    indexed, plain = pair(spark, new_table, **FEATURES["column mapping"])
    before = _blocks(indexed)
    for table in (indexed, plain):
        for old, new in (("x", "y"), ("s", "x")):
            table.sql(f"ALTER TABLE {{t}} RENAME COLUMN {old} TO {new}")
    run_on_both(indexed, plain, "UPDATE {t} SET x = 'updated' WHERE id % 50 = 9")
    assert _blocks(indexed) == before
    run_on_both(indexed, plain, "UPDATE {t} SET y = y + 1 WHERE id % 50 = 9")
    assert _blocks(indexed) != before
    check_indexed(indexed)


def test_unindexed_files_stay_unindexed(spark, new_table):
    indexed, plain = pair(spark, new_table)
    for table in (indexed, plain):
        table.append(rows(spark, 10_000, 10_500))
    before = {file.path for file in indexed.unindexed}
    # The blocks of others are not copied, but made anew.
    run_on_both(indexed, plain, STATEMENTS["update of an indexed column"])
    assert len(indexed.unindexed) == len(before)
    assert not before & {file.path for file in indexed.unindexed}
    assert check_placement(indexed) == 3000


@pytest.mark.slow
def test_values_outside_the_space(spark, new_table):
    """They have a place at its edge; the next append makes a revision for them."""
    indexed, plain = pair(spark, new_table)
    run_on_both(indexed, plain, "UPDATE {t} SET x = x + 10000000000 WHERE id % 3 = 0")
    check_indexed(indexed)
    for condition in ("x > 10000050000", "x < 50000", "x BETWEEN 99999 AND 10000050000"):
        assert indexed.data.where(condition).count() == plain.data.where(condition).count()


@pytest.mark.slow
@pytest.mark.parametrize("statement", ["delete", "merge"])
def test_a_failure_of_the_layout_leaves_plain_files(spark, new_table, monkeypatch, statement):
    """The statement succeeds once, with Delta's figures; what was written before is deleted."""
    indexed, plain = pair(spark, new_table)

    def failing(*_):
        raise RowsChangedError("staged")

    monkeypatch.setattr(LayoutWriter, "blocks", failing)
    indexed.sql(STATEMENTS[statement])
    plain.sql(STATEMENTS[statement])
    assert indexed.checksum() == plain.checksum()
    assert metrics_of(indexed) == metrics_of(plain)
    files = sum(note(indexed)["plain_files"].values())
    assert note(indexed)["plain_files"] == {RowsChangedError.code: files}
    assert len(indexed.added(indexed.version)) == files
    named = {add["path"] for version in range(indexed.version + 1) for add in indexed.added(version)}
    assert indexed.on_disk() <= named
    status = spark.sql(f"CALL use.status('{indexed.name}', details => true)").first()
    assert (status.repeated_statements, status.plain_files) == (0, files)
    assert f"{RowsChangedError.code} {files}" in status.message
    assert f"{RowsChangedError.code} {files}" in spark.sql(f"CALL use.report('{indexed.name}')").first().html
    monkeypatch.undo()
    indexed.optimize()
    assert not indexed.unindexed


@pytest.mark.slow
def test_rows_that_break_a_constraint(spark, new_table):
    indexed, _ = pair(spark, new_table, properties={**NO_VECTORS, "delta.constraints.some": "id >= 0"})
    version = indexed.version
    with pytest.raises(Exception, match="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
        indexed.sql("UPDATE {t} SET id = -1 WHERE id = 77")
    assert indexed.version == version


@pytest.mark.slow
def test_one_setting_switches_it_off(spark, new_table, set_conf):
    indexed, plain = pair(spark, new_table)
    set_conf(STATEMENTS_ENABLED.name, "false")
    for table in (indexed, plain):
        table.sql(STATEMENTS["update"])
    assert len(indexed.unindexed) == len(indexed.files)
    assert "use.statement" not in indexed.commit_info(indexed.version).get("tags", {})
    assert indexed.checksum() == plain.checksum()


OVERWRITES = {
    "insert overwrite": lambda t, new: t.sql("INSERT OVERWRITE {t} SELECT * FROM new"),
    "replace where": lambda t, new: t.sql("INSERT INTO {t} REPLACE WHERE id < 700 SELECT * FROM new WHERE id < 700"),
    "writer by name": lambda t, new: new.write.format("delta").mode("overwrite").saveAsTable(t.name),
    "writer by path": lambda t, new: new.write.format("delta").mode("overwrite").save(str(t.path)),
    "replaceWhere by path": lambda t, new: (
        new.where("id < 700")
        .write.format("delta")
        .mode("overwrite")
        .option("replaceWhere", "id < 700")
        .save(str(t.path))
    ),
    "writeTo": lambda t, new: new.where("id < 700").writeTo(t.name).overwrite(F.col("id") < 700),
    "dynamic partitions": lambda t, new: (
        new.where("p = 1")
        .write.format("delta")
        .mode("overwrite")
        .option("partitionOverwriteMode", "dynamic")
        .save(str(t.path))
    ),
    "a partition": lambda t, new: t.sql("INSERT OVERWRITE {t} PARTITION (p = 1) SELECT id, x, s FROM new WHERE p = 1"),
    "create or replace": lambda t, new: t.sql(
        "CREATE OR REPLACE TABLE {t} USING delta TBLPROPERTIES ('use.index.columns' = 'x,id', "
        "'delta.enableDeletionVectors' = 'false') AS SELECT * FROM new"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OVERWRITES)
def test_overwrites(spark, new_table, name):
    tail = "PARTITIONED BY (p)" if "partition" in name else ""
    indexed, plain = pair(spark, new_table, tail=tail)
    new = rows(spark, 0, 2500).withColumn("s", F.lit("new")).orderBy("id").coalesce(1)
    new.createOrReplaceTempView("new")
    for table in (indexed, plain):
        OVERWRITES[name](table, new)
    assert indexed.data.exceptAll(plain.data).isEmpty()
    assert indexed.data.count() == plain.data.count()
    assert note(indexed) == {"repeats": 0, "plain_files": {}}
    check_indexed(indexed)


def test_appends_stay_plain(spark, new_table):
    indexed, _ = pair(spark, new_table)
    indexed.append(rows(spark, 9000, 9010))
    assert len(indexed.unindexed) == 1
    assert "use.statement" not in indexed.commit_info(indexed.version).get("tags", {})


@pytest.mark.slow
def test_a_stream_of_whole_results(spark, new_table, tmp_path):
    table = new_table("k BIGINT, n BIGINT", index="k", properties=NO_VECTORS)
    spark.range(100).selectExpr("id AS k", "id AS n").write.format("delta").mode("append").saveAsTable(table.name)
    table.index()
    source = str(tmp_path / "source")
    spark.range(1000).write.format("delta").save(source)
    counts = (
        spark.readStream.format("delta").load(source).groupBy((F.col("id") % 7).alias("k")).agg(F.count("*").alias("n"))
    )
    writer = counts.writeStream.format("delta").outputMode("complete").trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).toTable(table.name).awaitTermination()
    assert not table.unindexed
    assert table.data.agg(F.sum("n")).first()[0] == 1000


@pytest.mark.slow
def test_the_python_api_of_delta(spark, new_table):
    from delta.tables import DeltaTable as Api

    indexed, plain = pair(spark, new_table)
    changes = spark.sql(f"SELECT * FROM {CHANGES}")
    for table in (indexed, plain):
        api = Api.forName(spark, table.name)
        api.delete("id % 50 = 7")
        api.update("id % 50 = 9", {"s": F.lit("updated")})
        merge = api.alias("t").merge(changes.alias("s"), "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert indexed.checksum() == plain.checksum()
    check_indexed(indexed)
