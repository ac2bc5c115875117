"""Writes through qbeast, by path and by table: rows kept, files tagged, one commit, Delta's features intact."""

import threading
from functools import partial

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from placement import check_placement
from pyspark.errors import AnalysisException
from pyspark.sql import Observation
from pyspark.sql import functions as F
from tables import NUMBERS, DeltaTable, checksum, numbers

import sql_ext
from procedures.layout.step import Step
from procedures.rewrite.indexed_write import write_indexed
from sql_ext import bridge, read_report


@pytest.fixture
def by_path(spark, tmp_path):
    return DeltaTable(spark, f"delta.`{tmp_path}/t`"), str(tmp_path / "t")


@pytest.fixture
def name(spark):
    made = []

    def make(text):
        made.append(f"default.{text}")
        return made[-1]

    yield make
    for table in made:
        spark.sql(f"DROP TABLE IF EXISTS {table}")


def qbeast(rows, mode="errorifexists", columns="x,y", **options):
    writer = rows.write.format("qbeast").mode(mode)
    writer = writer.option("columnsToIndex", columns).option("cubeSize", "1000") if columns else writer
    return writer.options(**options)


def indexed(table, rows):
    """All files are tagged, all rows are in their blocks, and they are these rows."""
    assert not table.unindexed
    assert check_placement(table) == rows.count()
    assert table.checksum() == checksum(rows)


def problems(table):
    """What `use.check` finds wrong with the rows and their blocks."""
    return sql_ext.call(table.spark, "check", table=table.name, deep=True).where("severity = 'error'").collect()


def elsewhere(act):
    """Acts as another writer does: in a thread of its own, since a thread has one transaction of Delta's at a time."""
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


def race_once(monkeypatch, act, before=Step.TAG):
    """Acts as another writer before a step of the next write, by default before it tags its files."""
    waiting = [act]

    def race(step):
        if step is before and waiting:
            elsewhere(waiting.pop())

    monkeypatch.setattr(bridge, "write_indexed", partial(write_indexed, observe=race))


@pytest.mark.slow
def test_modes_by_path(spark, by_path):
    table, path = by_path
    rows = numbers(spark, 3000)
    qbeast(rows).save(path)
    indexed(table, rows)
    assert table.version == 0
    assert len(table.files[0].blocks) > 3
    assert sorted(table.revisions) == [0, 1]
    assert table.commit_info(0)["operation"] == "WRITE"
    assert all(add["dataChange"] for add in table.added(0))
    with pytest.raises(AnalysisException, match="DELTA_PATH_EXISTS"):
        qbeast(rows).save(path)
    qbeast(rows, "ignore").save(path)
    assert table.version == 0
    more = numbers(spark, 200).withColumn("id", F.col("id") + 3000)
    qbeast(more, "append", columns=None, userMetadata="noted").save(path)
    indexed(table, rows.union(more))
    assert len(table.added(1)) == 1
    assert not any("metaData" in action for action in table.actions(1))
    assert table.commit_info(1)["userMetadata"] == "noted"
    sample = spark.read.format("qbeast").load(path).sample(0.1)
    assert read_report(sample).weight_filters == 1
    assert sample.count() == table.data.where(f"hash(x, y) < {int(0.1 * 4294967295 - 2147483648)}").count()
    outside = numbers(spark, 100, start=3200).withColumn("y", F.col("y") + 5000)
    qbeast(outside, "append").save(path)
    indexed(table, rows.union(more).union(outside))
    assert sorted(table.revisions) == [0, 1, 2]
    assert len(table.added(2)) == 1
    qbeast(more, "overwrite", columns="y").save(path)
    indexed(table, more)
    # No number is used again.
    assert sorted(table.revisions) == [0, 3]
    assert table.revisions[3].columns == ("y",)
    assert spark.read.format("qbeast").option("versionAsOf", 1).load(path).count() == 3200
    assert spark.sql(f"SELECT * FROM qbeast.`{path}`").count() == 200


def test_an_application_writes_a_version_once(spark, by_path):
    table, path = by_path
    for _ in range(2):
        qbeast(numbers(spark, 50), "append", txnAppId="job", txnVersion="7").save(path)
    assert table.version == 0
    indexed(table, numbers(spark, 50))


@pytest.mark.slow
def test_schema_evolution_and_replaced_ranges(spark, by_path):
    table, path = by_path
    rows = numbers(spark, 500)
    qbeast(rows).save(path)
    with pytest.raises(AnalysisException, match="schema mismatch"):
        qbeast(rows.withColumn("z", F.lit(1)), "append").save(path)
    qbeast(rows.withColumn("z", F.lit(1)), "append", mergeSchema="true").save(path)
    assert check_placement(table) == 1000
    part = numbers(spark, 300, start=500).where("y < 100").withColumn("z", F.lit(2))
    kept = table.data.where("y >= 100").localCheckpoint()
    qbeast(part, "overwrite", replaceWhere="y < 100").save(path)
    assert table.checksum() == checksum(kept.unionByName(part))
    assert check_placement(table) >= part.count()
    qbeast(rows.select("id", "s"), "overwrite", "id,s", overwriteSchema="true").save(path)
    indexed(table, rows.select("id", "s"))


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"columns": None}, "USE_NO_INDEX_COLUMNS"),
        ({"columns": "x,zz"}, "USE_UNKNOWN_COLUMN"),
        ({"columns": "x:hashed"}, "USE_UNKNOWN_TRANSFORMATION"),
        ({"columnStats": "[1]"}, "USE_INVALID_ARGUMENT"),
        ({"cubeSize": "abc"}, "USE_INVALID_ARGUMENT"),
        ({"cubSize": "1000"}, "USE_UNKNOWN_OPTION"),
        ({"mergeSchem": "true"}, "USE_UNKNOWN_OPTION"),
    ],
)
def test_bad_options_are_refused_before_anything_is_touched(spark, by_path, options, code):
    _, path = by_path
    with pytest.raises(AnalysisException, match=code):
        qbeast(numbers(spark, 10), **options).save(path)
    with pytest.raises(AnalysisException, match=r"PATH_NOT_FOUND|doesn't exist"):
        spark.read.format("delta").load(path)


@pytest.mark.slow
def test_an_append_cannot_name_other_columns(spark, by_path):
    table, path = by_path
    qbeast(numbers(spark, 10)).save(path)
    with pytest.raises(AnalysisException, match=r"USE_INVALID_ARGUMENT.*columnsToIndex"):
        qbeast(numbers(spark, 10), "append", "s").save(path)
    qbeast(numbers(spark, 10, start=10), "append", "X, y:linear").save(path)
    assert table.version == 1
    indexed(table, numbers(spark, 20))


def index_properties(spark, table):
    return {r.key: r.value for r in spark.sql(f"SHOW TBLPROPERTIES {table}").collect() if r.key.startswith("use.")}


def test_a_table_that_is_replaced_at_its_place_has_the_index_of_the_statement(spark, name, tmp_path):
    table = name("replaced")
    create = f"CREATE OR REPLACE TABLE {table} (id BIGINT, x INT) USING qbeast LOCATION '{tmp_path}/replaced'"
    for column in ("id", "id", "x"):
        spark.sql(f"{create} OPTIONS (columnsToIndex '{column}')")
        assert index_properties(spark, table) == {"use.index.columns": column, "use.index.onWrite": "true"}


def test_a_table_at_a_path_is_not_replaced_and_keeps_its_index(spark, tmp_path):
    table = f"delta.`{tmp_path}/kept`"
    create = f"CREATE OR REPLACE TABLE {table} (id BIGINT) USING qbeast OPTIONS (columnsToIndex 'id')"
    spark.sql(create)
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('use.index.cubeSize' = '1000')")
    before = index_properties(spark, table)
    spark.sql(create)
    assert index_properties(spark, table) == before


def test_sql_statements(spark, name, set_conf):
    table = DeltaTable(spark, name("written"))
    numbers(spark, 3000).createOrReplaceTempView("source_rows")
    options = "OPTIONS (columnsToIndex 'x,y', cubeSize '1000')"
    table.sql(f"CREATE TABLE {{t}} ({NUMBERS}) USING qbeast {options}")
    assert table.version == 0
    table.sql("INSERT INTO {t} SELECT * FROM source_rows")
    indexed(table, spark.table("source_rows"))
    table.sql("INSERT OVERWRITE {t} SELECT * FROM source_rows WHERE id < 500")
    indexed(table, spark.table("source_rows").where("id < 500"))
    assert table.version == 2
    table.sql(f"CREATE OR REPLACE TABLE {{t}} USING qbeast {options} AS SELECT * FROM source_rows")
    assert table.version == 3
    assert "AS SELECT" in table.commit_info(3)["operation"]
    assert table.commit_info(3)["operationMetrics"]["numOutputRows"] == "3000"
    indexed(table, spark.table("source_rows"))
    table.sql("UPDATE {t} SET y = y + 1 WHERE id = 7")
    table.sql("DELETE FROM {t} WHERE id = 8")
    table.sql("MERGE INTO {t} w USING source_rows r ON w.id = r.id WHEN NOT MATCHED THEN INSERT *")
    changed = spark.table("source_rows").withColumn("y", F.expr("IF(id = 7, y + 1, y)"))
    assert table.checksum() == checksum(changed)
    described = {r.col_name: r.data_type for r in table.sql("DESCRIBE EXTENDED {t}")}
    assert described["Provider"] == "delta"
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.onWrite' = 'false')")
    table.sql("INSERT INTO {t} SELECT * FROM source_rows LIMIT 3")
    assert [f.rows for f in table.unindexed][-1:] == [3]
    # Without statistics, Spark's file without rows stays in the commit.
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.onWrite' = 'true')")
    before = table.checksum()
    set_conf("spark.databricks.delta.stats.collect", "false")
    table.sql("INSERT INTO {t} SELECT * FROM source_rows WHERE id < 0")
    assert table.checksum() == before


@pytest.mark.slow
def test_a_table_that_merely_opted_in_takes_plain_appends(spark, new_table):
    table = new_table(NUMBERS, index="x,y")
    table.sql("INSERT INTO {t} VALUES (1, 0.5, 3, 'a')")
    assert len(table.unindexed) == 1
    qbeast(numbers(spark, 10), "append").saveAsTable(table.name)
    table.sql("INSERT INTO {t} VALUES (2, 0.5, 3, 'a')")
    assert [f.rows for f in table.unindexed] == [1]
    assert check_placement(table) == 11


@pytest.mark.slow
def test_who_names_the_format_means_it(spark, new_table):
    table, rows = new_table(NUMBERS), numbers(spark, 10)
    before = table.state()
    for write in (
        lambda: qbeast(rows, "append", None).saveAsTable(table.name),
        lambda: qbeast(rows, "append", None).insertInto(table.name),
        lambda: qbeast(rows, "overwrite", None).saveAsTable(table.name),
        lambda: qbeast(rows, "append", None).save(str(table.path)),
    ):
        with pytest.raises(AnalysisException, match=r"USE_NO_INDEX_COLUMNS.*columnsToIndex.*use\.index\.columns"):
            write()
    assert table.state() == before
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('use.index.columns' = 'x,y', 'use.index.onWrite' = 'false')")
    qbeast(rows, "append", None).saveAsTable(table.name)
    qbeast(rows, "append", None).insertInto(table.name)
    qbeast(rows, "append", None).saveAsTable(f"delta.`{table.path}`")
    assert not table.unindexed
    # The format is that of one write: neither the table nor the thread remembers it.
    with pytest.raises(AnalysisException):
        qbeast(rows, "append", None).saveAsTable("default..no_name")
    table.append(rows)
    rows.write.insertInto(table.name)
    table.sql("INSERT INTO {t} VALUES (1, 0.5, 3, 'a')")
    assert sum(f.rows for f in table.unindexed) == 21
    assert check_placement(table) == 30
    qbeast(rows, "overwrite", None).insertInto(table.name)
    indexed(table, rows)


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize("way", ["overwritePartitions", "insertInto", "append"])
def test_a_write_that_names_columns_indexes_an_existing_table(spark, new_table, set_conf, way):
    table, rows = new_table(NUMBERS, tail="PARTITIONED BY (s)"), numbers(spark, 10)
    if way == "insertInto":
        set_conf("spark.sql.sources.partitionOverwriteMode", "dynamic")
        # Spark drops the options of an insertInto that names no format.
        rows.write.format("delta").option("columnsToIndex", "x").insertInto(table.name, overwrite=True)
    else:
        getattr(rows.writeTo(table.name).option("COLUMNSTOINDEX", "x"), way)()
    indexed(table, rows)
    assert (
        index_properties(spark, table.name).items() >= {"use.index.columns": "x", "use.index.onWrite": "true"}.items()
    )


def test_writes_by_delta_that_would_ignore_columns_are_refused(spark, new_table, tmp_path):
    table, rows = new_table(NUMBERS).append(numbers(spark, 10)), numbers(spark, 10)
    before = table.state()
    rows.write.format("delta").save(str(tmp_path / "source"))
    stream = spark.readStream.format("delta").load(str(tmp_path / "source")).writeStream.format("delta")
    stream = stream.option("columnsToIndex", "x").option("checkpointLocation", str(tmp_path / "checkpoint"))
    for write in (
        lambda: rows.write.format("delta").mode("overwrite").option("columnsToIndex", "x").saveAsTable(table.name),
        lambda: rows.writeTo(table.name).using("delta").option("columnsToIndex", "x").createOrReplace(),
        lambda: stream.toTable(table.name),
    ):
        with pytest.raises(AnalysisException, match=r"USE_NOT_SUPPORTED.*columnsToIndex.*format qbeast"):
            write()
    assert table.state() == before


def test_inserts_by_path_name_the_format(spark, new_table):
    table = new_table(NUMBERS, index="x")
    insert = "INSERT INTO {}.`{}` VALUES (1, 0.5, 3, 'a')"
    spark.sql(insert.format("delta", table.path))
    assert len(table.unindexed) == 1
    spark.sql(insert.format("qbeast", table.path))
    assert len(table.unindexed) == 1
    spark.sql(insert.format("delta", table.path))
    assert len(table.unindexed) == 1  # the property decides
    assert check_placement(table) == 2


def test_a_plain_table_is_not_registered_as_one_that_indexes(spark, new_table, name):
    plain, create = new_table(NUMBERS), f"CREATE TABLE {name('registered')} USING"
    for clause in ("", "OPTIONS (columnsToIndex 'x')"):
        with pytest.raises(AnalysisException, match=r"USE_NOT_SUPPORTED.*USING delta.*use\.index\.onWrite"):
            spark.sql(f"{create} qbeast {clause} LOCATION '{plain.path}'")
    spark.sql(f"ALTER TABLE {plain.name} SET TBLPROPERTIES ('use.index.columns' = 'x', 'use.index.onWrite' = 'true')")
    spark.sql(f"{create} qbeast OPTIONS (columnsToIndex 'x') LOCATION '{plain.path}'")
    assert index_properties(spark, "default.registered") == index_properties(spark, plain.name)


def test_a_table_of_another_writer_of_the_format_is_registered(spark, new_table, name):
    """It has a revision, and no property of ours that says so."""
    other = new_table(NUMBERS, index="x,y")
    other.append(numbers(spark, 20)).index()
    spark.sql(f"CREATE TABLE {name('registered')} USING qbeast LOCATION '{other.path}'")
    assert spark.table("registered").count() == 20


@pytest.mark.parametrize("source", ["delta", "parquet"])
def test_a_table_like_another_one_is_made_using_qbeast(spark, name, source):
    like, made = name("like_source"), name("like_made")
    spark.sql(f"CREATE TABLE {like} (x INT) USING {source}")
    spark.sql(f"CREATE TABLE {made} LIKE {like} USING qbeast TBLPROPERTIES ('use.index.columns' = 'x')")
    assert index_properties(spark, made) == {"use.index.columns": "x", "use.index.onWrite": "true"}
    spark.sql(f"INSERT INTO {made} VALUES (1)")
    assert not DeltaTable(spark, made).unindexed


def test_a_table_that_is_made_using_qbeast_learns_its_columns_with_the_first_write_that_names_them(spark, name):
    made, like = name("learns"), name("learns_like")
    spark.sql(f"CREATE TABLE {made} (x INT) USING qbeast TBLPROPERTIES ('use.index.onWrite' = 'true')")
    spark.sql(f"CREATE TABLE {like} LIKE {made} USING qbeast")
    with pytest.raises(AnalysisException, match=r"USE_NO_INDEX_COLUMNS.*columnsToIndex is missing"):
        spark.sql(f"INSERT INTO {like} VALUES (1)")
    spark.range(3).selectExpr("CAST(id AS INT) AS x").writeTo(like).option("columnsToIndex", "x").append()
    spark.sql(f"INSERT INTO {like} VALUES (7)")
    assert spark.table(like).count() == 4
    assert not DeltaTable(spark, like).unindexed


def test_an_unknown_option_is_refused_by_every_writer(spark, by_path, new_table, tmp_path):
    table, rows = new_table(NUMBERS, index="x,y", properties={"use.index.onWrite": "true"}), numbers(spark, 10)
    before, typo = table.state(), {"cubSize": "7"}
    rows.write.format("delta").save(str(tmp_path / "source"))
    stream = spark.readStream.format("delta").load(str(tmp_path / "source")).writeStream.format("qbeast")
    stream = stream.options(**typo).option("checkpointLocation", str(tmp_path / "checkpoint"))
    for write in (
        lambda: qbeast(rows, "append", **typo).save(by_path[1]),
        lambda: qbeast(rows, "append", **typo).saveAsTable(table.name),
        lambda: qbeast(rows, "overwrite", **typo).saveAsTable(table.name),
        lambda: rows.writeTo(table.name).options(**typo).append(),
        lambda: rows.writeTo(table.name).using("qbeast").options(**typo).createOrReplace(),
        lambda: stream.toTable(table.name),
        lambda: stream.start(by_path[1]),
        lambda: spark.sql("CREATE TABLE default.refused (x INT) USING qbeast OPTIONS (cubSize '7')"),
    ):
        with pytest.raises(AnalysisException, match=r"(?i)USE_UNKNOWN_OPTION.*'cubsize'.*Did you mean cubeSize"):
            write()
    assert table.state() == before


@pytest.mark.slow
def test_dataframe_writers(spark, name):
    table, rows = DeltaTable(spark, name("writers")), numbers(spark, 400)
    qbeast(rows).saveAsTable(table.name)
    indexed(table, rows)
    qbeast(rows, "append").saveAsTable(table.name)
    rows.write.insertInto(table.name)
    rows.writeTo(table.name).append()
    indexed(table, rows.union(rows).union(rows).union(rows))
    qbeast(rows, "overwrite").saveAsTable(table.name)
    indexed(table, rows)
    rows.where("y < 500").writeTo(table.name).overwrite(F.col("y") < 500)
    indexed(table, rows)
    writer = rows.writeTo(table.name).using("qbeast").option("columnsToIndex", "y")
    writer.createOrReplace()
    indexed(table, rows)
    assert table.revisions[1].columns == ("y",)


@pytest.mark.slow
def test_partitions(spark, name, set_conf):
    table = DeltaTable(spark, name("parted"))
    table.sql(f"CREATE TABLE {{t}} ({NUMBERS}) USING qbeast OPTIONS (columnsToIndex 'x,y') PARTITIONED BY (s)")
    rows = numbers(spark, 300).withColumn("s", F.concat(F.lit("p/"), F.col("id") % 3))
    rows.write.insertInto(table.name)
    indexed(table, rows)
    set_conf("spark.sql.sources.partitionOverwriteMode", "dynamic")
    part = numbers(spark, 20, start=300).withColumn("s", F.lit("p/1"))
    part.write.insertInto(table.name, overwrite=True)
    indexed(table, rows.where("s <> 'p/1'").union(part))
    assert len(table.removed(table.version)) == 1
    part.writeTo(table.name).overwritePartitions()
    indexed(table, rows.where("s <> 'p/1'").union(part))


@pytest.mark.slow
def test_an_overwrite_of_partitions_may_leave_out_an_indexed_column(spark, name, set_conf):
    set_conf("spark.sql.sources.partitionOverwriteMode", "dynamic")
    table = DeltaTable(spark, name("left_out"))
    table.sql(
        "CREATE TABLE {t} (a BIGINT, b BIGINT, c BIGINT DEFAULT 7, p STRING) "
        "USING qbeast OPTIONS (columnsToIndex 'a,b,c') PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    table.sql("INSERT INTO {t} SELECT id, id, id, concat('p', id % 2) FROM range(4)")
    table.sql("INSERT OVERWRITE {t} (p, a) SELECT 'p1', id + 10 FROM range(2)")
    kept = [(0, 0, 0, "p0"), (2, 2, 2, "p0")]
    assert sorted(map(tuple, table.data.collect())) == [*kept, (10, None, 7, "p1"), (11, None, 7, "p1")]
    assert not table.unindexed
    assert not problems(table)


@pytest.mark.slow
@pytest.mark.parametrize("mapping", ["name", "none"])
def test_an_append_may_leave_out_an_indexed_field(spark, name, mapping):
    table = DeltaTable(spark, name("left_out_field"))
    table.sql(
        "CREATE TABLE {t} (id BIGINT, s STRUCT<x: BIGINT, `d-t`: STRUCT<y: BIGINT, z: BIGINT>>) "
        "USING qbeast OPTIONS (columnsToIndex 'id,s.`d-t`.y') "
        f"TBLPROPERTIES ('delta.columnMapping.mode' = '{mapping}', 'use.index.targetFileBytes' = '64kb')"
    )
    table.sql("INSERT INTO {t} SELECT id, struct(id, struct(id, id)) FROM range(3)")
    # As few rows as are written in one file as they come, and as many as are measured.
    for first, count in ((10, 2), (100, 3_000)):
        for written in ("named_struct('x', id)", "named_struct('X', id, 'D-T', named_struct('z', id))"):
            rows = spark.range(first, first + count).selectExpr("id", f"{written} s")
            rows.write.format("delta").mode("append").saveAsTable(table.name)
    rows = table.data.selectExpr("count(*)", "count(s.x)", "count(s.`d-t`.y)", "count(s.`d-t`.z)").collect()
    assert [tuple(row) for row in rows] == [(6_007, 6_007, 3, 3_005)]
    assert not table.unindexed
    assert not problems(table)


@pytest.mark.slow
def test_an_indexed_column_may_be_char(spark, name):
    table = DeltaTable(spark, name("with_char"))
    table.sql("CREATE TABLE {t} (id BIGINT, c CHAR(5)) USING qbeast OPTIONS (columnsToIndex 'id,c')")
    table.sql("INSERT INTO {t} VALUES (1, 'ab'), (2, 'abcde')")
    assert sorted(map(tuple, table.data.collect())) == [(1, "ab   "), (2, "abcde")]
    assert not table.unindexed
    assert not problems(table)


@pytest.mark.slow
def test_features_of_delta(spark, name):
    table = DeltaTable(spark, name("features"))
    table.sql(
        "CREATE TABLE {t} (n BIGINT GENERATED ALWAYS AS IDENTITY, x DOUBLE, y INT, g INT GENERATED ALWAYS AS (y * 2)) "
        "USING qbeast OPTIONS (columnsToIndex 'x,g') TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', "
        "'delta.columnMapping.mode' = 'name', 'delta.enableRowTracking' = 'true')"
    )
    table.sql("INSERT INTO {t} (x, y) VALUES (1.0D, 1), (2.0D, 3)")
    table.sql("INSERT INTO {t} (x, y) VALUES (1.5D, 2)")
    assert sorted(tuple(r)[1:] for r in table.data.collect()) == [(1.0, 1, 2), (1.5, 2, 4), (2.0, 3, 6)]
    assert table.data.select("n").distinct().count() == 3
    assert not table.unindexed
    assert check_placement(table) == 3
    table.sql("ALTER TABLE {t} ADD CONSTRAINT small CHECK (x < 10)")
    before = table.state()
    with pytest.raises(Exception, match="small"):
        table.sql("INSERT INTO {t} (x, y) VALUES (50.0D, 2)")
    assert table.version == before[0]
    changes = spark.sql(f"SELECT _change_type FROM table_changes('{table.name}', 1)")
    assert [r[0] for r in changes.collect()] == ["insert"] * 3
    # With a change feed, Delta wants generated columns given when it replaces by other than partition columns.
    rows = spark.createDataFrame([(9.0, 1, 2)], "x double, y int, g int")
    qbeast(rows, "overwrite", None, replaceWhere="y = 1").saveAsTable(table.name)
    assert sorted(tuple(r)[1:] for r in table.data.collect()) == [(1.5, 2, 4), (2.0, 3, 6), (9.0, 1, 2)]


def test_rows_that_share_weights_are_reported(spark, by_path, caplog):
    qbeast(numbers(spark, 3000).withColumn("y", F.lit(1)), columns="y").save(by_path[1])
    assert "low cardinality: about 1 distinct weights for 3000 rows" in caplog.text


@pytest.mark.slow
def test_a_session_without_statistics(spark, by_path, set_conf):
    """Blocks are noted beside Delta's statistics; without these, the files are read back."""
    table, path = by_path
    set_conf("spark.databricks.delta.stats.collect", "false")
    qbeast(numbers(spark, 500)).save(path)
    qbeast(numbers(spark, 100, start=500), "append").save(path)
    indexed(table, numbers(spark, 600))


def test_a_failure_in_python_commits_nothing_and_leaves_no_file(spark, by_path, monkeypatch):
    table, path = by_path
    qbeast(numbers(spark, 100)).save(path)
    before = table.state()

    def fail(step):
        if step is Step.TAG:
            raise ValueError("staged")

    monkeypatch.setattr(bridge, "write_indexed", partial(write_indexed, observe=fail))
    for rows in (numbers(spark, 10, start=100), numbers(spark, 10).withColumn("y", F.col("y") + 9999)):
        with pytest.raises(AnalysisException, match="staged"):
            qbeast(rows, "append").save(path)
    assert table.state() == before
    assert table.on_disk() == table.paths


def test_an_append_that_races_with_a_new_revision_starts_again(spark, by_path, monkeypatch):
    table, path = by_path
    rows = numbers(spark, 100)
    qbeast(rows).save(path)
    outside = numbers(spark, 10, start=100).withColumn("y", F.col("y") + 5000)
    further = numbers(spark, 10, start=110).withColumn("y", F.col("y") + 90000)
    race_once(monkeypatch, lambda: qbeast(outside, "append").save(path))
    qbeast(further, "append").save(path)
    indexed(table, rows.union(outside).union(further))
    assert sorted(table.revisions) == [0, 1, 2, 3]
    assert table.on_disk() == table.paths


NEW = f"TABLE {{t}} ({NUMBERS}) USING delta TBLPROPERTIES ('use.index.columns' = 'x,y')"


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize(
    ("changes", "rows"),
    [
        ([f"CREATE OR REPLACE {NEW}"], 0),
        (["DROP TABLE {t}", f"CREATE {NEW}"], 0),
        (["ALTER TABLE {t} ADD COLUMNS (z INT)"], 1),
    ],
    ids=["replaced", "dropped and created", "other columns"],
)
def test_an_append_that_races_with_another_schema_or_table_fails(spark, new_table, monkeypatch, changes, rows):
    """As in Delta: its columns and defaults are those of the table that it was planned for."""
    table = new_table(NUMBERS, index="x,y", properties={"use.index.onWrite": "true"})
    table.sql("INSERT INTO {t} VALUES (1, 0.5, 3, 'a')")
    race_once(monkeypatch, lambda: [table.sql(change) for change in changes])
    with pytest.raises(Exception, match=r"METADATA_CHANGED|dropped or replaced"):
        numbers(spark, 10).write.insertInto(table.name)
    assert table.data.count() == rows
    assert table.on_disk() >= table.paths


@pytest.mark.slow
def test_an_append_that_races_with_new_identities_starts_again(spark, new_table, monkeypatch):
    columns = "n BIGINT GENERATED BY DEFAULT AS IDENTITY, y INT"
    table = new_table(columns, index="y", properties={"use.index.onWrite": "true"})
    race_once(monkeypatch, lambda: table.sql("INSERT INTO {t} (y) VALUES (1)"))
    table.sql("INSERT INTO {t} (y) VALUES (2)")
    assert sorted(row.y for row in table.data.collect()) == [1, 2]
    assert table.data.select("n").distinct().count() == 2


def test_an_error_after_the_commit_does_not_fail_the_write(spark, by_path, monkeypatch):
    """Whoever is told that a write failed repeats it."""

    def fail(*_):
        raise ValueError("staged")

    monkeypatch.setattr(type(bridge.application().trees), "committed", fail)
    table, path = by_path
    qbeast(numbers(spark, 10)).save(path)
    qbeast(numbers(spark, 10, start=10), "append").save(path)
    indexed(table, numbers(spark, 20))


def test_rows_that_a_write_caches_serve_no_other_query(spark, by_path, tmp_path, monkeypatch):
    """Spark takes cached rows for any equal query, also in other sessions and for later versions."""
    source, other = str(tmp_path / "source"), spark.newSession()
    row = pa.table({"y": pa.array([1], pa.int32())})
    write_deltalake(source, row)
    query = f"SELECT y, count(*) AS n FROM delta.`{source}` GROUP BY y"
    found = []

    def read():
        write_deltalake(source, row, mode="append")
        found.append(other.sql(query).cache())
        found.append(found[0].agg(F.sum("n")).first()[0])

    race_once(monkeypatch, read, Step.PLACE)
    qbeast(spark.sql(query), columns="y").save(by_path[1])
    kept, rows = found
    assert rows == 2
    assert kept.storageLevel.useMemory
    kept.unpersist()
    assert [row.n for row in by_path[0].data.collect()] == [1]


def test_rows_whose_order_is_known_by_a_column_that_they_lack(spark, new_table):
    table = new_table("id BIGINT, x DOUBLE", index="id", properties={"use.index.onWrite": "true"})
    table.sql("INSERT INTO {t} SELECT id, rand(7) FROM range(10)")
    assert table.data.count() == 10


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize("kind", ["rows", "groups", "cached"])
def test_metrics_that_are_observed_arrive(spark, by_path, kind):
    observation, rows = Observation("written"), numbers(spark, 1_000)
    if kind == "groups":
        rows = rows.groupBy("x").agg(F.max("y").alias("y"))
    observed = rows.observe(observation, F.count(F.lit(1)).alias("rows"), F.sum("y").alias("sum"))
    qbeast(observed.cache() if kind == "cached" else observed).save(by_path[1])
    observed.unpersist()
    expected = rows.agg(F.count(F.lit(1)).alias("rows"), F.sum("y").alias("sum")).first().asDict()
    assert metrics(observation) == expected
    assert by_path[0].data.count() == expected["rows"]


def metrics(observation):
    """What was observed, or None: Spark waits for it without end."""
    found = []
    thread = threading.Thread(target=lambda: found.append(observation.get), daemon=True)
    thread.start()
    thread.join(60)
    return found[0] if found else None


def test_an_idempotent_append_keeps_its_number(spark, by_path, monkeypatch, set_conf):
    table, path = by_path
    qbeast(numbers(spark, 100)).save(path)
    writes = "spark.databricks.delta.write"
    set_conf(f"{writes}.txnVersion.autoReset.enabled", "true")
    set_conf(f"{writes}.txnAppId", "nightly")
    set_conf(f"{writes}.txnVersion", "7")
    race_once(monkeypatch, lambda: table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('team' = 'x')"))
    qbeast(numbers(spark, 10, start=50), "append").save(path)
    (number,) = [action["txn"] for action in table.actions(table.version) if "txn" in action]
    assert (number["appId"], number["version"]) == ("nightly", 7)
    assert table.data.count() == 110


def test_an_append_that_races_with_an_overwrite_is_not_read_by_the_new_revision(spark, by_path, monkeypatch):
    """The space of the new revision puts the same values elsewhere, where a filter would not look for them."""
    table, path = by_path
    qbeast(numbers(spark, 100)).save(path)
    few, wide = numbers(spark, 10, start=50), numbers(spark, 100).withColumn("y", F.col("y") * 1_000_000)
    race_once(monkeypatch, lambda: qbeast(wide, "overwrite").save(path))
    qbeast(few, "append").save(path)
    assert sorted(table.revisions) == [0, 2]
    # The append names a revision that is gone, so that its file counts as unindexed.
    assert sorted({file.revision for file in table.files}) == [1, 2]
    assert table.checksum() == checksum(wide.union(few))
    assert table.on_disk() >= table.paths


@pytest.mark.slow
def test_a_race_without_end_is_a_typed_error(spark, by_path, monkeypatch):
    table, path = by_path
    qbeast(numbers(spark, 100)).save(path)
    races = []

    def race(step):
        if step is Step.TAG:
            races.append(step)
            elsewhere(lambda: table.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('n' = '{len(races)}')"))

    monkeypatch.setattr(bridge, "write_indexed", partial(write_indexed, observe=race))
    with pytest.raises(AnalysisException, match="USE_CONCURRENT_CHANGE"):
        qbeast(numbers(spark, 10, start=100), "append").save(path)
    assert len(races) == 5
    assert table.data.count() == 100
    assert table.on_disk() == table.paths
