"""``optimize`` beside the features of Delta tables: nothing of them is lost."""

import pytest
from placement import check_placement
from pyspark.sql import functions as F
from tables import DeltaTable, another_engine, numbers

import sql_ext
from procedures.insight.report.facts import gather
from procedures.process.application import Application, application
from procedures.service.execution import background_session
from sql_ext import read_report
from sql_ext.dashboard.spark_table import SparkTableSource

COLUMNS = "id BIGINT, x DOUBLE, y INT, s STRING"


def committed(report):
    return [(r.state, r.reason) for r in report] == [("committed", "UNINDEXED")]


@pytest.mark.slow
def test_a_partitioned_table(spark, new_table):
    table = new_table(f"{COLUMNS}, p STRING", index="x,y", cube_size=100, tail="PARTITIONED BY (p)")
    names = F.element_at(
        F.array(F.lit("a b"), F.lit("ä/c"), F.lit("50%"), F.lit(None)), (F.col("id") % 4 + 1).cast("int")
    )
    table.append(numbers(spark, 1200).withColumn("p", names))
    before = table.checksum()
    assert committed(table.optimize())
    assert table.checksum() == before
    assert check_placement(table) == 1200
    assert {a["partitionValues"]["p"] for a in table.added(table.version)} == {"a b", "ä/c", "50%", None}
    assert (
        table.data.where("p = 'ä/c' AND x < 0.5").count() == table.data.where("p = 'ä/c'").where("x + 0 < 0.5").count()
    )
    assert table.optimize()[0].reason == "NOTHING_TO_DO"


@pytest.mark.slow
def test_column_mapping_and_a_renamed_column(spark, new_table):
    table = new_table(
        COLUMNS,
        index="x,y",
        cube_size=40,
        file_bytes="3kb",
        # Without minima and maxima, so that it is the cubes that skip.
        properties={"delta.columnMapping.mode": "name", "delta.dataSkippingNumIndexedCols": "0"},
    )
    table.append(numbers(spark, 1000)).index()
    table.sql("ALTER TABLE {t} RENAME COLUMN x TO renamed")
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='renamed,y')")
    table.append(numbers(spark, 500, start=1000).withColumnRenamed("x", "renamed"))
    before = table.checksum()
    assert committed(table.optimize(strategy="UnindexedFiles"))
    assert table.checksum() == before
    assert table.revisions[max(table.revisions)].columns == table.revisions[1].columns
    assert check_placement(table) == 1500
    sample = table.data.sample(0.2)
    assert read_report(sample).weight_filters == 1
    assert (
        sample.count() == table.data.where(F.expr(f"hash(renamed, y) < {int(0.2 * 4294967295 - 2147483648)}")).count()
    )
    box = table.data.where("renamed < 0.1 AND y < 100")
    assert read_report(box).scans[0].pruned
    assert box.count() == table.data.where("renamed + 0 < 0.1 AND y + 0 < 100").count()


@pytest.mark.slow
def test_a_renamed_column_and_a_property_that_still_has_the_old_name(spark, new_table):
    table = new_table(COLUMNS, index="x,y", cube_size=100, properties={"delta.columnMapping.mode": "name"})
    table.append(numbers(spark, 300)).index()
    with another_engine():
        table.sql("ALTER TABLE {t} RENAME COLUMN x TO renamed")
    table.append(numbers(spark, 100, start=300).withColumnRenamed("x", "renamed"))
    assert committed(table.optimize())
    assert check_placement(table) == 400
    assert table.data.where("renamed < 0.5").count() == table.data.where("renamed + 0 < 0.5").count()


@pytest.mark.slow
def test_a_dropped_index_column_is_named(spark, new_table):
    table = new_table(COLUMNS, index="x,y", cube_size=100, properties={"delta.columnMapping.mode": "name"})
    table.append(numbers(spark, 300)).index()
    with another_engine():
        table.sql("ALTER TABLE {t} DROP COLUMN x")
    table.append(numbers(spark, 100, start=300).drop("x"))
    with pytest.raises(sql_ext.UseError, match="'x'") as refused:
        table.optimize()
    assert refused.value.code == "USE_UNKNOWN_COLUMN"
    assert table.data.where("y < 500").count() == table.data.where("y + 0 < 500").count()
    assert table.data.sample(0.5, seed=1).count() in range(120, 281)


@pytest.mark.slow
def test_deleted_rows_stay_deleted(spark, new_table):
    table = new_table(COLUMNS, index="x,y", cube_size=100, properties={"delta.enableDeletionVectors": "true"})
    table.append(numbers(spark, 1000))
    table.sql("DELETE FROM {t} WHERE id % 5 = 0")
    assert any(f.deletion_vector for f in table.files)
    before = table.checksum()
    report = table.optimize()
    assert (report[0].rows, report[0].state) == (800, "committed")
    assert table.checksum() == before
    assert check_placement(table) == 800
    # Deleted again, now from indexed files: the tags stay and bound the rows from above.
    table.sql("DELETE FROM {t} WHERE id % 5 = 1")
    assert table.data.count() == 600
    assert check_placement(table) == 800
    assert table.data.where("x < 0.3").count() == table.data.where("x + 0 < 0.3").count()
    assert table.optimize(strategy="UnindexedFiles")[0].reason == "NOTHING_TO_DO"


@pytest.mark.slow
def test_compaction_of_files_with_deletion_vectors(spark, new_table):
    table = new_table(COLUMNS, index="x,y", cube_size=5000, properties={"delta.enableDeletionVectors": "true"})
    table.append(spark.sql("SELECT -1L id, 0D x, 0 y, '' s UNION ALL SELECT -2L, 1D, 999, ''")).index()
    table.append(numbers(spark, 30, partitions=3), files=3)
    table.optimize(strategy="UnindexedFiles", options={"batch_bytes": "1"})
    table.append(numbers(spark, 270, start=30, partitions=3), files=3)
    table.optimize(strategy="UnindexedFiles", options={"batch_bytes": "1"})
    table.sql("DELETE FROM {t} WHERE id % 3 = 0")
    before = table.checksum()
    report = table.optimize(strategy="LeveledCompaction")
    assert {r.state for r in report} == {"committed"}
    assert table.checksum() == before
    assert check_placement(table) >= 202
    assert table.optimize(strategy="LeveledCompaction")[0].reason == "NOTHING_TO_DO"


def test_row_ids_stay(spark, new_table):
    table = new_table(COLUMNS, index="x,y", cube_size=100, properties={"delta.enableRowTracking": "true"})
    table.append(numbers(spark, 300)).append(numbers(spark, 300, start=300))

    def ids():
        rows = table.data.select("id", "_metadata.row_id", "_metadata.row_commit_version").collect()
        return {r.id: (r.row_id, r.row_commit_version) for r in rows}

    before = ids()
    assert None not in {row_id for row_id, _ in before.values()}
    assert committed(table.optimize())
    assert ids() == before
    assert table.commit_info(table.version)["tags"]["delta.rowTracking.preserved"] == "true"


@pytest.mark.slow
def test_constraints_generated_and_identity_columns(spark, new_table):
    table = new_table(
        "id BIGINT NOT NULL, g BIGINT GENERATED ALWAYS AS (id * 2), n BIGINT GENERATED ALWAYS AS IDENTITY, "
        "d INT DEFAULT 7",
        index="id,g",
        cube_size=100,
        properties={"delta.feature.allowColumnDefaults": "supported"},
    )
    table.sql("ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)")
    spark.range(500).createOrReplaceTempView("some_ids")
    table.sql("INSERT INTO {t} (id) SELECT id FROM some_ids")
    before = table.checksum()
    assert committed(table.optimize())
    assert table.checksum() == before
    assert check_placement(table) == 500
    table.sql("INSERT INTO {t} (id) VALUES (500)")
    last = table.data.where("id = 500").collect()[0]
    assert (last.g, last.d) == (1000, 7)
    assert last.n not in [r.n for r in table.data.where("id < 500").select("n").collect()]


@pytest.mark.slow
def test_nested_and_variant_columns_are_kept(spark, new_table):
    table = new_table(
        "id BIGINT, a ARRAY<STRUCT<b: MAP<STRING, INT>>>, v VARIANT, `when` TIMESTAMP_NTZ", index="id", cube_size=50
    )
    spark.range(200).selectExpr(
        "id", "array(named_struct('b', map('k', int(id))))", "parse_json(concat('{\"n\":', id, '}'))",
        "TIMESTAMP_NTZ'2020-01-01 00:00:00'",
    ).write.insertInto(table.name)  # fmt: skip
    assert committed(table.optimize())
    rows = table.data.selectExpr("id", "a[0].b['k'] k", "variant_get(v, '$.n', 'int') n").collect()
    assert sorted(r.id for r in rows) == list(range(200))
    assert all(r.id == r.k == r.n for r in rows)


def test_change_data_and_streams_see_nothing(spark, new_table):
    table = new_table(COLUMNS, index="x", cube_size=100, properties={"delta.enableChangeDataFeed": "true"})
    table.append(numbers(spark, 300)).index()
    changes = spark.read.option("readChangeFeed", "true").option("startingVersion", table.version).table(table.name)
    assert changes.count() == 0


@pytest.mark.slow
def test_append_only_tables(spark, new_table):
    table = new_table(COLUMNS, index="x", cube_size=100, properties={"delta.appendOnly": "true"})
    table.append(numbers(spark, 300))
    assert committed(table.optimize())
    assert check_placement(table) == 300


@pytest.mark.slow
def test_a_table_by_path(spark, tmp_path):
    path = tmp_path / "by path"
    numbers(spark, 500).write.format("delta").save(str(path))
    table = DeltaTable(spark, f"delta.`{path}`")
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns'='x,y', 'use.index.cubeSize'='100')")
    before = table.checksum()
    assert committed(table.optimize())
    assert table.checksum() == before
    assert check_placement(table) == 500
    assert sql_ext.call(spark, "optimize", table=str(path)).collect()[0].reason == "NOTHING_TO_DO"
    assert spark.sql(f"SELECT * FROM delta.`{path}`.optimizations").count() == 1


@pytest.mark.slow
def test_settings_of_the_session_neither_matter_nor_change(spark, new_table, set_conf):
    set_conf("spark.sql.files.maxRecordsPerFile", "10")
    set_conf("spark.databricks.delta.optimizeWrite.enabled", "true")
    set_conf("spark.databricks.delta.autoCompact.enabled", "true")
    set_conf("spark.sql.shuffle.partitions", "7")
    set_conf("spark.sql.ansi.enabled", "false")
    set_conf("spark.sql.codegen.wholeStage", "true")
    set_conf("spark.sql.codegen.factoryMode", "FALLBACK")
    set_conf("spark.sql.adaptive.enabled", "true")
    table = new_table(COLUMNS, index="x,y", cube_size=100).append(numbers(spark, 500))
    report = table.optimize()
    assert report[0].output_files == len(table.files) == 1
    assert check_placement(table) == 500
    assert spark.conf.get("spark.sql.files.maxRecordsPerFile") == "10"
    assert spark.conf.get("spark.databricks.delta.autoCompact.enabled") == "true"


@pytest.mark.slow
def test_a_widened_column(spark, new_table):
    table = new_table("a INT, b INT", index="a,b", cube_size=100, properties={"delta.enableTypeWidening": "true"})
    table.append(spark.range(500).selectExpr("int(id) a", "int(id) b")).index()
    table.sql("ALTER TABLE {t} ALTER COLUMN a TYPE BIGINT")
    table.append(spark.range(3_000_000_000, 3_000_000_100).selectExpr("id a", "1 b"))
    for _ in range(2):
        assert table.data.where("a < 100").count() == 100
        assert table.data.where("a >= 3000000000").count() == 100
        assert sum(share.count() for share in table.data.randomSplit([1.0, 3.0], seed=1)) == 600
        table.index()
    assert table.data.count() == 600


@pytest.mark.slow
@pytest.mark.parametrize("wider", ["decimal(20,2)", "decimal(12,4)"])
def test_a_sample_after_a_decimal_was_widened(spark, new_table, wider):
    table = new_table(
        "id BIGINT, x DECIMAL(10,2)",
        index="x",
        cube_size=200,
        file_bytes="3kb",
        properties={"delta.enableTypeWidening": "true"},
    )
    rows = spark.range(3000).selectExpr("id", "cast(id * 7919 % 100003 / 7 as decimal(10,2)) x")
    table.append(rows).index()
    assert read_report(table.data.sample(0.1)).scans[0].pruned
    table.sql(f"ALTER TABLE {{t}} ALTER COLUMN x TYPE {wider}")
    below = F.expr(f"hash(x) < {int(0.1 * 4294967295 - 2147483648)}")
    # Weights of the old type say nothing of the new one: the files are read whole and filtered by row.
    assert not read_report(table.data.sample(0.1)).scans[0].pruned
    assert table.data.sample(0.1).count() == table.data.where(below).count()
    # New rows start a revision of their own, whose weights are those of the new type.
    table.append(rows.selectExpr("id + 3000 AS id", "x"))
    assert committed(table.optimize(strategy="UnindexedFiles"))
    assert max(table.revisions) == 2
    sample = table.data.sample(0.1)
    assert read_report(sample).scans[0].pruned
    assert sample.count() == table.data.where(below).count()


@pytest.mark.slow
def test_a_former_index_column_that_was_dropped(new_table, spark):
    properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    table = new_table("a INT, b INT, c INT", index="a,b", properties=properties)
    table.append(spark.range(1000).selectExpr("CAST(id AS INT) a", "CAST(id % 7 AS INT) b", "CAST(id AS INT) c"))
    table.index()
    stored = table.managed.snapshot().latest_revision.columns[0]
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns' = 'b')")
    table.sql("ALTER TABLE {t} DROP COLUMN a")
    table.sql("DELETE FROM {t} WHERE c % 2 = 0")
    app = Application(clock=application().clock)
    assert gather(table.managed, app.clock).index_columns == (stored, "b")
    page = SparkTableSource(background_session(spark), app).gather(table.name, False, "group-of-the-test")
    assert page.layout.columns == (stored, "b")
    rows = table.checksum()
    assert [row.state for row in table.sql("CALL use.optimize('{t}', strategy => 'DeleteCompaction')")] == ["committed"]
    assert table.checksum() == rows
    assert sum(file.rows for file in table.unindexed) == 500
