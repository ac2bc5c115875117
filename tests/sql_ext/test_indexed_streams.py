"""Streams into indexed tables: each batch once, whatever was replayed."""

import pytest
from placement import check_placement
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
