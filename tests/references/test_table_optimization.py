"""Table optimization, the newer family of properties, sentence by sentence (reference B)."""

from datetime import datetime, timezone

import pytest
from listed_tables import ROOT, choice, chosen, cube, file, unindexed
from optimizer_fakes import FakeOptimizer, committed, outcome
from service_fakes import MINUTE, FakeService

import sql_ext
from catalog.clock import SYSTEM_CLOCK
from catalog.state import lease
from procedures.process.application import application
from procedures.service.schedule import NoSchedule, schedule_of

AUTO = "use.optimization.autoOptimize."
UNINDEXED = f"{AUTO}optimizeUnindexedFiles."
A, B = cube(0), cube(1)
AA = cube(0, 0)
FRAGMENTED = [file("indexed 1", {A: 6}), file("indexed 2", {A: 6})]


def _schedule(**properties):
    """The schedule of a table with automatic optimization; dots of the names are written as two underscores."""
    named = {f"{AUTO}{key.replace('__', '.')}": text for key, text in properties.items()}
    return schedule_of({f"{AUTO}enabled": "true", **named})


# ------------------------------------------------------------------------------------- 1. revisions


def test_files_of_the_underlying_format_belong_to_revision_0(indexed):
    counts = {r.revision_id: r.files for r in indexed.sql("SELECT revision_id, files FROM {t}.revisions")}
    assert counts[0] == 1
    assert counts[1] > 1


def test_revision_0_is_never_optimized_as_an_index():
    files = [unindexed(f"f{n}", rows=1000) for n in range(5)]
    assert choice(files, "LeveledCompaction", revision_id=0) is None
    assert choice(files, "CubeDefragmentation") is None


# ------------------------------------------------------------------------------------- 2. the loop


def test_the_first_strategy_that_returns_files_is_used():
    files = [*FRAGMENTED, unindexed("appended")]
    assert choice(files, "UnindexedFiles,LeveledCompaction").strategy == "UnindexedFiles"
    assert choice(files, "LeveledCompaction,UnindexedFiles").strategy == "LeveledCompaction"
    assert choice(FRAGMENTED, "UnindexedFiles,LeveledCompaction").strategy == "LeveledCompaction"


def test_the_loop_stops_when_no_strategy_returns_files():
    fake = FakeOptimizer(sizes=(5, 6))
    assert outcome(fake.optimize()) == [committed(1), committed(2)]
    assert fake.table.files == {}


# ------------------------------------------------------------------------------------- 3. LeveledCompactionSelection


def test_groups_are_ordered_by_level_then_depth_then_number_of_blocks():
    level_1 = [file(f"level 1 {n}", {ROOT: 60}) for n in (1, 2)]
    deep = [file(f"deep {n}", {AA: 6}) for n in (1, 2)]
    many = [file(f"many {n}", {A: 6}) for n in (1, 2, 3)]
    few = [file(f"few {n}", {B: 6}) for n in (1, 2)]
    everything = [*level_1, *deep, *many, *few]
    for expected in (few, many, deep, level_1):
        names = [f.path for f in expected]
        assert chosen(everything, "LeveledCompaction") == names  # and only this group
        everything = [f for f in everything if f.path not in names]


def test_it_compacts_the_latest_revision_when_none_is_given():
    assert choice(FRAGMENTED).revision_id == 2
    assert choice(FRAGMENTED, "LeveledCompaction", revision_id=1) is None


# ------------------------------------------------------------------------------------- 4. UnindexedFilesSelection


def test_unindexed_files_are_taken_by_modification_time_up_to_the_batch():
    files = [unindexed("newest", time=3), unindexed("oldest", time=1), unindexed("middle", time=2)]
    assert chosen(files) == ["oldest", "middle", "newest"]
    assert chosen(files, options={"batch_bytes": "20"}) == ["oldest", "middle"]


def test_unindexed_files_are_first_by_default():
    files = [*FRAGMENTED, unindexed("appended", time=99)]
    assert chosen(files) == ["appended"]
    assert choice(files).revision_id == 0


@pytest.mark.slow
def test_rows_go_to_the_latest_revision_and_to_a_new_one_if_they_leave_its_space(spark, new_table):
    table = new_table("x DOUBLE", index="x").append(spark.range(100).selectExpr("id * 1D AS x")).index()
    table.append(spark.range(50).selectExpr("id * 1D AS x")).index()
    assert max(table.revisions) == 1
    table.append(spark.range(50).selectExpr("id * 1000000D AS x")).index()
    assert max(table.revisions) == 2
    assert {f.revision for f in table.files} == {1, 2}


# ------------------------------------------------------------------------------------- 5. properties


def test_automatic_optimization_is_not_set_by_default():
    assert isinstance(schedule_of({"use.index.columns": "x"}), NoSchedule)
    assert isinstance(schedule_of({f"{AUTO}enabled": "false"}), NoSchedule)


def test_the_defaults_index_unindexed_files_first_and_compact_the_latest_revision():
    """Compaction keeps reads at a target; LeveledCompaction does it if merges of sorted runs are switched off."""
    leveled = _schedule(mergeSortedRuns__enabled="false")
    assert leveled.strategies == ("UnindexedFiles", "LeveledCompaction")
    schedule = _schedule()
    assert schedule.strategies[:2] == ("UnindexedFiles", "SortedRunCompaction")
    assert schedule.arguments["revision_id"] is None
    assert schedule.settings().selection["UnindexedFiles"].options == {
        "batch_bytes": 10_000_000_000,
        "from_timestamp": "0",
    }


def test_prioritize_decides_which_is_first():
    strategies = _schedule(optimizeUnindexedFiles__prioritize="false").strategies
    assert strategies.index("SortedRunCompaction") < strategies.index("UnindexedFiles")


def test_unindexed_files_can_be_left_alone():
    assert "UnindexedFiles" not in _schedule(optimizeUnindexedFiles__enabled="false").strategies


def test_the_revision_0_means_only_the_unindexed_revision():
    schedule = _schedule(revisionId="0")
    assert schedule.strategies == ("UnindexedFiles",)
    assert _schedule(revisionId="2").settings().selection["SortedRunCompaction"].revision_id == 2


def test_the_batch_of_a_table_is_its_property():
    options = _schedule(optimizeUnindexedFiles__batchBytes="500").settings().selection["UnindexedFiles"].options
    assert options["batch_bytes"] == 500


def test_files_modified_before_from_timestamp_are_ignored(indexed):
    year = int(datetime(2023, 1, 1, tzinfo=timezone.utc).timestamp() * 1000)
    schedule = _schedule(optimizeUnindexedFiles__fromTimestamp="2023-01-01 00:00:00")
    (text,) = {schedule.settings().selection["UnindexedFiles"].options["from_timestamp"]}
    files = [unindexed("before", time=year - 1), unindexed("at", time=year), unindexed("after", time=year + 1)]
    assert chosen(files, "UnindexedFiles", spark=indexed.spark, options={"from_timestamp": text}) == ["at", "after"]


# ------------------------------------------------------------------------------------- 6. unset, manual


def test_unsetting_enabled_alone_stops_it():
    fake = FakeService()
    kept = {f"{AUTO}revisionId": "1", f"{UNINDEXED}batchBytes": "5"}
    fake.tables.put("t", {f"{AUTO}enabled": "true", **kept})
    assert fake.tick() == ["t"]
    fake.tables.put("t", kept)
    assert fake.tick(60 * MINUTE) == ["t"]
    assert not application().automations.all()


@pytest.mark.slow
@pytest.mark.parametrize("why", ["ALREADY_RUNNING", "AUTOMATIC"])
def test_a_manual_trigger_is_ignored_when_one_runs_or_the_table_has_auto_optimization(spark, new_table, why):
    table = new_table("a BIGINT", index="a").append(spark.range(20).selectExpr("id a"))
    if why == "AUTOMATIC":
        table.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES('{AUTO}enabled'='true')")
    else:
        # As a run in another process holds the lease.
        lease.acquire(table.managed, "of another process", "call", SYSTEM_CLOCK.now())
    spark.sql(
        f"ALTER TABLE use_catalog.spark_catalog.{table.name} SET TBLPROPERTIES("
        "'use.optimization.type'='LeveledCompaction','use.optimization.bytes-per-iter'='5000000')"
    )
    (row,) = table.sql("SELECT * FROM {t}.optimizations")
    assert (row.state, row.trigger, row.reason) == ("ignored", "manual", why)


# ------------------------------------------------------------------------------------- 7. DeltaVacuum


@pytest.mark.slow
def test_vacuum_removes_what_the_log_no_longer_references(indexed):
    def planned(hours):
        rows = sql_ext.call(indexed.spark, "vacuum", table=indexed.name, retention_hours=hours, dry_run=True).collect()
        return {row.path.rsplit("/", 1)[-1] for row in rows if row.reason == "EXPIRED"}

    (version,) = [row.version for row in indexed.sql("SELECT version FROM {t}.optimizations WHERE version IS NOT NULL")]
    assert planned(0.0) == set(indexed.removed(version))
    assert planned(168.0) == set()


def test_a_retention_below_the_tables_own_needs_force(indexed):
    with pytest.raises(sql_ext.UseError, match="force") as refused:
        sql_ext.call(indexed.spark, "vacuum", table=indexed.name, retention_hours=1.0)
    assert refused.value.code == "USE_RETENTION_TOO_SHORT"


@pytest.mark.slow
def test_force_disables_the_retention_check(spark, new_table):
    table = new_table("x DOUBLE", index="x").append(spark.range(100).selectExpr("id * 1D AS x")).index()
    sql_ext.call(spark, "vacuum", table=table.name, retention_hours=0.0, force=True).collect()
    assert {path for path in table.on_disk() if path.endswith(".parquet")} == table.paths
