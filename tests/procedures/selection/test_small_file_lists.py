"""Lists of small files between runs: what a run looks at is what changed. No Spark."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from procedures.selection import size_tiered_clustering
from procedures.selection.size_tiered_clustering import groups_of
from procedures.selection.size_tiers import TierPolicy, merges
from procedures.selection.small_file_lists import COLUMNS, KeptLists, SmallFileLists

POLICY = TierPolicy(min_files=4, min_bytes=None, tier_ratio=4, isolate_bytes=10_000)


def columns(*files):
    """Columns of files, each of path, partition, size and time."""
    rows = [(path, size, 1, time, time, 0, partition, 0.0) for path, partition, size, time in files]
    types = (object, np.int64, np.int64, np.int64, np.int64, np.int64, object, np.float64)
    return {
        name: np.array([row[i] for row in rows], kind)
        for i, (name, kind) in enumerate(zip(COLUMNS, types, strict=True))
    }


def lists_of(partitions, files_each):
    return SmallFileLists(
        0, columns(*((f"p{p}-{n}", f"p{p}", 100, n) for p in range(partitions) for n in range(files_each)))
    )


@pytest.fixture
def looks(monkeypatch):
    """How many files each look at a partition compares."""
    counted = []

    def counting(files, policy):
        counted.append(len(files))
        return merges(files, policy)

    monkeypatch.setattr(size_tiered_clustering, "merges", counting)
    return counted


def planned(lists, most_bytes=10**9, is_apart=lambda: True):
    return [{file.path for file in group.files} for group in groups_of(lists, POLICY, most_bytes, is_apart)]


def test_an_unchanged_table_is_looked_at_once(looks):
    lists = lists_of(partitions=1000, files_each=3)
    assert planned(lists) == []
    assert len(looks) == 1000
    assert planned(lists) == []
    lists.change(7, [], columns())
    assert planned(lists) == []
    assert len(looks) == 1000


def test_only_the_partitions_that_changed_are_looked_at_again(looks):
    lists = lists_of(partitions=1000, files_each=3)
    planned(lists)
    looks.clear()
    lists.change(1, ["p5-0"], columns(("new", "p7", 100, 9), ("first", "new", 100, 9)))
    assert planned(lists) == [{"p7-0", "p7-1", "p7-2", "new"}]
    assert sorted(looks) == [1, 2, 4]
    # The merge is committed: its partition is looked at, and no other one.
    looks.clear()
    lists.change(2, ["p7-0", "p7-1", "p7-2", "new"], columns(("merged", "p7", 400, 0)))
    assert planned(lists) == []
    assert looks == [1]


def test_groups_that_were_not_rewritten_are_found_again(looks):
    lists = lists_of(partitions=3, files_each=4)
    first = next(groups_of(lists, POLICY, 10**9, lambda: True))
    assert {file.path for file in first.files} == {f"p0-{n}" for n in range(4)}
    assert len(planned(lists)) == 3
    assert lists.has_any(["p0-0"])


def test_a_group_has_several_partitions_up_to_its_bytes(monkeypatch):
    lists = lists_of(partitions=5, files_each=4)
    (whole,) = groups_of(lists, POLICY, 10**9)
    assert (len(whole.files), len(whole.runs), whole.reason) == (20, 5, "FILES_20_TO_5")
    assert whole.note == "20 small files of 5 partitions become 5"
    assert all(len({path.split("-")[0] for path in run.paths}) == 1 for run in whole.runs)
    assert [len(paths) for paths in planned(lists, 500, lambda: False)] == [8, 8, 4]
    assert [len(paths) for paths in planned(lists)] == [4] * 5
    monkeypatch.setattr(size_tiered_clustering, "MAX_FILES_PER_GROUP", 9)
    assert [len(paths) for paths in planned(lists, 10**9, lambda: False)] == [8, 8, 4]


def test_after_a_conflict_groups_have_one_partition():
    lists = lists_of(partitions=4, files_each=4)
    conflicts = [False]
    groups = groups_of(lists, POLICY, 500, lambda: conflicts[0])
    assert len(next(groups).files) == 8
    conflicts[0] = True
    assert [len(group.files) for group in groups] == [4, 4]


def test_what_another_run_changed_is_not_settled_by_a_look_at_what_was_there_before():
    lists = lists_of(partitions=1, files_each=3)
    ((partition, files),) = lists.unsettled()
    lists.change(1, [], columns(("new", "p0", 100, 9)))
    lists.settle(partition, files)
    assert len(planned(lists)) == 1


_FILES = st.dictionaries(
    st.integers(0, 30), st.tuples(st.sampled_from("abc"), st.integers(1, 9_999), st.integers(0, 9)), max_size=12
)


@given(_FILES, st.lists(st.tuples(st.sets(st.integers(0, 30)), _FILES), max_size=5), st.booleans())
def test_lists_that_follow_commits_are_those_of_the_last_version(files, commits, looks_between):
    def listed(lists):
        return {p: [(f.input_file(n), int(f.tier[n])) for n in range(len(f))] for p, f in lists.unsettled()}

    def of(files):
        return columns(*((str(name), *facts) for name, facts in files.items()))

    lists = SmallFileLists(0, of(files))
    for version, (removed, added) in enumerate(commits, 1):
        if looks_between:
            planned(lists)
        files = {name: facts for name, facts in files.items() if name not in removed} | added
        lists.change(version, {str(name) for name in removed | set(added)}, of(added))
    whole = SmallFileLists(len(commits), of(files))
    assert len(lists) == len(whole)
    if not looks_between:
        assert listed(lists) == listed(whole)
    assert planned(lists) == planned(whole)


def test_lists_are_kept_up_to_a_number_of_files():
    kept = KeptLists(10)
    first, second = lists_of(2, 3), lists_of(1, 6)
    kept.put("a", first)
    kept.put("b", second)
    assert kept.take("a") is None
    assert kept.take("b") is second
    assert kept.take("b") is None
