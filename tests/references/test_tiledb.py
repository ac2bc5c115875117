"""Consolidation of fragments, sentence by sentence (reference E); a fragment is a file with its time and its box."""

from dataclasses import replace

import numpy as np
import pytest
from listed_tables import choice, chosen, unindexed

import sql_ext
from procedures.groups.boxes import Boxes
from procedures.groups.consolidation_plan import consolidation_plan
from procedures.groups.cutter import Limits, pieces
from procedures.selection.consolidation_steps import consolidation
from procedures.selection.step_consolidation import StepConsolidation
from procedures.selection.step_runs import StepPolicy, widened

EVERYTHING = StepPolicy()


def _files(*sizes, boxes=None):
    """Files in the order of time; boxes are the ends of each one's range."""
    if boxes is None:
        return Boxes(np.array(sizes, np.int64), np.zeros((len(sizes), 0)), np.zeros((len(sizes), 0)))
    ends = np.array(boxes, np.float64)
    return Boxes(np.array(sizes, np.int64), ends[:, :1], ends[:, 1:])


def _steps(files, **policy):
    """Each step as the positions of its first file and after its last one."""
    return [(step.first, step.end) for step in consolidation(files, StepPolicy(**policy)).steps]


def _plan(desired, *files):
    """Reason and files of each group of a plan; a file is its size and the ends of its range."""
    sizes = np.array([size for size, _, _ in files], np.int64)
    low, high = (np.array([[f[end]] for f in files], np.float64) for end in (1, 2))
    return [(g.reason.value, g.files) for g in consolidation_plan(Boxes(sizes, low, high), desired)]


# ------------------------------------------------------------------------------------- 1. kinds


def test_a_consolidated_file_carries_the_time_range_of_its_files():
    files = [unindexed("f1", time=10), unindexed("f2", time=20), unindexed("f3", time=30)]
    group = choice(files, "StepConsolidation")
    assert [run.paths for run in group.runs] == [("f1", "f2", "f3")]
    assert (min(f.first_time for f in group.files), max(f.last_time for f in group.files)) == (10, 30)


@pytest.mark.slow
def test_time_travel_stays_until_vacuum(spark, new_table):
    table = new_table("id BIGINT")
    for n in range(3):
        table.append(spark.range(n, n + 1))
    table.optimize(strategy="StepConsolidation")
    assert len(table.files) == 1
    for version in (1, 2, 3):
        assert len(table.sql(f"SELECT * FROM {{t}} VERSION AS OF {version}")) == version


# ------------------------------------------------------------------------------------- 2. before the steps


@pytest.mark.slow
def test_files_without_a_live_row_are_not_considered_and_left_to_vacuum(spark, new_table):
    table = new_table("id BIGINT", properties={"delta.enableDeletionVectors": "true"})
    table.append(spark.range(10)).append(spark.range(100, 101))
    (gone,) = {f.path for f in table.files if f.rows == 10}
    table.sql("DELETE FROM {t} WHERE id < 10 AND id > -1")
    table.optimize(strategy="StepConsolidation")
    assert gone not in table.paths
    assert gone in table.on_disk()


# ------------------------------------------------------------------------------------- 3. a step


def test_a_step_picks_files_that_are_adjacent_in_time():
    # The two small files have a large one between them.
    assert _steps(_files(1, 100, 1), size_ratio=0.5) == []
    assert _steps(_files(1, 1, 100), size_ratio=0.5) == [(0, 2)]


def test_rule_1_every_run_is_consolidatable_since_rows_never_overwrite_each_other():
    assert _steps(_files(1, 1, 1, boxes=[(0, 9), (2, 3), (0, 9)])) == [(0, 3)]


def test_rule_2_neighbours_have_at_least_the_step_size_ratio():
    assert _steps(_files(100, 49), size_ratio=0.5) == []
    assert _steps(_files(100, 50), size_ratio=0.5) == [(0, 2)]
    assert _steps(_files(50, 100), size_ratio=0.5) == [(0, 2)]


def test_rule_3_the_result_is_at_most_amplification_times_the_sum():
    apart = _files(1, 1, boxes=[(0.0, 0.1), (0.9, 1.0)])
    assert _steps(apart, amplification=4.0) == []
    assert _steps(apart, amplification=5.1) == [(0, 2)]
    assert _steps(apart) == [(0, 2)]


def test_rule_4_the_largest_cardinality_between_the_bounds_is_first():
    files = _files(*[10] * 7)
    assert _steps(files, max_files=4)[0] == (0, 4)
    assert _steps(files, min_files=2) == [(0, 7)]
    # If no run reaches the minimum, the steps end.
    assert _steps(files, min_files=8) == []


def test_rule_5_among_those_the_smallest_total_size_and_then_the_oldest():
    assert _steps(_files(200, 50, 60, 100), steps=1, max_files=2) == [(1, 3)]
    assert _steps(_files(10, 10, 10, 10), steps=1, max_files=2) == [(0, 2)]


def test_steps_bounds_their_number_and_a_result_takes_part_in_the_next_step():
    files = _files(200, 50, 60, 100)
    assert _steps(files, steps=2, max_files=2) == [(1, 3), (1, 4)]
    assert len(_steps(files, max_files=2)) == 3


def test_the_defaults_are_unlimited_with_a_ratio_of_0():
    assert (EVERYTHING.steps, EVERYTHING.max_files, EVERYTHING.size_ratio) == (None, None, 0.0)
    # A minimum of one file would be no consolidation.
    assert EVERYTHING.min_files == 2
    declared = {option.name: option.default for option in StepConsolidation.options}
    assert (declared["steps"], declared["step_max_files"], declared["step_size_ratio"]) == (None, None, 0.0)
    assert declared["step_min_files"] == 2


def test_boxes_are_expanded_to_cubes_in_place_of_tiles():
    low, high = widened(np.array([[0.30]]), np.array([[0.30]]), 2)
    assert (low.item(), high.item()) == (0.25, 0.5)


# ------------------------------------------------------------------------------------- 4. sparse


def test_max_file_bytes_splits_the_result_into_several():
    assert list(pieces(np.array([4, 4, 4, 4], np.int64), Limits(10))) == [(0, 2), (2, 4)]
    files = [unindexed(f"f{n}", size=40, time=n) for n in range(4)]
    group = choice(files, "StepConsolidation", options={"max_file_bytes": "100"})
    assert [run.paths for run in group.runs] == [("f0", "f1"), ("f2", "f3")]


def test_deleted_rows_are_purged_or_their_files_stay_as_they_are():
    files = [replace(unindexed("f0"), deleted=1), unindexed("f1"), unindexed("f2")]
    assert chosen(files, "StepConsolidation") == ["f0", "f1", "f2"]
    assert chosen(files, "StepConsolidation", options={"purge_deleted": "false"}) == ["f1", "f2"]


# ------------------------------------------------------------------------------------- 5. manual list


@pytest.mark.slow
def test_experts_list_the_files_themselves(spark, new_table):
    table = new_table("id BIGINT")
    for n in range(3):
        table.append(spark.range(n, n + 1))
    named = sorted(table.paths)[:2]
    table.optimize(strategy="StepConsolidation", files=named)
    assert len(table.files) == 2
    assert not set(named) & table.paths


# ------------------------------------------------------------------------------------- 6. plan


def test_the_plan_puts_overlapping_boxes_together():
    assert _plan(1, (4, 1, 4), (4, 2, 6), (4, 10, 14), (4, 12, 16)) == [("OVERLAP", (0, 1)), ("OVERLAP", (2, 3))]


def test_the_plan_merges_small_files_where_the_result_overlaps_no_other():
    assert _plan(100, (49, 1, 2), (49, 3, 4)) == [("SMALL", (0, 1))]
    assert _plan(100, (50, 1, 2), (50, 3, 4)) == []
    assert _plan(100, (4, 1, 2), (100, 3, 3), (4, 5, 6)) == []


def test_the_plan_puts_large_files_alone_to_be_split():
    assert _plan(100, (150, 1, 2), (151, 5, 6)) == [("LARGE", (1,))]


def test_the_plan_runs_nothing(spark, new_table):
    table = new_table("id BIGINT").append(spark.range(10)).append(spark.range(5, 15))
    version = table.version
    (group,) = sql_ext.call(spark, "plan", table=table.name, columns="id").collect()
    assert (group.reason, group.files, group.expected_files) == ("OVERLAP", 2, 1)
    assert table.version == version


@pytest.mark.slow
def test_each_list_can_run_in_another_process(spark, new_table):
    table = new_table("id BIGINT, p INT", tail="PARTITIONED BY (p)")
    for first in (0, 10):
        table.append(spark.range(first, first + 10).selectExpr("id", "cast(id % 2 AS INT) p"))
    groups = sql_ext.call(spark, "plan", table=table.name, columns="id", store=True).collect()
    for group in groups:
        (done,) = table.optimize(plan=group.plan_id, groups=[group.group_id])
        assert done.state == "committed"
    assert (len(groups), len(table.files)) == (2, 2)


# ------------------------------------------------------------------------------------- 7. metadata


@pytest.mark.slow
def test_commits_are_put_into_one_and_readers_fetch_it_at_once(spark, new_table):
    table = new_table("id BIGINT")
    for n in range(4):
        table.append(spark.range(n, n + 1))
    arguments = {"modes": ["commits"], "timestamp_end": "2999-01-01"}
    (row,) = sql_ext.call(spark, "consolidate_log", table=table.name, **arguments).collect()
    assert (row.files_before, row.files_after) == (5, 1)
    assert table.data.count() == 4


@pytest.mark.slow
def test_a_group_is_a_schema_of_tables(spark):
    spark.sql("CREATE DATABASE reference_group")
    try:
        for name in ("one", "two"):
            spark.sql(f"CREATE TABLE reference_group.{name} (id BIGINT) USING delta")
        rows = sql_ext.call(spark, "consolidate_log", schema="reference_group", modes=["commits"]).collect()
        assert sorted(row.table.rsplit(".", 1)[-1] for row in rows) == ["one", "two"]
    finally:
        spark.sql("DROP DATABASE reference_group CASCADE")


# ------------------------------------------------------------------------------------- 8. range of time


def test_timestamps_limit_consolidation_to_a_range():
    files = [unindexed(f"f{n}", time=1000 * n) for n in range(5)]
    group = choice(files, "StepConsolidation", options={"timestamp_start": "1000", "timestamp_end": "3000"})
    assert [run.paths for run in group.runs] == [("f1", "f2", "f3")]
