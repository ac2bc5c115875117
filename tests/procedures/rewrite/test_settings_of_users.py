"""Settings of a user's session that decide how values are read or stored: a rewrite changes no value for others."""

from datetime import date

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.errors import AnalysisException
from tables import checksum


def converted(spark, folder):
    """Files of a Parquet table whose names of columns differ by case."""
    for number, names in enumerate([("id", "val")] * 2 + [("ID", "VAL")] * 2):
        rows = spark.range(5 * number, 5 * number + 5, 1, 1).selectExpr(f"id AS {names[0]}", f"id * 10 AS {names[1]}")
        rows.write.mode("append").parquet(folder)
    spark.sql(f"CONVERT TO DELTA parquet.`{folder}`")


def structs(spark, folder):
    """Structs of which the files have no field any more."""
    spark.sql(
        f"CREATE TABLE delta.`{folder}` (id INT, s STRUCT<a: INT>) USING delta "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    for number in range(4):
        spark.sql(f"INSERT INTO delta.`{folder}` SELECT {number}, named_struct('a', 1)")
    spark.sql(f"ALTER TABLE delta.`{folder}` ADD COLUMN s.b INT")
    spark.sql(f"ALTER TABLE delta.`{folder}` DROP COLUMN s.a")


def partitions(spark, folder):
    """Partitions by a point in time."""
    spark.sql(f"CREATE TABLE delta.`{folder}` (id INT, ts TIMESTAMP) USING delta PARTITIONED BY (ts)")
    for number in range(4):
        spark.sql(f"INSERT INTO delta.`{folder}` VALUES ({number}, TIMESTAMP '2024-01-01 12:00:00Z')")


def times(spark, folder):
    """An indexed column of type TIMESTAMP."""
    spark.sql(
        f"CREATE TABLE delta.`{folder}` (id INT, ts TIMESTAMP) USING delta TBLPROPERTIES ('use.index.columns' = 'ts')"
    )
    for number in range(4):
        spark.sql(f"INSERT INTO delta.`{folder}` VALUES ({number}, TIMESTAMP '2024-01-01 12:00:00Z')")


@pytest.mark.parametrize(
    ("make", "confs"),
    [
        (converted, {"spark.sql.caseSensitive": "true"}),
        pytest.param(
            structs, {"spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": "true"}, marks=pytest.mark.slow
        ),
        pytest.param(
            partitions,
            {
                "spark.databricks.delta.write.utcTimestampPartitionValues": "false",
                "spark.sql.session.timeZone": "America/New_York",
            },
            marks=pytest.mark.slow,
        ),
        (times, {"spark.sql.timestampType": "TIMESTAMP_NTZ"}),
    ],
)
def test_a_rewrite_changes_no_value(spark, tmp_path, set_conf, make, confs):
    make(spark, f"{tmp_path}/t")
    before = checksum(spark.read.format("delta").load(f"{tmp_path}/t"))
    other = spark.newSession()
    for key, value in confs.items():
        other.conf.set(key, value)
    strategy = "UnindexedFiles" if make is times else "SizeTieredClustering"
    (row, *_) = other.sql(f"CALL use.optimize('{tmp_path}/t', strategy => '{strategy}')").collect()
    assert row.state == "committed"
    assert checksum(spark.read.format("delta").load(f"{tmp_path}/t")) == before


@pytest.mark.slow
def test_times_in_an_hour_that_a_zone_repeats_keep_their_partitions(spark, tmp_path):
    """The name of a folder is the time in the zone of the session, which does not tell these hours apart."""
    spark.sql(f"CREATE TABLE delta.`{tmp_path}/t` (id INT, ts TIMESTAMP) USING delta PARTITIONED BY (ts)")
    for number in range(8):
        time = f"TIMESTAMP '2024-11-03 0{5 + number % 2}:30:00Z'"
        spark.sql(f"INSERT INTO delta.`{tmp_path}/t` VALUES ({number}, {time})")
    before = checksum(spark.read.format("delta").load(f"{tmp_path}/t"))
    other = spark.newSession()
    call = f"CALL use.optimize('{tmp_path}/t', strategy => 'SizeTieredClustering')"
    other.conf.set("spark.sql.session.timeZone", "America/New_York")
    with pytest.raises(AnalysisException, match=r"\[USE_ROWS_CHANGED\] .* SET TIME ZONE 'UTC'"):
        other.sql(call)
    assert checksum(spark.read.format("delta").load(f"{tmp_path}/t")) == before
    other.conf.set("spark.sql.session.timeZone", "UTC")
    assert "committed" in {row.state for row in other.sql(call).collect()}
    assert checksum(spark.read.format("delta").load(f"{tmp_path}/t")) == before


def test_dates_of_an_unknown_calendar_are_not_rewritten_as_those_of_the_older_one(spark, tmp_path):
    for number in range(4):
        write_deltalake(f"{tmp_path}/t", pa.table({"id": [number], "day": [date(1500, 1, 1)]}), mode="append")
    before = checksum(spark.read.format("delta").load(f"{tmp_path}/t"))
    other = spark.newSession()
    other.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "legacy")
    with pytest.raises(AnalysisException, match="TASK_WRITE_FAILED"):
        other.sql(f"CALL use.optimize('{tmp_path}/t', strategy => 'SizeTieredClustering')").collect()
    assert checksum(spark.read.format("delta").load(f"{tmp_path}/t")) == before
