"""Groups of plans as JSON and back, and what rewrites take of edited ones: files of the log, each once, or nothing."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from file_lists import ListedFile, columns_of, file_lists
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from catalog.files.file_table import FileTable
from catalog.files.version_files import PathFilter
from catalog.state.plan_files import StoredGroup, group_text, parse_group
from procedures.groups.cutter import MAX_FILES_PER_GROUP, Limits
from procedures.groups.group import Concatenate
from procedures.selection.file_places import Scope, candidates, places
from procedures.selection.stored_groups import group_of, stored_group
from procedures.selection.table_plan import planned_groups

MAX_FILE_BYTES = 100
HUGE = 250_000_000_000_000


@dataclass(frozen=True)
class ListedSnapshot:
    """The part of a snapshot that groups are compared with."""

    file_table: FileTable
    settings: dict

    @classmethod
    def of(cls, files):
        return cls(columns_of(files), {})

    def only_paths(self, paths):
        return replace(
            self, file_table=self.file_table.where(PathFilter(frozenset(paths), keeps=True).of(self.file_table))
        )


def _file(path, **changes):
    values = {"size": 10, "time": 0, "revision": 0, "write": None, "deleted": 0, "known": True, "band_end": None}
    return ListedFile(**{"path": path, "blocks": (("", 0, 1, 5),), **values, **changes})


def _group(files, **changes):
    stored = {
        "group_id": 1, "reason": "SMALL", "revision_id": files[0].revision, "partition": "",
        "paths": [f.path for f in files], "vectors": [f.vector for f in files], "run_ends": [len(files)],
        "bytes": sum(f.size for f in files), "files_out": 1, "depth_before": 1, "depth_after": 1,
    }  # fmt: skip
    return parse_group(json.dumps({**stored, **changes}))


NUMBERS = st.sampled_from([0, 1, 2, 3, 1000, HUGE])
ODD_PATHS = st.sampled_from(
    ["../part-0", "/etc/passwd", "file:///t/part-0", "./part-0", "part-0/", "", "\x00", "\ud800"]
)


@st.composite
def _edits(draw):
    """Files of a table, and a group of some of them that was changed."""
    files = draw(file_lists(8))
    assume(files)
    if draw(st.booleans()):
        # Files that belong together are rare among those of all kinds.
        files = tuple(replace(f, revision=files[0].revision, band_end=files[0].band_end) for f in files)
    vectors = {f.path: f.vector for f in files}
    chosen = draw(st.lists(st.sampled_from(sorted(vectors)), max_size=6, unique=draw(st.booleans())))
    odd = draw(st.lists(ODD_PATHS, max_size=1)) if draw(st.integers(0, 3)) == 0 else []
    paths = draw(st.permutations([*chosen, *odd]))
    of_paths = [vectors.get(path, "") for path in paths]
    if draw(st.integers(0, 3)) == 0:
        of_paths = draw(st.permutations(of_paths))
    ends = draw(st.sets(st.integers(1, max(len(paths), 1)), max_size=3))
    text = {
        "group_id": draw(st.integers(0, 3)), "reason": "SMALL", "revision_id": draw(st.sampled_from([0, 1, 2])),
        "partition": draw(st.sampled_from(["", "p=1"])), "paths": paths, "vectors": of_paths,
        "run_ends": sorted({*ends, len(paths)}), "bytes": draw(NUMBERS), "files_out": draw(NUMBERS),
        "depth_before": draw(NUMBERS), "depth_after": draw(NUMBERS),
    }  # fmt: skip
    return files, json.dumps(text), draw(st.sampled_from([1, 7, 100, HUGE]))


@settings(max_examples=150)
@given(_edits())
def test_a_rewrite_takes_files_of_one_place_as_the_log_has_them(edits):
    files, text, max_file_bytes = edits
    stored = parse_group(text)
    if not isinstance(stored, StoredGroup):
        return
    snapshot = ListedSnapshot.of(files)
    group = group_of(snapshot, stored, max_file_bytes)
    if isinstance(group, str):
        assert group.isprintable()
        return
    listed = {f.path: f for f in files}
    taken = [listed[f.path] for f in group.files]
    assert len({f.path for f in taken}) == len(taken) == len(stored.paths)
    assert sorted(path for run in group.runs for path in run.paths) == sorted(f.path for f in taken)
    assert [(f.size, f.deletion_vector) for f in group.files] == [(f.size, f.vector) for f in taken]
    assert {f.revision for f in taken} == {group.revision_id}
    listed, _ = candidates(snapshot, Scope(None, True, None, None, isolated=True))
    taken_paths = {f.path for f in taken}
    of_files = [place for place, at in places(listed, ()) if taken_paths & set(listed.path[at])]
    assert len(of_files) == 1
    if len(taken) == 1:
        rows = taken[0].rows
        assert 1 <= group.rows_per_file < rows
        assert -(-rows // group.rows_per_file) <= MAX_FILES_PER_GROUP
    else:
        assert group.rows_per_file is None


A, B, C = _file("a"), _file("b", deleted=1), _file("c", revision=2)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"paths": ["a", "gone"]}, "1 is gone"),
        ({"paths": ["a", "../b"]}, "1 is gone"),
        ({"paths": ["/t/a", "b"], "vectors": ["", "ub"]}, "1 is gone"),
        ({"paths": ["b", "a"]}, "2 have other deleted rows"),
        ({"vectors": ["", ""]}, "1 has other deleted rows"),
        ({"vectors": ["", "ux"]}, "1 has other deleted rows"),
        ({"paths": ["a", "c"], "vectors": ["", ""]}, "not of one partition"),
        ({"revision_id": 2}, "not of one partition"),
        ({"revision_id": 7}, "not of one partition"),
    ],
    ids=str,
)
def test_edited_groups_are_stale(changes, problem):
    snapshot = ListedSnapshot.of([A, B, C])
    assert isinstance(group_of(snapshot, _group([A, B]), MAX_FILE_BYTES), Concatenate)
    assert problem in group_of(snapshot, _group([A, B], **changes), MAX_FILE_BYTES)


@pytest.mark.parametrize("changes", [{"bytes": 0}, {"bytes": HUGE}, {"files_out": HUGE}, {"partition": "p=1"}], ids=str)
def test_sizes_of_a_group_are_those_of_the_log(changes):
    group = group_of(ListedSnapshot.of([A, B]), _group([A, B], **changes), MAX_FILE_BYTES)
    assert (group.bytes, [(f.size, f.rows) for f in group.files]) == (20, [(10, 5), (10, 4)])


@pytest.mark.parametrize(
    ("size", "rows", "files_out", "max_file_bytes", "rows_per_file"),
    [
        (1000, 1000, HUGE, 500, 500),
        (1000, 1000, HUGE, 1, 1),
        (HUGE, 10**6, HUGE, 1, 100),
        (1000, 3, 2, 1, 2),
        (1000, 1000, 0, 1, None),
        (1000, 1000, 1, 1, None),
        (1000, 1, 9, 1, None),
        (1000, 1000, 9, HUGE, None),
    ],
)
def test_a_file_is_divided_by_its_size_in_the_log(size, rows, files_out, max_file_bytes, rows_per_file):
    large = _file("a", size=size, blocks=(("", 0, 1, rows),))
    group = group_of(ListedSnapshot.of([large]), _group([large], files_out=files_out), max_file_bytes)
    assert getattr(group, "rows_per_file", None) == rows_per_file


@settings(max_examples=200)
@given(file_lists(12), st.sampled_from([1, 15, 100, 2000, HUGE]), st.booleans())
def test_a_group_that_is_read_is_the_group_that_was_stored(files, max_file_bytes, with_ranges):
    """The sentence for people is not stored, and the level of a file is that among the files of its group."""
    snapshot = ListedSnapshot.of(files)
    chosen, _ = candidates(snapshot, Scope(None, True, None, None, isolated=True))
    chosen = chosen.take(np.flatnonzero(chosen.rows != 0))
    none = np.zeros((len(chosen), 0))
    chosen = chosen if with_ranges else chosen.with_ranges(none, none)
    for group in planned_groups(chosen, max_file_bytes, Limits(4 * max_file_bytes, 5), ["x", "y"]):
        read = group_of(snapshot, parse_group(group_text(stored_group(group))), max_file_bytes)
        levels = [replace(f, level=g.level) for f, g in zip(read.files, group.files, strict=True)]
        assert replace(read, note=group.note, files=tuple(levels)) == group
        assert stored_group(read) == stored_group(group)


def test_only_groups_of_a_plan_are_stored():
    group = group_of(ListedSnapshot.of([A, B]), _group([A, B]), MAX_FILE_BYTES)
    with pytest.raises(ValueError, match="consolidation plan"):
        stored_group(replace(group, plan_group=None))
