"""The files of a small table are chosen without a job, and they are those that Delta chooses in a job."""

import json
import shutil
from pathlib import Path

import pytest
from spark_jobs import at_most, jobs_started

KEY = "spark.databricks.delta.snapshotPartitions"
ROWS = """SELECT id, date_add(DATE'2026-01-01', CAST(id / 10 AS INT)) day, id + 0.5 amount,
    IF(id % 9 = 0, NULL, concat('n', lpad(id, 4, '0'))) name, timestamp_seconds(1767225600 + id) at,
    CAST(NULLIF(id % 3, 2) AS INT) part FROM range({}, {}, 1, 1)"""
CONDITIONS = [
    "true",
    "id < 10",
    "id < 0",
    "id IN (5, 45, 85)",
    "id BETWEEN 35 AND 44 AND name >= 'n07'",
    "NOT (id < 60) OR name = 'n0003'",
    "name LIKE 'n005%'",
    "name IS NULL",
    "name IS NOT NULL AND id > 70",
    "name <=> NULL",
    "day = DATE'2026-01-05'",
    "amount > 70.5",
    "at < TIMESTAMP'2026-01-01 00:00:30'",
    "part = 1",
    "part = 1 AND id > 50",
    "part IS NULL AND day > DATE'2026-01-05'",
    "cast(id AS STRING) = '7'",
    "rand(1) < 2 AND id < 10",
]


@pytest.fixture(scope="module")
def folder(spark, tmp_path_factory):
    """Tables with the same files: Delta keeps the list of `one` in one partition, and that of `two` in two."""
    folder = tmp_path_factory.mktemp("lists")
    spark.sql(f"CREATE TABLE delta.`{folder}/one` USING delta PARTITIONED BY (part) AS {ROWS.format(0, 20)}")
    for first in range(20, 100, 20):
        spark.sql(f"INSERT INTO delta.`{folder}/one` {ROWS.format(first, first + 20)}")
    spark.sql(f"ALTER TABLE delta.`{folder}/one` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    spark.sql(f"DELETE FROM delta.`{folder}/one` WHERE id IN (3, 44)")
    shutil.copytree(folder / "one", folder / "two")
    return folder


@pytest.fixture(scope="module")
def sessions(spark):
    sessions = {"one": spark.newSession(), "two": spark.newSession()}
    sessions["one"].conf.set(KEY, "1")
    sessions["two"].conf.set(KEY, "2")
    return sessions


def files_of(sessions, folder, table, query):
    """The files that a query scans, by their names."""
    frame = sessions[table].sql(query.format(f"delta.`{folder / table}`"))
    frame._jdf.queryExecution().executedPlan()
    return sorted(Path(file).name for file in frame.inputFiles())


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_files_are_those_that_a_job_would_choose(spark, sessions, folder, condition):
    query = f"SELECT * FROM {{}} WHERE {condition}"
    chosen, before = files_of(sessions, folder, "one", query), jobs_started(spark)
    assert chosen == files_of(sessions, folder, "two", query)
    assert jobs_started(spark) > before, "no job has chosen the files that these are compared with"
    with at_most(spark, 0):
        assert files_of(sessions, folder, "one", query) == chosen


@pytest.mark.parametrize(("query", "jobs"), [("LIMIT 3", 0), ("VERSION AS OF 2 WHERE id < 25", 1)])
def test_limits_need_no_job_and_a_version_of_the_past_only_the_one_that_makes_its_list(
    spark, sessions, folder, query, jobs
):
    chosen = files_of(sessions, folder, "one", f"SELECT * FROM {{}} {query}")
    assert 0 < len(chosen) == len(files_of(sessions, folder, "two", f"SELECT * FROM {{}} {query}")) < 10
    with at_most(spark, jobs):
        assert files_of(sessions, folder, "one", f"SELECT * FROM {{}} {query}") == chosen


def test_a_commit_is_seen_by_the_next_query(sessions, tmp_path):
    session = sessions["one"]
    for version in range(3):
        session.range(10).write.format("delta").mode("append").save(str(tmp_path))
        assert session.read.format("delta").load(str(tmp_path)).where("id < 5").count() == 5 * (version + 1)


def test_long_lists_are_left_to_jobs(spark, sessions, tmp_path):
    session = sessions["one"]
    session.sql(f"CREATE TABLE delta.`{tmp_path / 'one'}` (id BIGINT) USING delta")
    added = [
        {
            "path": f"{number}.parquet",
            "partitionValues": {},
            "size": 1000,
            "modificationTime": 0,
            "dataChange": True,
            "stats": json.dumps(
                {"numRecords": 1, "minValues": {"id": number}, "maxValues": {"id": number}, "nullCount": {"id": 0}}
            ),
        }
        for number in range(5001)
    ]
    commit = tmp_path / "one" / "_delta_log" / f"{1:020d}.json"
    commit.write_text("\n".join(json.dumps({"add": add}) for add in added), encoding="utf-8")
    query = "SELECT * FROM {} WHERE id BETWEEN 700 AND 702"
    for _ in range(2):
        before = jobs_started(spark)
        assert files_of(sessions, tmp_path, "one", query) == ["700.parquet", "701.parquet", "702.parquet"]
        assert jobs_started(spark) > before
