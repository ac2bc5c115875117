"""Execution of stored plans: by one run and several, beside other writers, and of plans that somebody has edited."""

import json

import pytest
from placement import check_placement
from plan_texts import signed_again
from pyspark.errors import AnalysisException
from staging import At, settings_of
from staging import optimize as optimize_staged
from tables import NUMBERS, numbers

import sql_ext
from catalog.clock import SYSTEM_CLOCK
from catalog.state import lease
from catalog.state.lease import LEASE_FILE, Acquired, acquire
from catalog.state.plan_claims import DONE, RUNNING, STALE, GroupState, read_group_state, state_file
from catalog.state.plan_files import find_plan
from catalog.table.managed_table import ManagedTable
from procedures.layout.step import Step
from procedures.loop.stored_plan_run import PLAN_GROUP_DONE, PLAN_GROUP_RUNNING, PLAN_GROUP_STALE

VECTORS = {"delta.enableDeletionVectors": "true"}


def _store(table, **arguments):
    rows = sql_ext.call(table.spark, "plan", table=table.name, store=True, **arguments).collect()
    return rows[0].plan_id, rows


def _shown(report):
    return [(r.state, r.reason, r.input_files, r.output_files) for r in report]


def _pairs(spark, new_table, groups=3, **options):
    """Pairs of files whose ids overlap."""
    table = new_table("id BIGINT", **options)
    for first in range(0, 1000 * groups, 1000):
        table.append(spark.range(first, first + 100, 1, 1)).append(spark.range(first + 50, first + 150, 1, 1))
    return table


def _state(table, plan_id, group_id):
    managed = table.managed
    plan = find_plan(managed, plan_id, managed.snapshot().table_id)
    return read_group_state(managed, plan, group_id)


@pytest.mark.slow
def test_the_groups_of_a_plan_are_commits_that_name_it(spark, new_table):
    table = _pairs(spark, new_table)
    plan_id, rows = _store(table, columns="id", max_file_bytes=3000)
    assert [(r.reason, r.files, r.expected_files) for r in rows] == [("OVERLAP", 2, 1)] * 3
    before, version = table.checksum(), table.version
    assert _shown(table.optimize(plan=plan_id, dry_run=True)) == [
        ("planned", f"PLAN_GROUP_{n}_OVERLAP", 2, 0) for n in (1, 2, 3)
    ]
    assert _state(table, plan_id, 1) is None
    (row,) = table.sql(f"CALL use.optimize(table => '{{t}}', plan => '{plan_id}', groups => array(2))")
    assert (row.strategy, row.state, row.version) == ("ConsolidationPlan", "committed", version + 1)
    report = table.optimize(plan=plan_id)
    assert _shown(report) == [("committed", f"PLAN_GROUP_{n}_OVERLAP", 2, 1) for n in (1, 3)]
    assert table.checksum() == before
    assert len(table.files) == 3
    assert [(_state(table, plan_id, n).state, _state(table, plan_id, n).version) for n in (1, 2, 3)] == [
        (DONE, version + 2), (DONE, version + 1), (DONE, version + 3),
    ]  # fmt: skip
    events = table.sql("SELECT parameters FROM {t}.optimizations ORDER BY version")
    assert [(r.parameters["plan"], r.parameters["group"]) for r in events] == [(plan_id, n) for n in "213"]
    shown = table.sql("SELECT * FROM {t}.plans ORDER BY group_id")
    assert [(r.plan_id, r.group_id, r.state, r.version, r.files, r.message) for r in shown] == [
        (plan_id, n, "done", v, 2, None) for n, v in ((1, version + 2), (2, version + 1), (3, version + 3))
    ]
    assert {(r.trigger, r.holder) for r in shown} == {("call", lease.this_process())}
    assert all(r.created_at <= r.claimed_at <= r.finished_at for r in shown)
    # Nothing is left; a group that is named is reported.
    (row,) = table.optimize(plan=plan_id)
    assert row.reason == "NOTHING_TO_DO"
    (row,) = table.optimize(plan=plan_id, groups=[2])
    assert (row.state, row.reason) == ("skipped", PLAN_GROUP_DONE)
    assert table.managed.read_state(LEASE_FILE) is None
    assert spark.sql(f"SELECT count(*) FROM {table.name} VERSION AS OF {version}").collect()[0][0] == 600
    arguments = "retention_hours => 0, force => true, mode => 'lite'"
    planned = table.sql(f"CALL use.vacuum('{{t}}', {arguments}, dry_run => true)")
    assert [r.path.endswith(f"_use/plans/{plan_id}") for r in planned if r.reason == "STORED_PLAN"] == [True]
    assert table.sql("SELECT * FROM {t}.plans") == shown
    assert "STORED_PLAN" in {r.reason for r in table.sql(f"CALL use.vacuum('{{t}}', {arguments})")}
    assert table.sql("SELECT * FROM {t}.plans") == []


@pytest.mark.slow
def test_a_large_file_is_divided_in_its_order(spark, new_table):
    table = new_table("id BIGINT", properties={"delta.enableRowTracking": "true"})
    table.append(spark.range(0, 4000, 1, 1))
    size = table.files[0].size
    plan_id, (row,) = _store(table, columns="id", max_file_bytes=size // 3)
    assert (row.reason, row.expected_files) == ("LARGE", 4)
    before = table.data.select("id", "_metadata.row_id").orderBy("id").collect()
    assert _shown(table.optimize(plan=plan_id)) == [("committed", "PLAN_GROUP_1_LARGE", 1, 4)]
    ends = table.sql(
        "SELECT min(id), max(id), count(*) FROM (SELECT id, _metadata.file_path f FROM {t}) GROUP BY f ORDER BY 1"
    )
    assert [tuple(r) for r in ends] == [(n, n + 999, 1000) for n in range(0, 4000, 1000)]
    assert table.data.select("id", "_metadata.row_id").orderBy("id").collect() == before


@pytest.mark.slow
def test_indexed_files_keep_their_revision_cubes_and_bands(spark, new_table):
    table = new_table(NUMBERS, index="x,y", cube_size=200, file_bytes="8kb", properties=VECTORS)
    table.append(numbers(spark, 1500)).index()
    table.append(numbers(spark, 1500, 3000)).index()
    table.append(numbers(spark, 100, 8000)).append(numbers(spark, 100, 8100))
    table.sql("DELETE FROM {t} WHERE id % 10 = 0")
    rows, samples = table.checksum(), [sorted(r.id for r in table.data.sample(f).collect()) for f in (0.05, 0.3)]
    revisions = {file.revision for file in table.files}
    plan_id, groups = _store(table, max_file_bytes=40_000)
    report = table.optimize(plan=plan_id)
    assert [r.state for r in report] == ["committed"] * len(groups)
    assert [r.output_files for r in report] == [r.expected_files for r in groups]
    assert {r.revision_id for r in groups} >= {1}
    assert table.checksum() == rows
    check_placement(table)
    assert [sorted(r.id for r in table.data.sample(f).collect()) for f in (0.05, 0.3)] == samples
    assert {file.revision for file in table.files} == revisions
    # Files of a full size are left as they are.
    assert sql_ext.call(spark, "plan", table=table.name, max_file_bytes=40_000).count() < len(groups)


@pytest.mark.slow
def test_groups_whose_files_have_changed_are_stale(spark, new_table, monkeypatch):
    table = _pairs(spark, new_table, properties=VECTORS)
    plan_id, _ = _store(table, columns="id", max_file_bytes=3000)
    table.sql("DELETE FROM {t} WHERE id = 10")
    table.sql("DELETE FROM {t} WHERE id BETWEEN 1000 AND 1150")
    before, reads, history = table.checksum(), [], ManagedTable.history
    monkeypatch.setattr(ManagedTable, "history", lambda *given: reads.append(given[1:]) or history(*given))
    assert _shown(table.optimize(plan=plan_id)) == [
        ("skipped", PLAN_GROUP_STALE, 2, 0),
        ("skipped", PLAN_GROUP_STALE, 2, 0),
        ("committed", "PLAN_GROUP_3_OVERLAP", 2, 1),
    ]
    # The commits since the plan are read once for both groups.
    assert reads == [(2,)]
    monkeypatch.undo()
    assert table.checksum() == before
    states = [_state(table, plan_id, n) for n in (1, 2)]
    assert [s.state for s in states] == [STALE] * 2
    assert "0 are gone and 1 has other deleted rows" in states[0].reason
    assert "2 are gone" in states[1].reason
    assert _shown(table.optimize(plan=plan_id, groups=[1])) == [("skipped", PLAN_GROUP_STALE, 2, 0)]


@pytest.mark.quick_sample(1)
@pytest.mark.parametrize("step", [Step.READ, Step.COMMIT])
def test_a_concurrent_write_makes_the_group_stale(spark, new_table, step):
    table = _pairs(spark, new_table, 2)
    plan_id, _ = _store(table, columns="id", max_file_bytes=3000)
    at = At(step, lambda: table.sql("DELETE FROM {t} WHERE id = 0"))
    states = [(r.state, r.reason) for r in optimize_staged(table, at, plan=plan_id)]
    assert states == [
        ("failed", "USE_CONCURRENT_CHANGE"),
        ("skipped", PLAN_GROUP_STALE),
        ("committed", "PLAN_GROUP_2_OVERLAP"),
    ]
    assert sorted(r.id for r in table.data.collect()) == sorted(
        n for first in (0, 1000) for k in (0, 50) for n in range(first + k, first + k + 100) if n
    )


@pytest.mark.slow
def test_two_runs_share_the_lease_and_the_groups(spark, new_table):
    table = _pairs(spark, new_table)
    plan_id, _ = _store(table, columns="id", max_file_bytes=3000)
    before, inner = table.checksum(), []

    def meanwhile():
        assert _shown(table.optimize(strategy="StepConsolidation")) == [("skipped", "LEASE_HELD", 0, 0)]
        inner.extend(table.optimize(plan=plan_id))
        # The other run still holds the lease.
        assert lease.holder_of(table.managed, SYSTEM_CLOCK.now()).plan == plan_id
        assert _shown(table.optimize(strategy="StepConsolidation")) == [("skipped", "LEASE_HELD", 0, 0)]

    outer = optimize_staged(table, At(Step.WRITE, meanwhile), plan=plan_id)
    assert _shown(outer) == [("committed", "PLAN_GROUP_1_OVERLAP", 2, 1)]
    assert _shown(inner) == [
        ("committed", "PLAN_GROUP_2_OVERLAP", 2, 1),
        ("committed", "PLAN_GROUP_3_OVERLAP", 2, 1),
        ("skipped", PLAN_GROUP_RUNNING, 2, 0),
    ]
    assert table.checksum() == before
    assert table.managed.read_state(LEASE_FILE) is None
    assert table.managed.list_state(f"plans/{plan_id}/runs") == []


@pytest.mark.slow
def test_groups_are_rewritten_at_the_same_time_and_up_to_a_limit(spark, new_table):
    table = _pairs(spark, new_table)
    plan_id, _ = _store(table, columns="id", max_file_bytes=3000)
    before = table.checksum()
    for groups in ("array()", "array(0)", "array('a')", "array(1.5)"):
        with pytest.raises(AnalysisException):
            table.sql(f"CALL use.optimize(table => '{{t}}', plan => '{plan_id}', groups => {groups})")
    report = table.optimize(plan=plan_id, parallelism=2, max_iterations=2)
    assert sorted(_shown(report)) == [
        ("committed", "PLAN_GROUP_1_OVERLAP", 2, 1),
        ("committed", "PLAN_GROUP_2_OVERLAP", 2, 1),
        ("skipped", "LIMIT_REACHED", 0, 0),
    ]
    assert [r.state for r in table.sql("SELECT state FROM {t}.plans ORDER BY group_id")] == ["done", "done", "planned"]
    assert table.checksum() == before


def test_another_run_keeps_a_plan_off_and_nothing_is_claimed(spark, new_table):
    table = _pairs(spark, new_table, 1)
    plan_id, _ = _store(table, columns="id", max_file_bytes=3000)
    assert acquire(table.managed, "other", "call", SYSTEM_CLOCK.now()) == Acquired()
    assert _shown(table.optimize(plan=plan_id)) == [("skipped", "LEASE_HELD", 0, 0)]
    assert _state(table, plan_id, 1) is None


def _claim(table, plan_id, group_id, expires_at):
    managed = table.managed
    plan = find_plan(managed, plan_id, managed.snapshot().table_id)
    state = GroupState(RUNNING, "killed", "elsewhere:1", "cli", 1, expires_at)
    managed.write_state(state_file(plan, group_id), state.to_json())


def test_the_claim_of_a_killed_process_expires(spark, new_table):
    table = _pairs(spark, new_table, 2)
    plan_id, _ = _store(table, columns="id", max_file_bytes=3000)
    _claim(table, plan_id, 1, SYSTEM_CLOCK.now() + 30_000)
    _claim(table, plan_id, 2, SYSTEM_CLOCK.now() - 1)
    shown = table.sql("SELECT state, holder, message FROM {t}.plans ORDER BY group_id")
    assert [tuple(r) for r in shown] == [
        ("running", "elsewhere:1", None), ("planned", None, "the claim of elsewhere:1 has expired"),
    ]  # fmt: skip
    assert _shown(table.optimize(plan=plan_id)) == [
        ("committed", "PLAN_GROUP_2_OVERLAP", 2, 1),
        ("skipped", PLAN_GROUP_RUNNING, 2, 0),
    ]


def test_a_process_that_was_killed_after_its_commit_has_done_the_group(spark, new_table):
    table = _pairs(spark, new_table, 2)
    plan_id, _ = _store(table, columns="id", max_file_bytes=3000)
    table.optimize(plan=plan_id, groups=[1])
    version = table.version
    _claim(table, plan_id, 1, SYSTEM_CLOCK.now() - 1)
    assert _shown(table.optimize(plan=plan_id)) == [("committed", "PLAN_GROUP_2_OVERLAP", 2, 1)]
    assert (_state(table, plan_id, 1).state, _state(table, plan_id, 1).version) == (DONE, version)


# ------------------------------------------------------------------------------------------------------ hostile plans


def _edit(table, plan_id, change, *, sign=True):
    """Changes the groups of a plan, as a person with an editor would, who also computes the digests."""
    (file,) = (table.path / "_use" / "plans" / plan_id).glob("part-*.jsonl")
    groups = [json.loads(line) for line in file.read_text().splitlines()]
    change(groups)
    text = "\n".join(map(json.dumps, groups))
    plan = file.parent.parent / f"{plan_id}.json"
    texts = {file: text} | ({plan: signed_again(plan.read_text(), text)} if sign else {})
    for path, new in texts.items():
        (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
        path.write_text(new)


def test_edited_plans_lose_no_row(spark, new_table):
    table = new_table("id BIGINT, p INT", tail="PARTITIONED BY (p)")
    for first in range(0, 400, 100):
        rows = spark.range(first, first + 100, 1, 1).selectExpr("id", f"cast({first} / 200 AS INT) p")
        table.append(rows)
    plan_id, rows = _store(table)
    assert len(rows) == 2
    before = table.checksum()

    def mix(groups):
        # One group has files of two partitions, and the other a file that both have.
        first, second = groups
        moved = second["paths"][0]
        first["paths"].append(moved)
        first["vectors"].append("")
        first["run_ends"] = [3]
        second["files_out"] = 10**9
        second["bytes"] = 0

    _edit(table, plan_id, mix)
    assert _shown(table.optimize(plan=plan_id)) == [
        ("skipped", PLAN_GROUP_STALE, 3, 0),
        ("committed", "PLAN_GROUP_2_SMALL", 2, 1),
    ]
    assert table.checksum() == before
    plan_id, _ = _store(table)
    _edit(table, plan_id, lambda groups: groups[0].update(files_out=7), sign=False)
    with pytest.raises(sql_ext.UseError, match="was changed since it was stored"):
        table.optimize(plan=plan_id)

    def another(groups):
        groups[0]["paths"] = ["../../etc/passwd", "p=0/no-such-file.parquet"]
        groups[0]["vectors"], groups[0]["run_ends"] = ["", ""], [1, 2]

    _edit(table, plan_id, another)
    assert table.optimize(plan=plan_id)[0].reason == PLAN_GROUP_STALE
    assert table.checksum() == before


@pytest.mark.slow
def test_groups_that_share_a_file_are_rewritten_once(spark, new_table):
    """Both are rewritten at the same time, from an edited plan, with garbage in place of the claims of both."""
    table = _pairs(spark, new_table, 2)
    plan_id, _ = _store(table, columns="id", max_file_bytes=3000)
    before, version = table.checksum(), table.version
    _edit(table, plan_id, lambda groups: groups[1].update(paths=[groups[0]["paths"][1], groups[1]["paths"][0]]))
    folder = table.path / "_use" / "plans" / plan_id
    for name in ("groups/1.json", "groups/2.json", "groups/garbage", "part-00009.jsonl"):
        (folder / name).mkdir(parents=True)
    (folder / "groups" / "3.json").write_bytes(b"\x00\xff")
    report = table.optimize(plan=plan_id, parallelism=2)
    assert sorted(r.state for r in report) == ["committed", "failed", "skipped"]
    assert {r.reason for r in report if r.state != "committed"} == {"USE_CONCURRENT_CHANGE", PLAN_GROUP_STALE}
    assert (table.version, table.checksum()) == (version + 1, before)
    (folder.parent / f".{plan_id}.json.crc").unlink(missing_ok=True)
    plan = json.loads((folder.parent / f"{plan_id}.json").read_text())
    (folder.parent / f"{plan_id}.json").write_text(json.dumps({**plan, "plan_id": "../.."}))
    files = table.on_disk()
    table.sql("CALL use.vacuum('{t}', retention_hours => 0, force => true, mode => 'lite')")
    assert table.paths <= table.on_disk() < files
    assert table.checksum() == before


def test_plans_that_cannot_be_executed_are_refused_before_anything_changes(spark, new_table):
    table, other = _pairs(spark, new_table, 1), _pairs(spark, new_table, 1)
    plan_id, _ = _store(table, columns="id", max_file_bytes=3000)
    version = table.version
    with pytest.raises(sql_ext.UseError, match=f"There is no plan '{plan_id}'"):
        other.optimize(plan=plan_id)
    folder, copy = (t.path / "_use" / "plans" for t in (table, other))
    copy.mkdir(parents=True, exist_ok=True)
    (copy / f"{plan_id}.json").write_bytes((folder / f"{plan_id}.json").read_bytes())
    with pytest.raises(sql_ext.UseError, match="a plan of this table"):
        other.optimize(plan=plan_id)
    assert other.sql("SELECT * FROM {t}.plans") == []
    with pytest.raises(sql_ext.UseError, match="plan group"):
        table.optimize(plan=plan_id, groups=[2])
    _edit(table, plan_id, lambda groups: groups[0].update(run_ends=[7]))
    with pytest.raises(sql_ext.UseError) as error:
        table.optimize(plan=plan_id)
    assert error.value.code == "USE_PLAN_UNREADABLE"
    (folder / plan_id / "part-00001.jsonl").unlink()
    with pytest.raises(sql_ext.UseError, match="is missing"):
        table.optimize(plan=plan_id)
    (folder / f".{plan_id}.json.crc").unlink(missing_ok=True)
    (folder / f"{plan_id}.json").write_text('{"plan_id": "')
    with pytest.raises(sql_ext.UseError, match="NOT_JSON"):
        table.optimize(plan=plan_id)
    (row,) = table.sql("SELECT * FROM {t}.plans")
    assert (row.plan_id, row.state) == (plan_id, None)
    assert "NOT_JSON" in row.message
    assert table.version == version


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"plan": "../lease"}, "plan"),
        ({"groups": [1]}, "plan is missing"),
        ({"plan": "0" * 12, "groups": []}, "groups"),
        ({"plan": "0" * 12, "groups": [0]}, "groups"),
        ({"plan": "0" * 12, "groups": [1, 1]}, "groups"),
        ({"plan": "0" * 12, "strategy": "UnindexedFiles"}, "strategy"),
        ({"plan": "0" * 12, "where": "id = 1"}, "where"),
        ({"plan": "0" * 12, "revision_id": 0}, "revision_id"),
        ({"plan": "0" * 12, "options": {"a": "b"}}, "options"),
    ],
    ids=str,
)
def test_arguments_out_of_range(arguments, named):
    with pytest.raises(sql_ext.UseError, match=named):
        settings_of(**arguments)
