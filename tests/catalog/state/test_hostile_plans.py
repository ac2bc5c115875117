"""Edited plans and claims, without Spark: no file outside ``_use/plans`` is read or written."""

import json
import logging
from pathlib import Path

import pytest
from broken_texts import ODD_VALUES, broken_texts
from fake_clock import LimitedClock
from folders import FolderHandle, MemoryHandle, RecordingHandle, folder_table
from hypothesis import example, given, settings
from hypothesis import strategies as st
from plan_texts import signed, signed_again
from py4j.protocol import Py4JError

from catalog.errors import InvalidArgumentError, PlanUnreadableError, UnknownNameError, UseError
from catalog.state.lease import LEASE_MILLIS
from catalog.state.plan_claims import DONE, RUNNING, STALE, GroupClaims, GroupState, read_group_states
from catalog.state.plan_expiry import delete_plans, expired_plans
from catalog.state.plan_files import PlanGroups, StoredGroup, StoredPlan, find_plan, plan_ids, store_plan

NOW = 1_700_000_000_000
ID, OTHER = "0" * 12, "f" * 12
PLAN = {
    "plan_id": ID, "table_id": "t", "version": 1, "created_at": 1, "max_file_bytes": 1, "groups": 2,
    "first_groups": [1],
}  # fmt: skip
GROUP = {
    "group_id": 1, "reason": "SMALL", "revision_id": 0, "partition": "", "paths": ["a", "b"], "vectors": ["", ""],
    "run_ends": [2], "bytes": 2, "files_out": 1, "depth_before": 1, "depth_after": 1,
}  # fmt: skip
CLAIM = json.loads(GroupState(RUNNING, "r", "h:1", "call", NOW, NOW + 9).to_json())
IDS_THAT_ARE_PATHS = [
    "", ".", "..", "../lease", "../../x", f"../plans/{ID}", f"{ID}/", f"{ID}/../{OTHER}", f"/etc/{ID}", "/etc/passwd",
    "file:///etc/passwd", f"{ID}\n", f"{ID}\x00", "\x00", "0" * 11 + "０", ID.upper().replace("0", "A"), f"{ID}.json",
    "0" * 13, "*", "~", "%2e%2e",
]  # fmt: skip


def _recorded(files):
    files = {f"_use/plans/{name}": text for name, text in files.items()}
    handle = RecordingHandle(files, below=("_use", "plans"))
    return handle, folder_table(Path("/t"), handle)


def _lines(*groups):
    return "\n".join(json.dumps(group) for group in groups)


def _claims(table, plan, run="mine"):
    return GroupClaims(table, plan, run, "call", LimitedClock(NOW, waits=1))


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.WARNING)


# ------------------------------------------------------------------------------------------------------------ the id


@pytest.mark.parametrize("plan_id", IDS_THAT_ARE_PATHS, ids=ascii)
def test_an_id_that_is_a_path_is_refused_before_anything_is_read(plan_id):
    handle, table = _recorded({f"{ID}.json": signed(PLAN, "")})
    with pytest.raises(InvalidArgumentError, match="plan"):
        find_plan(table, plan_id, "t")
    assert handle.asked == set()


@given(st.text(max_size=40))
def test_any_text_as_an_id(plan_id):
    handle, table = _recorded({f"{ID}.json": signed(PLAN, "")})
    with pytest.raises((InvalidArgumentError, UnknownNameError)):
        find_plan(table, plan_id, "t")
    assert handle.outside == set()


@pytest.mark.parametrize("named", ["../..", "..", ".", OTHER, f"../../{ID}", "/etc", "../plans/" + ID], ids=ascii)
def test_a_plan_is_deleted_below_the_name_of_its_file_only(tmp_path, named):
    """A text that names another folder would make a vacuum delete what is in it: with ``../..``, files of the table."""
    data = tmp_path / "part-0.parquet"
    data.write_text("rows")
    table = folder_table(tmp_path)
    groups = [StoredGroup(1, "SMALL", 0, "", ("a",), ("",), (1,), 1, 1, 1, 1)]
    store_plan(table, StoredPlan(OTHER, "t", 1, NOW, 1, 0, ()), groups)
    table.write_state(f"plans/{ID}.json", json.dumps({**PLAN, "plan_id": named}))
    before = sorted(tmp_path.rglob("*"))
    assert delete_plans(table, expired_plans(table, NOW, NOW)) == 0
    assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises(PlanUnreadableError, match="'plan_id' is"):
        find_plan(table, ID, "t")


def test_a_plan_of_another_table_is_refused():
    _, table = _recorded({f"{ID}.json": signed(PLAN, "")})
    with pytest.raises(InvalidArgumentError, match="a plan of this table"):
        find_plan(table, ID, "another")


# ------------------------------------------------------------------------------------------------- any stored content


def _used(files, group_ids=(1, 2)):
    """Does everything that is done with a plan; only coded errors are allowed."""
    handle, table = _recorded(files)
    groups = []
    try:
        plan = find_plan(table, ID, "t")
    except UseError:
        plan = None
    if plan is not None:
        stored = PlanGroups(table, plan)
        claims = _claims(table, plan)
        for group_id in group_ids:
            free = claims.take(group_id, again=True)
            assert free is None or isinstance(free, GroupState)
            try:
                groups.append(stored[group_id])
            except PlanUnreadableError:
                claims.release(group_id)
            else:
                claims.finish(group_id, DONE, 3)
        states = read_group_states(table, plan, NOW)
        assert all(isinstance(state, GroupState) for state in states.values())
    delete_plans(table, expired_plans(table, NOW, NOW))
    assert handle.outside == set()
    return groups


@settings(max_examples=200)
@given(broken_texts(PLAN), st.booleans())
@example(json.dumps({**PLAN, "plan_id": "../.."}), True)
@example(json.dumps({**PLAN, "plan_id": OTHER}), True)
@example(json.dumps({**PLAN, "groups": 10_000_000}), True)
@example(json.dumps({**PLAN, "groups": 2, "first_groups": [1, 2]}), True)
def test_any_text_as_a_plan(text, is_signed):
    part = _lines(GROUP, {**GROUP, "group_id": 2})
    text = signed_again(text, part) if is_signed else text
    _used({f"{ID}.json": text, f"{ID}/part-00001.jsonl": part})


@settings(max_examples=200)
@given(broken_texts(GROUP))
@example(json.dumps({**GROUP, "paths": ["a", "a"]}))
@example(json.dumps({**GROUP, "paths": ["../../etc/passwd", "/etc/passwd"]}))
@example(json.dumps({**GROUP, "paths": ["a", "\ud800"]}))
@example(json.dumps({**GROUP, "group_id": 7}))
@example(json.dumps({**GROUP, "group_id": 2}))
@example(json.dumps({**GROUP, "bytes": 10**14, "files_out": 0}))
def test_any_text_as_a_group(text):
    for group in _used({f"{ID}.json": signed(PLAN, text), f"{ID}/part-00001.jsonl": text}):
        # A rewrite must take each file once, with one deletion vector, in one run.
        assert len(set(group.paths)) == len(group.paths) == len(group.vectors) > 0
        assert [path for run in group.runs for path in run] == list(group.paths)
        assert all(group.runs)
        # Both are sent to the JVM.
        "".join((*group.paths, *group.vectors)).encode()


CLAIM_NAMES = st.sampled_from(
    ["1.json", "2.json", "3.json", "01.json", "-1.json", "1e3.json", "²", "x.txt", "1", "9" * 200 + ".json", ".json"]
)
CLAIM_TEXTS = st.one_of(broken_texts(CLAIM), st.just(Py4JError("it is a directory")))


@settings(max_examples=200)
@given(st.dictionaries(CLAIM_NAMES, CLAIM_TEXTS, max_size=4))
def test_any_texts_as_claims(claims):
    part = _lines(GROUP, {**GROUP, "group_id": 2})
    files = {f"{ID}/groups/{name}": text for name, text in claims.items()}
    assert len(_used({f"{ID}.json": signed(PLAN, part), f"{ID}/part-00001.jsonl": part, **files})) == 2


@settings(max_examples=100)
@given(st.data())
def test_a_plan_that_was_edited_is_refused(data):
    """Whatever is changed, a file of the plan or one of its parts: no group of it is rewritten."""
    handle = MemoryHandle({})
    table = folder_table(Path("/t"), handle)
    plan = _stored(table)
    name = data.draw(st.sampled_from(sorted(file for file in handle.files if file.endswith((".json", ".jsonl")))))
    text = handle.files[name]
    sound = json.loads(text.split("\n")[0])
    key = data.draw(st.sampled_from(sorted(sound)))
    edited = json.dumps({**sound, key: data.draw(ODD_VALUES.filter(lambda odd: odd != sound[key] or odd is True))})
    handle.files[name] = "\n".join([edited, *text.split("\n")[1:]])
    with pytest.raises(UseError) as refused:
        list(PlanGroups(table, find_plan(table, ID, plan.table_id)))
    assert refused.value.code == "USE_PLAN_UNREADABLE"


# ------------------------------------------------------------------------------------------------------- file systems


def _stored(table):
    groups = [StoredGroup(n, "SMALL", 0, "", (f"f{n}",), ("",), (1,), 1, 1, 1, 1) for n in (1, 2)]
    return store_plan(table, StoredPlan(ID, "t", 1, 1, 1, 0, ()), groups)


def test_a_folder_in_place_of_a_part_is_a_coded_error(tmp_path):
    table = folder_table(tmp_path)
    plan = _stored(table)
    part = tmp_path / "_use" / plan.folder / "part-00001.jsonl"
    part.unlink()
    part.mkdir()
    with pytest.raises(PlanUnreadableError, match=r"part-00001.jsonl: .*directory"):
        PlanGroups(table, plan)[1]


@pytest.mark.parametrize("blocked", ["groups/1.json", "groups"])
def test_a_claim_that_cannot_be_stored_does_not_stop_the_plan(tmp_path, caplog, blocked):
    table = folder_table(tmp_path)
    plan = _stored(table)
    folder = tmp_path / "_use" / plan.folder
    (folder / "groups").mkdir()
    (folder / blocked).rmdir() if blocked == "groups" else (folder / blocked).mkdir()
    if blocked == "groups":
        (folder / blocked).write_text("a file in place of a folder")
    claims = _claims(table, plan)
    assert claims.take(1) is None
    claims.finish(1, STALE, reason="gone")
    assert claims.take(1, again=True) is None
    claims.release(1)
    assert "groups/1.json was not stored" in caplog.text


class Refusing(FolderHandle):
    """A file system that neither writes nor deletes the claim of one group."""

    def write_text(self, file, text):
        if file.endswith("groups/1.json") and (self.root / file).exists():
            raise OSError("denied")
        super().write_text(file, text)

    def delete(self, file):
        if file.endswith("groups/1.json"):
            raise OSError("denied")
        super().delete(file)


def test_a_claim_that_is_refused_does_not_keep_the_others_from_renewal_and_release(tmp_path):
    table = folder_table(tmp_path, Refusing(tmp_path))
    plan = _stored(table)
    clock = LimitedClock(NOW, waits=4)
    claims = GroupClaims(table, plan, "mine", "call", clock)
    assert [claims.take(1), claims.take(2)] == [None, None]
    with claims.renewed():
        assert clock.waits_over.wait(60)
        assert claims.state(2).expires_at == clock.now() + LEASE_MILLIS
    assert claims.state(2) is None
    assert claims.state(1).run_id == "mine"


def test_a_plan_that_cannot_be_deleted_keeps_no_other_from_being_deleted(tmp_path, caplog):
    table = folder_table(tmp_path)
    plan = _stored(table)
    (tmp_path / "_use" / plan.folder / "groups" / "garbage").mkdir(parents=True)
    store_plan(table, StoredPlan(OTHER, "t", 1, 1, 1, 0, ()), [])
    assert delete_plans(table, expired_plans(table, NOW, NOW)) > 0
    assert plan_ids(table) == [ID]
    assert f"Plan {ID} of t was not deleted" in caplog.text


def test_a_plan_with_a_claim_that_is_being_written_stays(tmp_path):
    """A renewal overwrites a claim, and whoever reads it at the same moment may see half of it."""
    table = folder_table(tmp_path)
    plan = _stored(table)
    table.write_state(f"{plan.folder}/groups/2.json", "")
    assert expired_plans(table, NOW, NOW) == []
    table.delete_state(f"{plan.folder}/groups/2.json")
    assert [expired.plan_id for expired in expired_plans(table, NOW, NOW)] == [ID]
