"""``use.plan``: the groups of real tables, and how they are stored."""

import json

import pytest
from plan_texts import signed

import sql_ext
from catalog.state.plan_files import PlanGroups, StoredGroup, StoredPlan, find_plan, parse_group, parse_plan, store_plan
from catalog.state.state_files import Unreadable
from procedures.calls.plan import PLAN as PLAN_PROCEDURE

SMALL = 20_000


def _plan(table, **arguments):
    return sql_ext.call(table.spark, "plan", table=table.name, **arguments).collect()


def _filled(spark, new_table, **options):
    """Five files: two that overlap, two further small ones, and one of 5,000 rows."""
    table = new_table("id BIGINT, p INT", **options)
    for first, count in ((0, 10), (5, 10), (1000, 10), (2000, 10), (10_000, 5000)):
        table.append(spark.range(first, first + count).selectExpr("id", "0 AS p"))
    return table


def _shown(rows):
    return [(r.reason, r.files, r.expected_files, r.depth_before, r.depth_after) for r in rows]


def test_a_table_without_an_index_is_planned_by_columns_and_by_time(spark, new_table):
    table = _filled(spark, new_table)
    files = {file.path for file in table.files}
    rows = _plan(table, columns="id", max_file_bytes=2000)
    assert _shown(rows)[0] == ("OVERLAP", 2, 1, 2, 1)
    assert _shown(rows)[-1][:2] == ("LARGE", 1)
    # Without columns files are neighbours in time; the large one does not separate the small ones.
    (row,) = _plan(table, max_file_bytes=SMALL * 10)
    assert _shown([row]) == [("SMALL", 5, 1, 1, 1)]
    assert (row.plan_id, row.group_id, row.revision_id, row.partition) == (None, 1, 0, "")
    assert row.message == "5 files become 1"
    (row,) = _plan(table, max_file_bytes=SMALL * 10, where="id < 100")
    assert row.files == 2
    assert {file.path for file in table.files} == files
    assert not (table.path / "_use" / "plans").exists()


def test_partitions_are_groups_of_their_own(spark, new_table):
    table = new_table("id BIGINT, p INT", tail="PARTITIONED BY (p)")
    for first in (0, 10):
        table.append(spark.range(first, first + 10).selectExpr("id", "cast(id % 2 AS INT) p"))
    rows = _plan(table)
    assert [(r.files, r.expected_files) for r in rows] == [(2, 1), (2, 1)]
    assert len({r.partition for r in rows}) == 2
    with pytest.raises(sql_ext.UseError, match="no partition columns"):
        _plan(table, columns="p")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"max_file_bytes": 0}, "max_file_bytes"),
        ({"columns": "a,,b"}, "columns"),
        ({"columns": "a,a"}, "columns"),
        ({"columns": "`a"}, "columns"),
        ({"where": "id <"}, "where"),
    ],
    ids=str,
)
def test_arguments_out_of_range(arguments, named):
    with pytest.raises(sql_ext.UseError, match=named):
        PLAN_PROCEDURE.checked({"table": "t", **arguments})


def test_a_plan_is_stored_in_parts(spark, new_table, monkeypatch):
    from catalog.state import plan_files

    table = _filled(spark, new_table)
    rows = _plan(table, columns="id", max_file_bytes=2000, store=True)
    (plan_id,) = {r.plan_id for r in rows}
    plan = find_plan(table.managed, plan_id, table.managed.snapshot().table_id)
    assert (plan.groups, plan.version, plan.max_file_bytes) == (len(rows), table.version, 2000)
    groups = list(PlanGroups(table.managed, plan))
    assert [(g.group_id, g.reason, len(g.paths), g.bytes) for g in groups] == [
        (r.group_id, r.reason, r.files, r.bytes) for r in rows
    ]
    monkeypatch.setattr(plan_files, "_NAMES_PER_PART", 2)
    many = [StoredGroup(n, "SMALL", 0, "", (f"a{n}", f"b{n}"), ("", "x"), (2,), 9, 1, 1, 1) for n in range(1, 8)]
    stored = store_plan(table.managed, StoredPlan("0" * 12, plan.table_id, 1, 1, 5, 0, ()), many)
    assert stored.first_groups == tuple(range(1, 8))
    assert list(PlanGroups(table.managed, stored)) == many
    assert PlanGroups(table.managed, stored)[5].runs == [("a5", "b5")]
    empty = store_plan(table.managed, StoredPlan("1" * 12, plan.table_id, 1, 1, 5, 0, ()), [])
    assert list(PlanGroups(table.managed, empty)) == []
    assert find_plan(table.managed, "1" * 12, plan.table_id) == empty


GROUP = {
    "group_id": 1, "reason": "SMALL", "revision_id": 0, "partition": "", "paths": ["a", "b"], "vectors": ["", ""],
    "run_ends": [2], "bytes": 2, "files_out": 1, "depth_before": 1, "depth_after": 1,
}  # fmt: skip
PLAN = {
    "plan_id": "0" * 12, "table_id": "t", "version": 1, "created_at": 1, "max_file_bytes": 1, "groups": 3,
    "first_groups": [1, 3],
}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"paths": ["a", "a"]},
        {"paths": []},
        {"paths": ["a"]},
        {"paths": "ab"},
        {"vectors": [""]},
        {"run_ends": [1]},
        {"run_ends": [2, 2]},
        {"run_ends": [0, 2]},
        {"run_ends": []},
        {"run_ends": [1, 2, 3]},
        {"files_out": -1},
        {"bytes": "many"},
        {"reason": None},
    ],
    ids=str,
)
def test_damaged_groups_are_unreadable(change):
    assert isinstance(parse_group(json.dumps(GROUP)), StoredGroup)
    assert isinstance(parse_group(json.dumps({**GROUP, **change})), Unreadable)


@pytest.mark.parametrize(
    "change",
    [{"groups": -1}, {"first_groups": [2]}, {"first_groups": [1, 1]}, {"first_groups": []}, {"max_file_bytes": 0}],
    ids=str,
)
def test_damaged_plans_are_unreadable(change):
    assert isinstance(parse_plan(signed(PLAN, "a", "b"), PLAN["plan_id"]), StoredPlan)
    assert isinstance(parse_plan(signed({**PLAN, **change}, "a", "b"), PLAN["plan_id"]), Unreadable)
    assert isinstance(parse_plan(signed(PLAN, "a"), PLAN["plan_id"]), Unreadable)
    edited = signed(PLAN, "a", "b").replace('"version": 1', '"version": 2')
    assert isinstance(parse_plan(edited, PLAN["plan_id"]), Unreadable)
