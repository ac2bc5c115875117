"""The main jobs in one story, short enough to run on every line of Spark: ``make test-smoke LINE=4.0``."""

from collections import Counter

import pytest
from fake_clock import FakeClock
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from service_fakes import MINUTE

import sql_ext
from procedures.service.service import Service
from sql_ext.server.jdbc import JdbcServer
from sql_ext.server.settings import ServerSettings

# The other tests cover the jobs on the newest line.
pytestmark = pytest.mark.slow
TABLE = "default.smoke"
ROWS = 20_000


def rows_of(spark):
    return Counter(map(tuple, spark.table(TABLE).collect()))


def append(spark, start, count):
    numbers = spark.range(start, start + count)
    made = numbers.select("id", (F.hash("id") % 1000).alias("x"), (F.hash("id", F.lit(1)) % 1000).alias("y"))
    made.write.format("delta").mode("append").saveAsTable(TABLE)


def clean(spark):
    assert [row.check for row in spark.sql(f"CALL use.check(table => '{TABLE}', deep => true)").collect()] == [
        "SUMMARY"
    ]


@pytest.fixture(scope="module")
def story(spark):
    """A table that was indexed as it was made, with small appends that are optimized."""
    spark.sql(
        f"CREATE TABLE {TABLE} USING qbeast OPTIONS (columnsToIndex = 'x,y', cubeSize = '1000') AS "
        f"SELECT id, hash(id) % 1000 AS x, hash(id, 1) % 1000 AS y FROM range({ROWS})"
    )
    spark.sql(f"ALTER TABLE {TABLE} SET TBLPROPERTIES ('use.index.onWrite' = 'false')")
    yield spark
    spark.sql(f"DROP TABLE {TABLE}")


def test_reads_through_the_index(story):
    sample = story.table(TABLE).sample(0.1).count()
    assert ROWS * 0.08 < sample < ROWS * 0.12
    drawn = [sql_ext.sample(story.table(TABLE), 0.5, draw=draw).count() for draw in (1, 2)]
    assert sum(drawn) == ROWS
    box = story.table(TABLE).where("x BETWEEN 0 AND 100 AND y BETWEEN 0 AND 100")
    plain = story.table(TABLE).where("x + 0 BETWEEN 0 AND 100 AND y + 0 BETWEEN 0 AND 100")
    assert Counter(map(tuple, box.collect())) == Counter(map(tuple, plain.collect()))
    query = f"SELECT * FROM {TABLE} WHERE x BETWEEN 0 AND 100 AND y BETWEEN 0 AND 100"
    assert story.sql("CALL use.explain_skipping(query => :query)", args={"query": query}).count() > 0


def test_a_join_reads_files_with_its_keys(story, set_conf):
    set_conf("spark.sql.adaptive.enabled", "true")
    set_conf("spark.qbeast.use.joins.bytes", "1")
    for part in range(4):
        rows = story.range(part * 100, part * 100 + 100).selectExpr("id", "CAST(id AS INT) x")
        rows.coalesce(1).write.format("delta").mode("append").saveAsTable("default.smoke_parts")
    side = "(SELECT id k FROM range(1000) WHERE id % 1000 BETWEEN 120 AND 160)"
    joined = story.sql(f"SELECT /*+ BROADCAST(s) */ t.id FROM default.smoke_parts t JOIN {side} s ON t.x = s.k")
    assert sorted(row.id for row in joined.collect()) == list(range(120, 161))
    (scan,) = sql_ext.read_report(joined).scans
    assert (scan.kept_files, scan.joined_files) == (4, 1)
    story.sql("DROP TABLE default.smoke_parts")


def test_optimize_keeps_rows(story):
    for part in range(3):
        append(story, 1_000_000 + 500 * part, 500)
    before = rows_of(story)
    assert sum(before.values()) == ROWS + 1500
    done = story.sql(f"CALL use.optimize(TABLE => '{TABLE}')").collect()
    assert "committed" in {row.state for row in done}
    assert rows_of(story) == before
    assert story.sql(f"SELECT * FROM {TABLE}.optimizations").count() > 0
    clean(story)


def test_changes_of_rows(story):
    story.sql(f"DELETE FROM {TABLE} WHERE x = 5")
    story.sql(f"UPDATE {TABLE} SET y = y + 1 WHERE x = 6")
    story.sql(
        f"MERGE INTO {TABLE} t USING (SELECT id, -1L AS z FROM range(10)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET y = -1"
    )
    assert story.table(TABLE).where("y = -1 AND id < 10").count() == story.table(TABLE).where("id < 10").count()
    # Statements keep the index; the optimizer has nothing left to index.
    assert story.table(f"{TABLE}.index_files").where("revision_id = 0").isEmpty()
    before = rows_of(story)
    story.sql(f"CALL use.optimize(table => '{TABLE}')").collect()
    assert rows_of(story) == before
    clean(story)


def test_a_stream_reads_and_writes(story, tmp_path):
    target = "default.smoke_stream"
    query = (
        story.readStream.table(_source(story))
        .writeStream.format("qbeast")
        .option("columnsToIndex", "x,y")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .toTable(target)
    )
    query.awaitTermination()
    assert story.table(target).count() == 1000
    assert story.table(target).sample(0.5).count() > 0
    story.sql(f"DROP TABLE {target}")


def _source(spark):
    name = "default.smoke_source"
    spark.sql(f"CREATE OR REPLACE TABLE {name} USING delta AS SELECT id, id % 10 AS x, id % 7 AS y FROM range(1000)")
    return name


def test_the_service_indexes_appends(story, set_conf):
    set_conf("spark.qbeast.use.service.enabled", "true")
    append(story, 2_000_000, 2_000)
    before = rows_of(story)
    runs = story.sql(f"SELECT * FROM {TABLE}.optimizations").count()
    clock = FakeClock()
    service = Service(story, clock=clock)
    service.tick()
    story.sql(f"ALTER TABLE {TABLE} SET TBLPROPERTIES ('use.optimization.autoOptimize.enabled' = 'true')")
    clock.go_on(MINUTE)
    service.tick()
    assert service.join(120)
    service.stop()
    assert story.sql(f"SELECT * FROM {TABLE}.optimizations").count() > runs
    assert rows_of(story) == before


def test_a_table_has_properties_of_its_database(story):
    story.sql("CREATE DATABASE smoke WITH DBPROPERTIES ('use.index.columns' = 'x', 'use.fleet.enabled' = 'true')")
    story.sql("CREATE TABLE smoke.t USING delta AS SELECT id AS x FROM range(100)")
    (row,) = story.sql("CALL use.status('smoke.t', details => true)").collect()
    assert row.properties["use.index.columns"] == "x (database)"
    assert row.properties["use.optimization.autoOptimize.enabled"] == "true (database)"
    with pytest.raises(AnalysisException, match="USE_UNKNOWN_PROPERTY"):
        story.sql("ALTER DATABASE smoke SET DBPROPERTIES ('use.index.colums' = 'x')")
    story.sql("ALTER DATABASE smoke SET DBPROPERTIES ('use.fleet.maxBytes' = '1GB')")
    # No statement of this session changes the table any more, and the files of recent ones are left alone.
    story.sql("ALTER DATABASE smoke SET DBPROPERTIES ('use.optimization.quietPeriod' = '0')")
    *_, database, total = story.sql("CALL use.fleet('smoke')").collect()
    assert (database.budget_bytes, total.spent_day > 0) == (1 << 30, True)
    shown = story.table("use_catalog.system.fleet").where("table IS NULL AND database = 'smoke'").first()
    assert shown.spent_day == database.spent_day > 0
    assert story.sql("SELECT count(*) FROM smoke.t.index_files WHERE revision_id = 0").first()[0] == 0
    story.sql("DROP DATABASE smoke CASCADE")


def test_a_jdbc_client_calls_a_procedure(story):
    from impala.dbapi import connect

    server = JdbcServer(story, ServerSettings(port=0, auth="none"), "")
    try:
        with connect("127.0.0.1", server.port, auth_mechanism="PLAIN", user="u", password="p") as connection:
            cursor = connection.cursor()
            cursor.execute(f"CALL use.check(table => '{TABLE}')")
            assert cursor.fetchall()[0][0] == "SUMMARY"
            cursor.execute(f"SELECT count(*) FROM {TABLE}")
            assert cursor.fetchall()[0][0] == story.table(TABLE).count()
    finally:
        server.stop()


def test_old_files_are_reclaimed(story):
    before = rows_of(story)
    deleted = story.sql(f"CALL use.vacuum(table => '{TABLE}', retention_hours => 0, force => true)").collect()
    assert sum(row.files for row in deleted if row.state == "deleted") > 0
    story.sql(f"CALL use.purge(table => '{TABLE}')").collect()
    assert rows_of(story) == before
    clean(story)
