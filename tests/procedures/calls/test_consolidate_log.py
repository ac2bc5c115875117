"""``CALL use.consolidate_log``: statistics, tags, revisions, events and checkpoints; rows and versions stay."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from tables import NUMBERS, checksum, numbers

import sql_ext
from catalog.clock import SYSTEM_CLOCK
from catalog.errors import ConcurrentChangeError
from catalog.history.events import EVENTS_FOLDER
from catalog.jvm.table_state import LogExtent
from catalog.state.lease import exclusive_lease
from catalog.table.snapshot import TableSnapshot
from procedures.lifecycle.log import file_metadata, table_metadata
from procedures.lifecycle.log.commits import is_smaller

LATER = "2999-01-01"
STATS = "spark.databricks.delta.stats.collect"
ALL_TYPES = (
    "id BIGINT, n INT, d DOUBLE, s STRING, m DECIMAL(10,2), b BOOLEAN, day DATE, t TIMESTAMP, "
    "inner STRUCT<a: INT, c: STRING>, list ARRAY<INT>, nothing STRING"
)


def consolidate(table, *modes, **given):
    rows = sql_ext.call(table.spark, "consolidate_log", table=table.name, modes=list(modes), **given).collect()
    assert [row.table for row in rows] == [table.managed.name] * len(rows)
    return {row.mode: row for row in rows}


def all_types(spark, start, count):
    return spark.range(start, start + count, 1, 1).selectExpr(
        "id", "IF(id % 5 = 0, NULL, CAST(id AS INT)) AS n", "IF(id = 3, double('NaN'), id / 3) AS d",
        "repeat(CAST(id AS STRING), 20) AS s", "CAST(id AS DECIMAL(10,2)) AS m", "id % 2 = 0 AS b",
        "date_add(DATE'2024-01-01', CAST(id AS INT)) AS day", "TIMESTAMP'2024-01-01 12:00:00' AS t",
        "named_struct('a', CAST(id AS INT), 'c', CAST(id AS STRING)) AS inner", "array(1, 2) AS list",
        "CAST(NULL AS STRING) AS nothing",
    )  # fmt: skip


class Without:
    """Inside it, writers collect no statistics."""

    def __init__(self, spark):
        self.spark = spark

    def __enter__(self):
        self.spark.conf.set(STATS, "false")

    def __exit__(self, *_):
        self.spark.conf.unset(STATS)


def restate(table, **columns):
    """Commits other metadata of all files, as another writer could."""
    transaction = table.managed.transaction(table.spark)
    files = TableSnapshot.of(transaction.state()).log_files
    transaction.replace_entries(files.withColumns({**columns, "dataChange": F.lit(False)}), "OTHER", {}, False)


def stats_of(table):
    """Statistics of the live files, by their smallest id."""
    parsed = [json.loads(add["stats"]) for add in table.replayed()[0].values()]
    return {stats.get("minValues", {}).get("id"): stats for stats in parsed}


def test_missing_statistics_are_those_that_delta_collects(spark, new_table):
    """The twin has the same rows from a writer that collects statistics."""
    table, twin = (new_table(ALL_TYPES, properties={"delta.enableDeletionVectors": "true"}) for _ in range(2))
    starts = (0, 100, 200)
    for start in starts:
        twin.append(all_types(spark, start, 20))
        with Without(spark):
            table.append(all_types(spark, start, 20))
    for each in (table, twin):
        each.sql("DELETE FROM {t} WHERE id = 104")
    restate(table, stats=F.lit('{"numRecords":20,"tightBounds":false}'))
    rows, version = table.checksum(), table.version
    planned = consolidate(table, "file_metadata", dry_run=True)["file_metadata"]
    assert (planned.state, planned.files_after, table.version) == ("planned", None, version)
    assert planned.message.startswith("planned: statistics of 3 files")
    done = consolidate(table, "file_metadata")["file_metadata"]
    assert (done.state, done.version, table.version) == ("done", version + 1, version + 1)
    assert "of 3 files" in done.message
    assert stats_of(table) == stats_of(twin)
    assert stats_of(table)[100]["tightBounds"] is False
    assert all(not add["dataChange"] for add in table.added(version + 1))
    assert table.checksum() == rows == checksum(spark.sql(f"SELECT * FROM {table.name} VERSION AS OF {version}"))
    assert consolidate(table, "file_metadata")["file_metadata"].state == "skipped"


def test_footers_suffice_for_numbers_and_strings(spark, new_table):
    """Files without rows, and columns that a file lacks, are no reason to read. Footers take empty maps for nulls."""
    table = new_table("id BIGINT, s STRING, m MAP<STRING, INT>")
    with Without(spark):
        table.append(spark.range(0, 10, 1, 1).selectExpr("id", "CAST(id AS STRING) s", "map('a', 1) m"))
        table.append(spark.range(10, 20, 1, 1).selectExpr("id", "CAST(NULL AS STRING) s", "map('a', 1) m"))
        table.append(spark.range(0).selectExpr("id", "CAST(id AS STRING) s", "map('a', 1) m"))
        table.append(spark.range(20, 30, 1, 1).selectExpr("id", "'' s", "IF(id < 22, NULL, map()) m"))
    done = consolidate(table, "file_metadata")["file_metadata"]
    assert "of 3 files from their footers and of 1 file" in done.message, done.message
    assert stats_of(table)[10]["nullCount"] == {"id": 0, "s": 10, "m": 0}
    assert stats_of(table)[20]["nullCount"] == {"id": 0, "s": 0, "m": 2}
    table.sql("ALTER TABLE {t} ADD COLUMNS (more INT)")
    assert consolidate(table, "file_metadata")["file_metadata"].state == "skipped"
    assert [row.id for row in table.data.where("id = 12").collect()] == [12]


def test_columns_without_statistics_are_no_reason_to_read(spark, new_table):
    """Empty maps and nulls inside of arrays are none where Delta counts no nulls."""
    columns = "id BIGINT, inner STRUCT<a: INT, list: ARRAY<INT>>, m MAP<STRING, INT>"
    table = new_table(columns, properties={"delta.dataSkippingStatsColumns": "id,inner.a"})
    with Without(spark):
        inner = "named_struct('a', 1, 'list', array(CAST(NULL AS INT))) AS inner"
        table.append(spark.range(0, 10, 1, 1).selectExpr("id", inner, "CAST(map() AS MAP<STRING, INT>) AS m"))
    done = consolidate(table, "file_metadata")["file_metadata"]
    assert "of 1 file from their footers and of 0 files" in done.message, done.message
    assert stats_of(table)[0]["nullCount"] == {"id": 0, "inner": {"a": 0}}


@pytest.mark.slow
def test_footers_of_numbers_that_they_do_not_bound_are_not_trusted(spark, tmp_path):
    """Row groups with NaN or long texts have none, and Delta takes them for nulls; it cuts far years short."""
    fractions = "CASE WHEN id = 0 THEN double('NaN') WHEN id < 50 THEN 5000D ELSE rand(1) END v"
    rows = spark.range(0, 1000, 1, 1).selectExpr(fractions)
    rows.write.option("parquet.block.size", "1024").parquet(str(tmp_path / "fractions"))
    (tmp_path / "unsigned").mkdir()
    unsigned = pa.table({"v": pa.array([5, 10, 20, 3_000_000_000], pa.uint32())})
    pq.write_table(unsigned, tmp_path / "unsigned" / "a.parquet", row_group_size=2)
    (tmp_path / "texts").mkdir()
    texts = pa.table({"v": ["a", "b", "z" * 5000, "y"]})
    pq.write_table(texts, tmp_path / "texts" / "a.parquet", row_group_size=2)
    (tmp_path / "dates").mkdir()
    dates = pa.table({"v": pa.array([0, 3_100_000], pa.int32()).cast(pa.date32())})
    pq.write_table(dates, tmp_path / "dates" / "a.parquet")
    for name, value, count in (
        ("fractions", 5000, 49), ("unsigned", 3_000_000_000, 1), ("texts", "'y'", 1), ("dates", "date'1970-01-01'", 1)
    ):  # fmt: skip
        path = tmp_path / name
        spark.sql(f"CONVERT TO DELTA parquet.`{path}` NO STATISTICS")
        call = sql_ext.call(spark, "consolidate_log", table=f"delta.`{path}`", modes=["file_metadata"])
        assert "of 0 files from their footers and of 1 file" in call.first().message
        assert spark.read.format("delta").load(str(path)).where(f"v = {value}").count() == count


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["b BOOLEAN"]], ids=["footers", "rows"])
def test_strings_that_are_not_valid_are_not_bounded(spark, new_table, more):
    """Delta stores U+FFFD for what cannot be decoded, whose order is another one."""
    table = new_table(", ".join(["id INT", "s STRING", "inner STRUCT<s: STRING>", *more]))
    names = ["CAST(x AS STRING) s", "named_struct('s', CAST(x AS STRING)) inner"]
    values = ("FF80", "80", "C3A9")
    with Without(spark):
        for number, value in enumerate(values):
            rows = spark.sql(f"SELECT {number} id, X'{value}' x")
            table.append(rows.selectExpr("id", *names, *(["true b"] if more else [])))
    conditions = [
        f"{column} {symbol} CAST(X'{value}' AS STRING)"
        for column, symbol, value in (
            ("s", ">=", "FF80"),
            ("s", "<=", "80"),
            ("s", "=", "C3A9"),
            ("inner.s", ">=", "FF80"),
        )
    ]
    counts = [table.data.where(condition).count() for condition in conditions]
    assert counts == [1, 1, 1, 1]
    assert consolidate(table, "file_metadata")["file_metadata"].state == "done"
    assert [stats_of(table)[n]["minValues"].get("s") for n in range(3)] == [None, None, "é"]
    assert [table.data.where(condition).count() for condition in conditions] == counts
    assert consolidate(table, "file_metadata")["file_metadata"].state == "skipped"


def test_a_concurrent_delete_wins(spark, new_table, monkeypatch):
    """Its file is not added again; the others get their statistics in the next attempt."""
    table = new_table("id BIGINT")
    with Without(spark):
        for start in (0, 10, 20):
            table.append(spark.range(start, start + 10, 1, 1))
    collect, acted = file_metadata.with_statistics, []

    def delete_first(*arguments):
        collected = collect(*arguments)
        if not acted:
            acted.append(table.sql("DELETE FROM {t} WHERE id BETWEEN 10 AND 19"))
        return collected

    monkeypatch.setattr(file_metadata, "with_statistics", delete_first)
    assert consolidate(table, "file_metadata")["file_metadata"].state == "done"
    assert sorted(stats_of(table)) == [0, 20]
    assert table.data.count() == 20


def test_a_range_of_times_limits_the_files(spark, new_table):
    table = new_table("id BIGINT")
    with Without(spark):
        for start in (0, 10, 20):
            table.append(spark.range(start, start + 10, 1, 1))
    times = sorted(add["modificationTime"] for add in table.replayed()[0].values())
    given = {"timestamp_start": str(times[1]), "timestamp_end": str(times[1])}
    assert "of 1 file from" in consolidate(table, "file_metadata", **given)["file_metadata"].message
    assert sum("stats" in add for add in table.replayed()[0].values()) == 1


@pytest.mark.slow
def test_tags_become_short_and_mean_the_same(spark, new_table):
    """As another writer of the format spells them: with spaces and a field that nobody reads."""
    table = new_table(NUMBERS, index="x,y", cube_size=50).append(numbers(spark, 500)).index()
    blocks = sorted(str(file.blocks) for file in table.files)
    spaced = F.regexp_replace(F.regexp_replace(F.col("tags")["blocks"], ",", " , "), r"\}", r',"replicated":false}')
    tags = F.map_concat(F.map_filter("tags", lambda key, _: key != "blocks"), F.create_map(F.lit("blocks"), spaced))
    restate(table, tags=tags)
    assert " , " in next(iter(table.replayed()[0].values()))["tags"]["blocks"]
    rows = table.checksum()
    assert "shorter tags of" in consolidate(table, "file_metadata")["file_metadata"].message
    assert sorted(str(file.blocks) for file in table.files) == blocks
    assert all(" " not in add["tags"]["blocks"] and "replicated" not in add["tags"]["blocks"] for add in
               table.replayed()[0].values())  # fmt: skip
    assert table.checksum() == rows
    assert consolidate(table, "file_metadata")["file_metadata"].state == "skipped"


@pytest.mark.slow
def test_revisions_without_files_are_removed(spark, new_table):
    """Earlier versions are read by their own properties, an append in flight is not failed, RESTORE brings all back."""
    table = new_table(NUMBERS, index="x,y", cube_size=50, file_bytes="2kb")
    table.append(numbers(spark, 300)).index()
    version, rows = table.version, table.checksum()
    table.append(numbers(spark, 100, 300).selectExpr("id", "x + 9 AS x", "y", "s")).index()
    assert sorted(table.revisions) == [0, 1, 2]
    assert consolidate(table, "table_metadata")["table_metadata"].state == "skipped"
    spark.sql(f"CALL use.optimize('{table.name}', revision_rewrite => true)")
    before = table.version
    planned = consolidate(table, "table_metadata", dry_run=True)["table_metadata"]
    assert (planned.state, table.version) == ("planned", before)
    assert "revision 1" in planned.message
    assert "time travel loses nothing" in planned.message
    writer = table.managed.transaction(spark)
    done = consolidate(table, "table_metadata")["table_metadata"]
    assert (done.state, done.version) == ("done", before + 1)
    assert sorted(table.revisions) == [0, 2]
    assert table.commit_info(table.version)["tags"] == {"delta.identity.schemaUpdate": "true"}
    writer.write(numbers(spark, 10, 400).repartition(1))
    assert writer.commit("WRITE", {}, {}) == before + 2
    assert table.data.count() == 410
    before = spark.sql(f"SELECT * FROM {table.name} VERSION AS OF {version}")
    assert (checksum(before), sql_ext.read_report(before.sample(0.1)).scans[0].pruned) == (rows, True)
    table.sql(f"RESTORE TABLE {{t}} TO VERSION AS OF {version}")
    assert (sorted(table.revisions), table.checksum(), table.unindexed) == ([0, 1], rows, [])


def test_what_counts_as_in_use():
    keys = {f"qbeast.revision.{n}": "{}" for n in (0, 1, 2, 3)} | {
        "use.index.hashTypes.1": "x",
        "use.index.columns": "a",
    }
    properties = {**keys, "qbeast.lastRevisionID": "3"}
    assert table_metadata.obsolete_properties(properties, {"2"}) == {1: ("qbeast.revision.1", "use.index.hashTypes.1")}
    assert table_metadata.obsolete_properties(properties, {"1", "2"}) == {}


def test_a_lease_of_another_run_is_respected(spark, new_table):
    """By the modes that commit; a plan and a checkpoint disturb nobody."""
    table = new_table("id BIGINT").append(spark.range(3))
    with exclusive_lease(table.managed, "another", "call", SYSTEM_CLOCK):
        for mode in ("file_metadata", "table_metadata"):
            assert consolidate(table, mode, dry_run=True)[mode].state == "skipped"
            with pytest.raises(ConcurrentChangeError, match="is being optimized by"):
                consolidate(table, mode)
        assert consolidate(table, "commits", timestamp_end=LATER)["commits"].state == "done"
    assert consolidate(table, "file_metadata")["file_metadata"].state == "skipped"


@pytest.mark.slow
def test_a_checkpoint_of_the_newest_version_or_of_one_at_a_time(spark, new_table):
    table = new_table("id BIGINT", properties={"delta.checkpointInterval": "1000"})
    for start in range(4):
        table.append(spark.range(start, start + 1, 1, 1))
    rows, log = table.checksum(), table.path / "_delta_log"
    time = (log / f"{2:020d}.json").stat().st_mtime_ns // 1_000_000
    skipped = consolidate(table, "commits")["commits"]
    assert (skipped.state, "would be larger than the 5 commits" in skipped.message) == ("skipped", True)
    assert (skipped.files_after, skipped.bytes_after) == (skipped.files_before, skipped.bytes_before)
    assert consolidate(table, "commits", dry_run=True, timestamp_end=str(time))["commits"].state == "planned"
    assert not list(log.glob("*.checkpoint*"))
    done = consolidate(table, "commits", timestamp_end=str(time))["commits"]
    assert (done.state, done.version) == ("done", 2)
    assert (log / f"{2:020d}.checkpoint.parquet").exists()
    done = consolidate(table, "commits")["commits"]
    assert (done.version, done.files_before, done.files_after) == (4, 3, 1)
    assert done.bytes_after > 0
    assert done.load_ms_after is not None
    assert json.loads((log / "_last_checkpoint").read_text())["version"] == 4
    # An older checkpoint does not replace the newer one as the last.
    assert consolidate(table, "commits", timestamp_end=str(time))["commits"].state == "skipped"
    assert consolidate(table, "commits")["commits"].state == "skipped"
    # The commits stay, for time travel.
    assert len(list(log.glob("*.json"))) == 5
    assert [spark.sql(f"SELECT * FROM {table.name} VERSION AS OF {v}").count() for v in range(5)] == list(range(5))
    assert table.checksum() == rows


@pytest.mark.parametrize(
    ("commits", "columns", "commit_bytes", "checkpoint_bytes"),
    [
        (8, 1, 5_961, 19_097), (40, 1, 26_787, 21_161), (15, 4, 12_259, 24_242), (40, 4, 31_071, 27_320),
        (8, 4, 23_427, 25_940), (40, 4, 55_668, 32_460), (15, 25, 24_828, 56_304), (40, 25, 62_956, 70_363),
    ],
)  # fmt: skip
def test_no_checkpoint_is_written_that_was_measured_to_be_larger(commits, columns, commit_bytes, checkpoint_bytes):
    if is_smaller(commits, LogExtent(None, commit_bytes, commit_bytes), columns):
        assert checkpoint_bytes < commit_bytes


def test_a_long_log_gets_a_checkpoint():
    assert is_smaller(50, LogExtent(None, 20_000, 20_000), 30), "fifty files fewer to open"
    assert is_smaller(9, LogExtent(None, 10**8, 10**8), 30)
    assert is_smaller(9, LogExtent(None, 10**6, 10**4), 30), "the earlier checkpoint has the fixed part already"
    assert not is_smaller(3, LogExtent(None, 6_791, 6_791), 25)


def test_tiledb_names_of_modes(spark, new_table):
    """On a table without an index, too; a name and its alias are the same mode."""
    table = new_table("id BIGINT").append(spark.range(3))
    rows = sql_ext.call(spark, "consolidate_log", table=table.name, modes=["fragment_meta", "Group_Meta"]).collect()
    assert [(row.mode, row.state) for row in rows] == [("table_metadata", "skipped"), ("file_metadata", "skipped")]
    with pytest.raises(AnalysisException, match="each mode at most once"):
        table.sql("CALL use.consolidate_log('{t}', modes => array('array_meta', 'group_meta'))")


@pytest.mark.slow
def test_events_are_merged_and_old_ones_deleted(spark, new_table):
    table = new_table(NUMBERS, index="x,y")
    for start in (0, 100, 200):
        table.append(numbers(spark, 100, start)).index()
    events = spark.sql(f"SELECT * FROM {table.name}.optimizations").count()
    stored = table.managed.list_state(EVENTS_FOLDER)
    few = consolidate(table, "events")["events"]
    assert (few.state, few.files_after) == ("skipped", few.files_before)
    for number in range(10 - len(stored)):
        line = json.dumps({"write_id": f"w{number}", "started_at": number, "table_id": "x", "state": "failed"})
        table.managed.write_state(f"{EVENTS_FOLDER}/{number}-w{number}.json", line)
    done = consolidate(table, "events")["events"]
    assert (done.state, done.files_before, done.files_after, done.load_ms_before) == ("done", 10, 1, None)
    assert "10 files of events merged" in done.message
    assert any("-merged-" in name for name in table.managed.list_state(EVENTS_FOLDER))
    assert spark.sql(f"SELECT * FROM {table.name}.optimizations").count() == events
    assert consolidate(table, "events")["events"].state == "skipped"


def test_a_list_and_a_schema(spark, new_table):
    """A table whose log is damaged is a row; the others are done."""
    spark.sql("CREATE DATABASE logs")
    try:
        for name in ("one", "two", "broken"):
            spark.sql(f"CREATE TABLE logs.{name} (id BIGINT) USING delta")
        spark.sql("CREATE VIEW logs.seen AS SELECT 1 AS x")
        rows = sql_ext.call(spark, "consolidate_log", tables=["logs.two", "logs.one", "logs.two"]).collect()
        assert [(r.table.rpartition(".")[2], r.mode, r.state) for r in rows] == [
            (name, mode, state)
            for name in ("two", "one")
            for mode, state in (("events", "skipped"), ("commits", "skipped"))
        ]
        spark.sql("ALTER TABLE logs.broken SET TBLPROPERTIES ('use.retention.hours' = '1000')")
        root = spark.sql("DESCRIBE DETAIL logs.broken").first().location
        Path(root.removeprefix("file:"), "_use").write_text("no folder")
        rows = sql_ext.call(spark, "consolidate_log", schema="logs", modes=["COMMITS"], parallelism=2).collect()
        states = {row.table.rpartition(".")[2]: row.state for row in rows}
        assert states == {"one": "skipped", "two": "skipped", "broken": "failed"}
        assert "USE_WRITE_DENIED" in next(row.message for row in rows if row.state == "failed")
    finally:
        spark.sql("DROP DATABASE logs CASCADE")


@pytest.mark.parametrize(
    ("given", "condition", "text"),
    [
        ({}, "USE_INVALID_ARGUMENT", "exactly one of table, tables and schema"),
        ({"table": "t", "schema": "s"}, "USE_INVALID_ARGUMENT", "exactly one of table, tables and schema"),
        ({"tables": []}, "USE_INVALID_ARGUMENT", "at least one table"),
        ({"table": "t", "modes": []}, "USE_INVALID_ARGUMENT", "modes"),
        ({"table": "t", "modes": ["commits", "Commits"]}, "USE_INVALID_ARGUMENT", "at most once"),
        ({"table": "t", "modes": ["commit"]}, "USE_UNKNOWN_MODE", "Did you mean commits"),
        ({"table": "t", "parallelism": 0}, "USE_INVALID_ARGUMENT", "parallelism = 0"),
        ({"table": "t", "timestamp_end": "soon"}, "USE_INVALID_ARGUMENT", "timestamp_end = 'soon'"),
        ({"table": "t", "timestamp_start": "2024-01-01"}, "USE_INVALID_ARGUMENT", "commits does not accept it"),
        ({"schema": "nowhere"}, "USE_UNKNOWN_SCHEMA", "There is no schema 'nowhere'"),
    ],
)
def test_bad_arguments(spark, given, condition, text):
    def sql(value):
        return (
            f"array({', '.join(map(sql, value))})"
            if isinstance(value, list)
            else f"'{value}'"
            if isinstance(value, str)
            else str(value)
        )

    with pytest.raises(AnalysisException, match=text) as refused:
        spark.sql(f"CALL use.consolidate_log({', '.join(f'{name} => {sql(value)}' for name, value in given.items())})")
    assert refused.value.getCondition() == condition


def test_a_measured_load_leaves_no_log_in_the_cache_of_delta(spark, new_table):
    table = new_table(NUMBERS).append(numbers(spark, 10))
    cache = getattr(getattr(spark.sparkContext._jvm.org.apache.spark.sql.delta, "DeltaLog$"), "MODULE$")
    table.data.count()
    before = cache.cacheSize()
    load = table.managed.handle.versions(spark).load()
    assert (load.files >= 1, cache.cacheSize()) == (True, before)
