"""Streams into indexed tables: each batch once, whatever was replayed."""

import pytest
from placement import check_placement
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F
from tables import DeltaTable, checksum, numbers


@pytest.fixture
def source(spark, tmp_path):
    path = str(tmp_path / "source")
    numbers(spark, 300).write.format("delta").save(path)
    return path


def start(spark, source, checkpoint):
    stream = spark.readStream.format("qbeast").load(source).writeStream.format("qbeast")
    stream = stream.option("columnsToIndex", "x,y").option("checkpointLocation", str(checkpoint))
    return stream.trigger(availableNow=True)


def test_a_stream_by_path_is_restarted_and_replayed(spark, source, tmp_path):
    path, checkpoint = str(tmp_path / "target"), tmp_path / "checkpoint"
    table = DeltaTable(spark, f"delta.`{path}`")
    start(spark, source, checkpoint).start(path).awaitTermination()
    numbers(spark, 100, start=300).write.format("delta").mode("append").save(source)
    start(spark, source, checkpoint).start(path).awaitTermination()
    version = table.version
    assert table.commit_info(version)["operation"] == "STREAMING UPDATE"
    # The last batch looks as if the query had died between the table's commit and its own.
    commits = checkpoint / "commits"
    last = max((f.name for f in commits.iterdir() if f.name.isdigit()), key=int)
    (commits / last).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)
    start(spark, source, checkpoint).start(path).awaitTermination()
    assert table.version == version
    assert table.checksum() == checksum(numbers(spark, 400))
    assert not table.unindexed
    assert check_placement(table) == 400


@pytest.mark.slow
def test_a_stream_to_a_table(spark, source, tmp_path):
    name = "default.streamed"
    try:
        spark.sql(
            f"CREATE TABLE {name} (id BIGINT, x DOUBLE, y BIGINT, s STRING) USING qbeast OPTIONS (columnsToIndex 'x,y')"
        )
        start(spark, source, tmp_path / "checkpoint").toTable(name).awaitTermination()
        table = DeltaTable(spark, name)
        assert table.checksum() == checksum(numbers(spark, 300).withColumn("y", F.col("y").cast("bigint")))
        assert not table.unindexed
        assert check_placement(table) == 300
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.mark.slow
def test_a_stream_makes_its_table(spark, source, tmp_path):
    name = "default.streamed_new"
    try:
        start(spark, source, tmp_path / "checkpoint").toTable(name).awaitTermination()
        assert not DeltaTable(spark, name).unindexed
        assert check_placement(DeltaTable(spark, name)) == 300
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


def _stream(rows, table, tmp_path, mode="append", change=lambda rows: rows, **options):
    """Streams rows into a table, changed on the way."""
    source = str(tmp_path / "rows")
    rows.coalesce(1).write.mode("append").parquet(source)
    read = change(rows.sparkSession.readStream.schema(rows.schema).parquet(source))
    stream = read.writeStream.format("qbeast").outputMode(mode).options(**options)
    stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    stream.toTable(table.name).awaitTermination()


WRITTEN = {"use.index.onWrite": "true"}


def test_a_stream_widens_a_column_as_delta_does(spark, new_table, tmp_path, set_conf):
    set_conf("spark.databricks.delta.typeWidening.allowAutomaticWidening", "ALWAYS")
    table = new_table("id BIGINT, v INT", index="id", properties={**WRITTEN, "delta.enableTypeWidening": "true"})
    table.sql("INSERT INTO {t} VALUES (100, 100)")
    rows = spark.sql("SELECT id, CAST(id + 0.7 AS DOUBLE) AS v FROM range(3)")
    _stream(rows, table, tmp_path, mergeSchema="true")
    assert sorted(map(tuple, table.data.collect())) == [(0, 0.7), (1, 1.7), (2, 2.7), (100, 100.0)]
    assert not table.unindexed


@pytest.mark.parametrize(
    ("value", "condition"), [("5000000000L", "CAST_OVERFLOW_IN_TABLE_INSERT"), ("'x1'", "CAST_INVALID_INPUT")]
)
def test_a_value_that_does_not_fit_fails_the_batch(spark, new_table, tmp_path, set_conf, value, condition):
    """Outside of ANSI mode, too, where a plain cast gives another number or null."""
    set_conf("spark.sql.ansi.enabled", "false")
    table = new_table("id BIGINT, v INT", index="id", properties=WRITTEN)
    with pytest.raises(StreamingQueryException, match=condition):
        _stream(spark.sql(f"SELECT 1L AS id, {value} AS v"), table, tmp_path)
    assert table.version == 0


@pytest.mark.slow
def test_fields_of_structs_are_cast_by_name(spark, new_table, tmp_path):
    table = new_table("id BIGINT, st STRUCT<a: BIGINT, b: INT>", index="id", properties=WRITTEN)
    _stream(spark.sql("SELECT 1L AS ID, named_struct('b', 2L, 'A', 1) AS st"), table, tmp_path)
    assert table.data.select("id", "st.a", "st.b").collect() == [(1, 1, 2)]


@pytest.mark.slow
def test_a_complete_result_replaces_all_partitions(spark, new_table, tmp_path, set_conf):
    set_conf("spark.sql.sources.partitionOverwriteMode", "dynamic")
    table = new_table("k BIGINT, n BIGINT", index="k", properties=WRITTEN, tail="PARTITIONED BY (n)")
    rows = spark.sql("SELECT id % 3 AS k FROM range(6)")
    for count in (2, 4):
        _stream(rows, table, tmp_path, "complete", lambda read: read.groupBy("k").agg(F.count("*").alias("n")))
        assert sorted(map(tuple, table.data.collect())) == [(k, count) for k in range(3)]
    assert not table.unindexed


def test_rows_may_leave_out_an_indexed_column(spark, new_table, tmp_path):
    table = new_table("a BIGINT, b BIGINT", index="a,b", properties=WRITTEN)
    _stream(spark.sql("SELECT id AS a FROM range(3)"), table, tmp_path)
    assert sorted(map(tuple, table.data.collect())) == [(a, None) for a in range(3)]
    assert not table.unindexed
