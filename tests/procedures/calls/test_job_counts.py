"""How many Spark jobs small passes start: the measure of their cost that no other work on the machine changes."""

import pytest
from spark_jobs import at_most

from catalog.jvm.log_probe import Question
from procedures.service.watched_tables import SparkTables

APPENDS = 10


@pytest.fixture
def appended(spark, new_table, set_conf):
    """A table of ten plain appends, with the settings of Spark that make the most jobs."""
    set_conf("spark.sql.adaptive.enabled", "true")
    table = new_table("id bigint, x double, y int, s string", index="x,y")
    for number in range(APPENDS):
        rows = spark.range(number * 1000, number * 1000 + 1000, 1, 1)
        table.append(rows.selectExpr("id", "rand(7) * 100 AS x", "CAST(id AS INT) AS y", "CAST(id AS STRING) AS s"))
    return table


def test_small_passes_start_few_jobs(spark, appended):
    name = appended.name
    with at_most(spark, 0):
        (planned,) = spark.sql(f"CALL use.optimize('{name}', dry_run => true)").collect()
    assert (planned.state, planned.input_files) == ("planned", APPENDS)
    with at_most(spark, 0):
        spark.sql(f"CALL use.optimize('{name}', dry_run => true)").collect()
    with at_most(spark, 3):
        report = spark.sql(f"CALL use.optimize('{name}')").collect()
    assert [(row.state, row.rows) for row in report] == [("committed", 1000 * APPENDS)]
    with at_most(spark, 0):
        (nothing,) = spark.sql(f"CALL use.optimize('{name}')").collect()
    assert nothing.reason == "NOTHING_TO_DO"
    with at_most(spark, 2):
        assert len(spark.sql(f"SELECT * FROM {name}.optimizations").collect()) == 1
    with at_most(spark, 0):
        assert spark.sql("CALL use.help()").collect()
        assert spark.sql("CALL use.help('optimize')").collect()
        spark.sql("CALL use.status()").collect()
        assert spark.sql(f"CALL use.status('{name}')").collect()


@pytest.mark.slow
def test_a_small_run_starts_fewer_jobs_than_optimize_of_delta(spark, new_table, set_conf):
    """The rows are measured, sampled in the new revision, and written; nothing else is a job."""
    set_conf("spark.sql.adaptive.enabled", "true")
    table = new_table("id bigint, x double", index="id,x")
    for number in range(6):
        first = number * 1000
        spark.sql(f"INSERT INTO {table.name} SELECT id, rand({number}) FROM range({first}, {first + 1000}, 1, 1)")
        if number % 2:
            with at_most(spark, 3):
                (row,) = spark.sql(f"CALL use.optimize('{table.name}')").collect()
            assert (row.state, row.rows, row.input_files) == ("committed", 2000, 2)


def test_the_summary_starts_no_job_per_table(spark, appended, new_table):
    others = [new_table("id bigint", index="id").append(spark.range(5)) for _ in range(3)]
    query = "SELECT name, unindexed_files FROM use_catalog.system_lake_tables.metastore_summary"
    with at_most(spark, 2):
        rows = {row.name: row.unindexed_files for row in spark.sql(query).collect()}
    for table, files in [(appended, APPENDS), *((other, 1) for other in others)]:
        assert rows[table.name.split(".")[-1]] == files


def test_an_idle_table_starts_no_job(spark, appended):
    tables = SparkTables(spark, [appended.name])
    (location,) = tables.listed()
    with at_most(spark, 0):
        for _ in range(3):
            (sighting,) = tables.look([Question(location, appended.version)])
    assert sighting.state == "unchanged"
