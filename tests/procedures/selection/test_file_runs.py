"""Rewrites that keep rows in their order: clustering of small files and compaction of deletes, with Spark."""

import json

import pytest
from placement import check_placement
from pyspark.sql import functions as F
from staging import At, settings_of
from tables import NUMBERS, numbers

import sql_ext
from procedures.declare.runs import Run
from procedures.layout.step import Step
from procedures.loop.table_optimizer import optimize

VECTORS = {"delta.enableDeletionVectors": "true"}
CLUSTERING = "SizeTieredClustering"
# Long columns of mixed types, partitions whose folders need escapes, and row ids.
FEATURES = {**VECTORS, "delta.enableRowTracking": "true", "delta.columnMapping.mode": "name"}


def _ids_in_file_order(table):
    """The ids of each file, in the order of its rows."""
    rows = table.data.select("id", F.col("_metadata.file_path").alias("file"), F.col("_metadata.row_index").alias("at"))
    files = {}
    for row in rows.orderBy("file", "at").collect():
        files.setdefault(row.file, []).append(row.id)
    return list(files.values())


def _small_files(spark, table, count, rows=50, start=0):
    """Appends files whose rows descend, so that any sort would show."""
    for number in range(start, start + count):
        data = numbers(spark, rows, start=number * rows, partitions=1)
        table.append(data.withColumn("p", F.lit("ä/b 50%")).sortWithinPartitions(F.desc("id")))
    return table


def _states(report):
    return [(r.strategy, r.state) for r in report]


@pytest.mark.slow
def test_small_files_become_one_in_their_order(spark, new_table):
    table = new_table(f"{NUMBERS}, p STRING", properties=FEATURES, tail="PARTITIONED BY (p)")
    _small_files(spark, table, 5)
    before = table.checksum(), table.data.select("id", "_metadata.row_id").orderBy("id").collect()
    ids = [number for of_file in range(5) for number in reversed(range(of_file * 50, of_file * 50 + 50))]
    version = table.version
    times = [file.modification_time for file in table.files]
    report = table.optimize(strategy=CLUSTERING)
    assert _states(report) == [(CLUSTERING, "committed")]
    assert (report[0].input_files, report[0].output_files, report[0].rows) == (5, 1, 250)
    assert _ids_in_file_order(table) == [ids]
    assert (table.checksum(), table.data.select("id", "_metadata.row_id").orderBy("id").collect()) == before
    (added,) = table.added(table.version)
    assert added["dataChange"] is False
    assert added["tags"]["use.timeRange"] == f"{min(times)},{max(times)}"
    assert json.loads(added["stats"])["numRecords"] == 250
    table.sql("DELETE FROM {t} WHERE id < 100")
    sql_ext.call(spark, "compact", table=table.name).collect()
    (compacted,) = table.added(table.version)
    assert compacted["tags"]["use.tier"] == added["tags"]["use.tier"]
    past = spark.sql(f"SELECT count(*) FROM {table.name} VERSION AS OF {version}").collect()[0][0]
    assert past == 250
    assert table.optimize(strategy=CLUSTERING)[0].reason == "NOTHING_TO_DO"


@pytest.mark.slow
def test_partitions_share_a_commit_and_unlike_files_stay(spark, new_table):
    table = new_table("id BIGINT, p INT", tail="PARTITIONED BY (p)")
    for _ in range(4):
        table.append(spark.range(20).selectExpr("id", "cast(id % 2 AS INT) p"))
    table.append(spark.range(5000).selectExpr("id", "2 p"))
    before = table.checksum()
    report = table.optimize(strategy=CLUSTERING, parallelism=2)
    assert [(r.state, r.input_files, r.output_files) for r in report] == [("committed", 8, 2)]
    assert table.checksum() == before
    assert len(table.files) == 3


@pytest.mark.slow
def test_after_a_conflict_each_partition_is_a_commit(spark, new_table):
    table = new_table("id BIGINT, p INT", properties=VECTORS, tail="PARTITIONED BY (p)")
    for _ in range(4):
        table.append(spark.range(20).selectExpr("id", "cast(id % 3 AS INT) p"))

    def others():
        table.sql("DELETE FROM {t} WHERE id = 0")

    run = Run.of(table.managed, "call", {})
    report = optimize(table.managed, settings_of(strategy=CLUSTERING), run, At(Step.COMMIT, others))
    assert [(r.state, r.reason.split("_")[0], r.input_files) for r in report] == [
        ("failed", "USE", 12),
        ("committed", "FILES", 4),
        ("committed", "FILES", 4),
    ]
    assert (table.data.count(), table.data.where("id = 0").count()) == (76, 0)


@pytest.mark.slow
def test_a_time_range_keeps_files_apart(spark, new_table):
    table = _small_files(spark, new_table(f"{NUMBERS}, p STRING"), 4)
    assert table.optimize(strategy=CLUSTERING, options={"max_time_range": "1 ms"})[0].reason == "NOTHING_TO_DO"
    table.optimize(strategy=CLUSTERING, options={"max_time_range": "1 s", "min_files": "2"})
    for file in table.files:
        times = (table.replayed()[0][file.path].get("tags") or {}).get("use.timeRange")
        if times:
            first, last = map(int, times.split(","))
            assert last - first <= 1000


@pytest.mark.slow
@pytest.mark.parametrize("step", [Step.COMMIT, Step.WRITE], ids=str)
def test_appends_stay_and_deletes_win_while_files_are_clustered(spark, new_table, step):
    table = _small_files(spark, new_table(f"{NUMBERS}, p STRING", properties=VECTORS), 4)

    def others():
        table.sql("DELETE FROM {t} WHERE id < 10")
        _small_files(spark, table, 1, start=10)

    run = Run.of(table.managed, "call", {})
    report = optimize(table.managed, settings_of(strategy=CLUSTERING), run, At(step, others))
    assert ("failed", "USE_CONCURRENT_CHANGE") in [(r.state, r.reason) for r in report]
    assert table.data.count() == 240
    assert table.data.where("id < 10").count() == 0
    assert table.data.where("id >= 500").count() == 50


@pytest.mark.slow
def test_deletes_are_compacted_in_an_indexed_table(spark, new_table):
    table = new_table(NUMBERS, index="x,y", cube_size=100, file_bytes="4kb", properties=VECTORS)
    table.append(numbers(spark, 1000)).index()
    inputs = {file.path: file.rows for file in table.files}
    assert len(inputs) > 2
    table.sql("DELETE FROM {t} WHERE id % 5 = 0")
    before, sample = table.checksum(), table.data.sample(0.3).count()
    (row,) = sql_ext.call(spark, "compact", table=table.name, dry_run=True).collect()
    assert row.state == "planned"
    assert "200 deleted rows" in row.message
    report = sql_ext.call(spark, "compact", table=table.name).collect()
    assert [(r.state, r.output_files, r.rows) for r in report] == [("committed", len(inputs), 800)]
    assert not any(file.deletion_vector for file in table.files)
    assert table.checksum() == before
    assert table.data.sample(0.3).count() == sample
    assert {file.revision for file in table.files} == {1}
    assert check_placement(table) == 800
    assert sql_ext.call(spark, "compact", table=table.name).collect()[0].reason == "NOTHING_TO_DO"


def test_only_files_with_many_deletes_are_compacted(spark, new_table):
    table = new_table("id BIGINT", properties=VECTORS)
    for first in (0, 100, 200):
        table.append(spark.range(first, first + 100))
    table.sql("DELETE FROM {t} WHERE id IN (1, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111)")
    before = table.checksum()
    # Files with deleted rows are left to compaction.
    (row,) = table.optimize(strategy=CLUSTERING, options={"min_files": "2"}, dry_run=True)
    assert row.reason == "NOTHING_TO_DO"
    (row,) = sql_ext.call(spark, "compact", table=table.name, min_deleted_ratio=0.05).collect()
    assert (row.reason, row.input_files, row.rows) == ("DELETED_ROWS_11", 1, 89)
    (row,) = sql_ext.call(spark, "compact", table=table.name, min_deleted_rows=1).collect()
    assert (row.reason, row.input_files) == ("DELETED_ROWS_1", 1)
    assert table.checksum() == before


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"min_files": "1"}, "min_files"),
        ({"tier_ratio": "1"}, "tier_ratio"),
        ({"isolate_bytes": "0"}, "isolate_bytes"),
        ({"min_bytes": "-1"}, "min_bytes"),
        ({"max_time_range": "soon"}, "max_time_range"),
    ],
    ids=str,
)
def test_options_out_of_range(options, named):
    with pytest.raises(sql_ext.UseError, match=named):
        settings_of(strategy=CLUSTERING, options=options)
