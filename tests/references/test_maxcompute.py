"""Clustering, compaction and reclamation, sentence by sentence (reference D)."""

import numpy as np
import pytest
from file_lists import file_table
from service_fakes import MINUTE, FakeService

import sql_ext
from catalog.properties.foreign_properties import foreign_warning
from procedures.process.application import application
from procedures.selection.size_tiers import TierPolicy, merges

HOUR = 60 * MINUTE
LEVELS = TierPolicy(min_files=4, min_bytes=None, tier_ratio=4, isolate_bytes=10_000)
KEYED = "pk BIGINT, val STRING, changed INT"


@pytest.fixture(autouse=True)
def _no_automation_stays():
    yield
    for known in application().automations.all():
        application().automations.remove(known.location)


def _merged(sizes, policy=LEVELS, times=None):
    """Which files become one, each file with the time at which it was written."""
    times = range(len(sizes)) if times is None else times
    columns = {"size": sizes, "first_time": times, "last_time": times}
    return [list(run.positions) for run in merges(file_table(len(sizes), **columns), np.arange(len(sizes)), policy)]


def _append(table, rows):
    """A commit of one file."""
    table.append(table.spark.sql(f"SELECT cast(pk AS BIGINT) pk, val, changed FROM VALUES {rows} v(pk, val, changed)"))


# ------------------------------------------------------------------------------------- 1. clustering


def test_small_files_are_merged_when_their_number_reaches_a_threshold():
    assert _merged([100] * 3) == []
    assert _merged([100] * 4) == [[0, 1, 2, 3]]


def test_level_0_becomes_level_1_and_level_1_becomes_level_2():
    level_1 = [400] * 4
    assert LEVELS.tier(100) < LEVELS.tier(400) < LEVELS.tier(1600)
    assert _merged(level_1) == [[0, 1, 2, 3]]
    # Three files of level 1 wait for a fourth, whatever comes in on level 0.
    assert _merged([400] * 3 + [100] * 4) == [[3, 4, 5, 6]]


def test_the_policy_goes_by_size_too():
    by_size = TierPolicy(min_files=100, min_bytes=5000, tier_ratio=2, isolate_bytes=10_000)
    assert _merged([3000, 3000], by_size) == [[0, 1]]


def test_files_over_a_size_are_isolated():
    assert _merged([10_000] * 8) == []


def test_files_beyond_a_time_range_are_not_merged():
    policy = TierPolicy(4, None, 4, 10_000, max_time_range=10)
    assert _merged([100] * 4, policy, times=[0, 20, 40, 60]) == []
    assert _merged([100] * 4, policy, times=[0, 1, 2, 3]) == [[0, 1, 2, 3]]


def test_clustering_is_triggered_by_the_state_of_the_table_and_not_too_often():
    fake = FakeService()
    fake.tables.put("t", {"use.clustering.enabled": "true", "use.clustering.interval": "10 minutes"})
    assert fake.tick() == ["t"]
    # Nothing new: nothing runs. A commit: the next interval takes it.
    assert fake.tick(HOUR) == ["t"]
    fake.tables.commit("t")
    assert fake.tick(10 * MINUTE) == ["t", "t"]


@pytest.mark.slow
def test_clustering_keeps_intermediate_history_and_swaps_files_in_one_commit(new_table):
    table = new_table(KEYED, properties={"delta.enableDeletionVectors": "true"})
    for n in range(4):
        _append(table, f"({n}, 'a', {n})")
    _append(table, "(8, 'x', 1), (9, 'y', 1)")
    table.sql("DELETE FROM {t} WHERE pk = 9")
    before, rows = table.version, table.checksum()
    table.optimize(strategy="SizeTieredClustering")
    assert table.version == before + 1
    assert len(table.removed(table.version)) == 4
    assert len(table.added(table.version)) == 1
    assert not any(added["dataChange"] for added in table.added(table.version))
    assert table.checksum() == rows
    assert any(f.deletion_vector for f in table.files)
    assert len(table.sql(f"SELECT * FROM {{t}} VERSION AS OF {before - 1}")) == 6


# ------------------------------------------------------------------------------------- 2. compaction


@pytest.mark.parametrize(("key", "value"), [("interval", "1 day"), ("commits", "5")])
def test_compaction_runs_by_time_or_by_number_of_commits(key, value):
    fake = FakeService()
    fake.tables.put("t", {f"use.compaction.{key}": value})
    assert fake.tick() == ["t"]
    fake.tables.commit("t")
    assert fake.tick(HOUR) == ["t"]
    for _ in range(4):
        fake.tables.commit("t")
    assert fake.tick(HOUR if key == "commits" else 24 * HOUR) == ["t", "t"]
    assert [strategies for _, strategies, _ in fake.engine.runs] == [("DeleteCompaction",)] * 2


@pytest.mark.slow
def test_only_the_latest_row_of_a_primary_key_stays(spark, new_table):
    table = new_table(KEYED)
    _append(table, "(1, 'a', 1), (2, 'a', 1)")
    _append(table, "(2, 'b', 2), (3, 'b', 2)")
    before = table.version
    sql_ext.call(spark, "compact", table=table.name, primary_key=["pk"], order_by="changed").collect()
    assert sorted(map(tuple, table.data.collect())) == [(1, "a", 1), (2, "b", 2), (3, "b", 2)]
    # Old files stay for time travel.
    assert len(table.sql(f"SELECT * FROM {{t}} VERSION AS OF {before}")) == 4


@pytest.mark.slow
def test_compaction_drops_deleted_rows(spark, new_table):
    table = new_table(KEYED, properties={"delta.enableDeletionVectors": "true"})
    table.append(spark.range(20).selectExpr("id pk", "'a' val", "1 changed"))
    table.sql("DELETE FROM {t} WHERE pk < 5")
    rows = table.checksum()
    sql_ext.call(spark, "compact", table=table.name).collect()
    assert [(f.rows, f.deletion_vector) for f in table.files] == [(15, None)]
    assert table.checksum() == rows


# ------------------------------------------------------------------------------------- 3. reclamation


def test_the_property_of_maxcompute_leads_to_ours():
    assert "'use.retention.hours'" in foreign_warning({}, {"acid.data.retain.hours": "72"})


def test_history_is_kept_for_the_hours_of_the_property_and_then_deleted_by_itself():
    fake = FakeService()
    fake.tables.put("t", {"use.retention.hours": "720"})
    fake.tick()
    assert fake.engine.reclaimed == [("t", 720.0)]
    fake.tables.commit("t")
    fake.tick(23 * HOUR)
    assert len(fake.engine.reclaimed) == 1
    fake.tick(2 * HOUR)
    assert len(fake.engine.reclaimed) == 2


@pytest.mark.slow
def test_purge_forces_it_and_time_travel_to_reclaimed_history_fails(spark, new_table):
    table = new_table(KEYED)
    for n in range(3):
        table.sql(f"INSERT OVERWRITE {{t}} VALUES ({n}, 'a', 1)")
    newest = table.version
    with pytest.raises(sql_ext.UseError, match="force"):
        sql_ext.call(spark, "purge", table=table.name, older_than=newest).collect()
    sql_ext.call(spark, "purge", table=table.name, older_than=newest, force=True).collect()
    assert len(table.sql("SELECT * FROM {t}")) == 1
    with pytest.raises(Exception, match="USE_VERSION_RECLAIMED"):
        table.sql(f"SELECT * FROM {{t}} VERSION AS OF {newest - 1}")


@pytest.mark.slow
def test_without_any_compaction_what_time_travel_cannot_reach_is_compacted(spark, new_table):
    table = new_table(KEYED, properties={"delta.enableDeletionVectors": "true"})
    table.append(spark.range(20).selectExpr("id pk", "'a' val", "1 changed"))
    table.sql("DELETE FROM {t} WHERE pk < 5")
    _append(table, "(99, 'b', 1)")
    assert any(f.deletion_vector for f in table.files)
    done = sql_ext.call(spark, "purge", table=table.name, older_than=table.version, force=True).collect()
    assert [row.files for row in done if row.step == "compaction"] == [1]
    # The log that no version needs is gone, too.
    assert not any(table.managed.snapshot().file_table.deletion_vector)
